#!/bin/sh
# packages.sh base|host: Debian packages of an image. APT_GET_OPTIONS=-s only says what it would do.
set -eu
case $1 in
  base) set -- make ;;
  host) set -- openssh-server openssh-client procps ;;
  *) echo "packages.sh: base or host, not $1" >&2; exit 2 ;;
esac
[ -n "${APT_GET_OPTIONS-}" ] || apt-get update -qq
# shellcheck disable=SC2086  # several options, or none
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends ${APT_GET_OPTIONS-} "$@"
[ -n "${APT_GET_OPTIONS-}" ] || rm -rf /var/lib/apt/lists/*
