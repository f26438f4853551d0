#!/bin/sh
# user.sh NAME FOLDER...: a user without a password, who owns these folders. Nothing in an image runs as root.
set -eu
name=$1
shift
id -u "$name" > /dev/null 2>&1 || useradd --create-home --uid 1000 --shell /bin/sh "$name"
mkdir -p "$@"
chown "$name" "$@"
