# What SshShell needs on a host beside supervisor.sh. Functions only, POSIX sh; fed to /bin/sh on stdin.

start_of() { # PID: its start time (field 22 of /proc/PID/stat); nothing when there is no such process
  line=
  { while IFS= read -r part || [ -n "$part" ]; do line="$line $part"; done < "/proc/$1/stat"; } 2>/dev/null
  set -- ${line##*\) }
  printf '%s' "${20-}"
}

shells() { # TOKEN: pids of the shells that run as `/bin/sh -s TOKEN`, and of their forks
  for file in $(grep -lF -e "$1" /proc/[0-9]*/cmdline 2>/dev/null); do
    words=$({ tr '\000' ' ' < "$file"; } 2>/dev/null)
    pid=${file#/proc/}
    [ "$words" != "/bin/sh -s $1 " ] || printf '%s ' "${pid%/cmdline}"
  done
}

end_shell() { # TOKEN: kills that shell with its process group, and returns when it is gone; fails after 5 s
  tries=0
  while found=$(shells "$1"); [ -n "$found" ]; do
    [ $tries -lt 50 ] || return 1
    tries=$((tries + 1))
    for pid in $found; do
      line=$({ cat "/proc/$pid/stat"; } 2>/dev/null)
      set -- "$1" ${line##*\) }
      # sshd gives each session a process group of its own; in any other group there may be innocent processes
      if [ "${4-}" = "${5-}" ] && [ "${4:-0}" -gt 1 ]; then kill -KILL "-$4"; else kill -KILL "$pid"; fi
    done 2>/dev/null
    sleep 0.1 2>/dev/null || sleep 1
  done
}

answer() { # KIND TEXT
  printf '\n@specsweep %s begin %s\n%s\n@specsweep %s end 0\n' "$NONCE" "$1" "$2" "$NONCE"
}
refuse() { answer "$1" "$2"; exit 1; }

watch() { # PID START NAP COUNT: ends that process after COUNT naps without a SIGUSR1 (a beat of the client)
  trap 'silent=0' USR1
  trap 'kill "$nap"; exit 0' TERM
  silent=0
  answer held "" # only now, as the signal would have killed us before
  exec > /dev/null 2>&1
  while [ $silent -lt "$4" ]; do
    silent=$((silent + 1))
    sleep "$3" & nap=$!
    wait "$nap"; kill "$nap"
  done
  [ "$(start_of "$1")" != "$2" ] || kill -KILL "$1"
}

hold_lock() { # NONCE FILE WHO OLD_TOKENS NAP COUNT: until the client goes away, is cut off, or beats no more
  NONCE=$1 file=$2 who=$3
  case $file in "~/"*) file=$HOME/${file#"~/"} ;; esac
  command -v flock > /dev/null || refuse refused "the program flock is missing"
  umask 077
  problem=$(mkdir -p "${file%/*}" 2>&1) || refuse refused "$problem"
  [ ! -L "$file" ] || refuse refused "it is a symbolic link"
  problem=$( (: 9<> "$file") 2>&1) || refuse refused "$problem" # a failing exec would end this shell
  exec 9<> "$file"
  for old in $4; do # holders that this very client left on connections that broke: sshd can take hours to see that
    end_shell "$old" || refuse refused "our own earlier holder does not end"
  done
  flock -n 9 || refuse busy "$(head -c 1000 "$file")"
  printf '%s\n' "$who" > "$file"
  # In its turn it must not hold the lock (a `9>&-` at the call would: dash keeps a copy to restore).
  (exec 9>&-; watch $$ "$(start_of $$)" "$5" "$6") & watcher=$!
  while read -r _ && kill -USR1 "$watcher"; do :; done 2> /dev/null # stdout stays open: its end is our death
  kill -TERM "$watcher" 2> /dev/null
  exec 9>&-
}
