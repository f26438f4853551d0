#!/bin/sh
# The locked dependencies, each with its hash, and specsweep itself: the same way as on a developer's machine.
set -eu
cd "$(dirname "$0")/.."
# shellcheck disable=SC2086  # several options, or none
exec make ${MAKE_OPTIONS-} setup PYTHON="${PYTHON:-python3}"
