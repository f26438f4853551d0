# Servers that stand on a host beside a sweep: one of ours that was left serving, and one of somebody else that the
# sweep was told to replace. Functions only; they need supervisor.sh.
#
# What is known about the one that was replaced lies in STATE_DIR/replaced/PORT, mode 0700, written before it is
# stopped, so that it can be started again whatever becomes of the sweep:
#   cmd   starts it: working folder, environment, program and arguments (mode 0600: it may hold secrets)
#   argv  its command line as read   pid  PID START BOOT of its process   out  where its output goes

verb_keep() { # ID NOTE: this server of ours is no leftover: it was left serving on purpose
  [ -d "$BASE/servers/$1" ] || unknown "there is no server $1"
  umask 077
  printf '%s\n' "$2" > "$BASE/servers/$1/kept.new" && mv "$BASE/servers/$1/kept.new" "$BASE/servers/$1/kept" ||
    unknown "$BASE/servers/$1 cannot be written"
  reply kept ""
}

if_kept() { # a line "ID PID START BOOT PORT NOTE" for each that still runs
  [ $ALIVE = no ] || [ ! -s "$D/kept" ] || { IFS= read -r note < "$D/kept"; printf '%s\n' "$ID $P $S $B $PORT $note"; }
}
verb_kept() { begin kept; each_server if_kept; finish 0; }

quoted() { # the NUL-separated words of its input as words of a shell, on one line (or more, where a word has several)
  LC_ALL=C xargs -0 -n 1 sh -c '
    case $0 in env) case $1 in [A-Za-z_]*=*) ;; *) exit 0 ;; esac ;; esac
    printf "%s\n" "$1" | sed "s/'\''/'\''\\\\'\'''\''/g; 1s/^/'\''/; \$s/\$/'\''/" | awk "NR > 1 { print \"\" } { printf \"%s\", \$0 }"
    printf " "' "$1"
}

listening() { # P becomes the process that listens on PORT, the topmost where several share the socket; else it fails
  found=" $(holders | while read -r pid _; do printf '%s ' "$pid"; done)" P=
  for pid in $found; do
    stat_of "$pid" || continue
    case $found in *" $PARENT "*) continue ;; esac
    [ -z "$P" ] || [ "$P" = "$pid" ] || return 1
    P=$pid S=$BEGAN
  done
  [ -n "$P" ]
}

cannot_restore() { # says why the process P could not be started again as it is
  [ -O "/proc/$P" ] || { echo "it belongs to another user"; return; }
  for space in mnt pid; do
    [ "$(readlink "/proc/$P/ns/$space")" = "$(readlink "/proc/self/ns/$space")" ] || { echo "it runs in a container"; return; }
  done
  ! { tr '\000' '\n' < "/proc/$P/environ"; } 2>/dev/null | grep -q '^SPECSWEEP_SERVER=' || { echo "specsweep started it"; return; }
  ! wiped "$P" || { echo "its environment cannot be read: the process has overwritten it"; return; }
  program=$(tr '\000' '\n' < "/proc/$P/cmdline" | head -n 1)
  path=$(tr '\000' '\n' < "/proc/$P/environ" | sed -n 's/^PATH=//p' | head -n 1)
  case $program in *=* | -*) echo "its program is called $program"; return ;; esac
  ( cd "/proc/$P/cwd" 2>/dev/null && PATH=${path:-$PATH} && case $program in
      */*) [ -x "$program" ] ;;
      *) command -v "$program" > /dev/null ;;
    esac ) || echo "its command line cannot be read, or its program is gone: $(describe "$P")"
}

remember() { # everything that it takes to start P again; fails when that cannot be written
  umask 077
  new=$BASE/replaced/.new.$$ D=$BASE/replaced/$PORT
  mkdir -p "$BASE/replaced" && rm -rf "$new" && mkdir "$new" || return 1
  folder=$(readlink "/proc/$P/cwd") out=$(readlink "/proc/$P/fd/1")
  [ -f "$out" ] && [ -w "$out" ] || out=$BASE/replaced/$PORT.log
  printf '%s' "$out" > "$new/out" && printf '%s %s %s\n' "$P" "$S" "$BOOT" > "$new/pid" &&
    cat "/proc/$P/cmdline" > "$new/argv" &&
    { printf 'cd %s && exec env -i ' "$(printf '%s\000' "$folder" | quoted word)"
      quoted env < "/proc/$P/environ"; quoted word < "/proc/$P/cmdline"; echo; } > "$new/cmd" &&
    sh -n "$new/cmd" && { sync "$new/cmd" 2>/dev/null || sync; } &&
    rm -rf "$D" && mv "$new" "$D"
}

verb_replace() { # PORT GRACE PATIENCE: writes down who listens on PORT, then stops it
  ID=replaced.$1 PORT=$1 PATIENCE=$3 TRUSTED=0 LEADER=0:0 SEEN="" MET="" SIGNALS=""
  listeners "$PORT" "$PORT"
  [ -n "$L" ] || { reply nobody ""; return; }
  listening || { reply refused "it cannot be told which process it is: $(dirty_words)"; return; }
  problem=$(cannot_restore)
  [ -z "$problem" ] || { reply refused "$problem ($(describe "$P"))"; return; }
  remember || { reply refused "$BASE/replaced cannot be written"; return; }
  SEEN="$P:$S "
  end_all "$2" || { begin survivors; for token in $M; do describe "${token%:*}"; done; finish 0; return; }
  now; since=$NOW
  while listeners "$PORT" "$PORT"; [ -n "$L" ] && [ $((NOW - since)) -lt "$PATIENCE" ]; do nap 0.1; now; done
  [ -z "$L" ] || { reply revived "$(dirty_words)"; return; }
  reply replaced "$(tr '\000' ' ' < "$D/argv")"
}

dirty_words() { holders | while read -r pid _; do describe "$pid"; done | head -n 5; }

verb_pending() { # the ports of which a server was stopped and not started again
  begin pending
  for folder in "$BASE"/replaced/[0-9]*; do [ ! -s "$folder/cmd" ] || echo "${folder##*/}"; done
  finish 0
}

verb_restore() { # PORT: starts it again, with nothing of ours about it
  D=$BASE/replaced/$1
  [ -s "$D/cmd" ] || { reply nothing ""; return; }
  listeners "$1" "$1"
  if [ -n "$L" ]; then
    read -r P S B < "$D/pid"
    [ "$B" = "$BOOT" ] && same "$P:$S" && { rm -rf "$D"; reply running ""; return; }
    reply taken "$(dirty_words)"; return
  fi
  out=$(cat "$D/out")
  ( umask 022; setsid sh "$D/cmd" < /dev/null >> "$out" 2>&1 & echo $! > "$D/started" )
  reply started "$out"
}

verb_restored() { # PORT: up, starting or dead
  D=$BASE/replaced/$1
  listeners "$1" "$1"
  if [ -n "$L" ]; then rm -rf "$D"; reply restored up; return; fi
  { read -r pid < "$D/started"; } 2>/dev/null || pid=0
  # setsid may have forked: then the one that was started is gone, and its session's leader is what counts
  if runs "$pid" || [ -n "$(cat /proc/[0-9]*/stat 2>/dev/null | LC_ALL=C awk -v pid="$pid" '{ sub(/^.*\) /, ""); if ($4 == pid && $1 !~ /[XZ]/) print $4 }')" ]
  then reply restored starting; else reply restored "dead $(tail -c 600 "$(cat "$D/out")" 2>/dev/null | tr -d '\000-\011\013-\037\177')"; fi
}
