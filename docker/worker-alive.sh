#!/bin/sh
# Whether the sweep's process lives and could still write its log; of a shared study each host has one.
set -eu
found=
for log in "${SWEEPS:-/sweeps}/${STUDY:-compose}".*log; do
  [ -w "$log" ] && found=$log
done
[ -n "$found" ] || exit 1
for process in /proc/[0-9]*; do
  case $(tr '\0' ' ' < "$process/cmdline" 2> /dev/null) in *specsweep\ run\ *) exit 0 ;; esac
done
exit 1
