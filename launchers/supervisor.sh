# What specsweep does on a host: start, watch and end one server, with POSIX sh, /proc, awk and setsid alone.
#
# Nothing is installed there: every script that is fed to /bin/sh begins with processes.sh, gpus.sh and this text
# (functions only) and ends with one call of `main`. What is known about a server lies in STATE_DIR/servers/ID, mode 0700:
#   port cmd leader   written before the start; cmd has the environment and arguments: deleted once read
#   pid               process id, start time and boot id of the leader, written by itself before it runs anything
#   started           the program was found and is about to run        exit   its exit code, 128 + n after signal n
#   log               stdout and stderr                                origin the leader's parent and cgroups
#   seen              PID:START of each of its processes at the last look    stopped   never start this again
#   kept              it was left serving on purpose: it is no leftover (standing.sh)
#
# A process is ours when it is in the leader's session, carries SPECSWEEP_SERVER=ID in its environment, was seen
# before (same pid and start time), descends from one of those, or is one of the `strays` below. A bare pid proves
# nothing: numbers are reused.

begin() { printf '\n@specsweep %s begin %s\n' "$NONCE" "$1"; }
finish() { printf '\n@specsweep %s end %s\n' "$NONCE" "$1"; }
reply() { begin "$1"; printf '%s' "$2"; finish 0; }
unknown() { reply unknown "$1"; exit 0; } # never from a subshell: its output would be swallowed

nap() { sleep "$1" 2>/dev/null || sleep 1; } # fractions are not POSIX
now() { read -r NOW _ < /proc/uptime; NOW=${NOW%.*}${NOW#*.}; } # hundredths of a second; no process is forked

choose() { # ID PID START BOOT PORT: the server the rest is about; BOOT "-": whoever is recorded as its leader
  ID=$1 D=$BASE/servers/$1 P=$2 S=$3 B=$4 PORT=$5 LEADER=0:0 SEEN= TRUSTED=0
  [ "$B" != - ] || { read -r P S B < "$D/pid"; } 2>/dev/null || P=0 S=0 B=-
  case $P:$S:$B in *[!0-9a-f:-]* | *[!0-9]*:*:* | *:*[!0-9]*:* | ??????????*:*:* | :* | *::* | *:) P=0 S=0 B=- ;; esac # noise
  [ "$B" = "$BOOT" ] || return 0 # a leader of an earlier boot is nobody
  LEADER=$P:$S
  { read -r SEEN < "$D/seen"; } 2>/dev/null || SEEN=
}

dirty() { # says who holds the listening sockets in L
  begin dirty
  found=$(holders | while read -r pid _; do describe "$pid"; done)
  set -- $L
  printf '%s' "${found:-a process of user id ${1##*/} that this account cannot look into}"
  finish 0
}

verb_start() { # ID PORT COMMANDS LEADER: COMMANDS set the environment and, as "$@", the program and its arguments
  listeners "$2" "$2"
  [ -z "$L" ] || { dirty; return; }
  choose "$1" 0 0 - "$2"
  [ ! -e "$D" ] || { reply used ""; return; }
  mask=$(umask); umask 077
  command -v setsid > /dev/null || { reply refused "the program setsid is missing"; return; }
  problem=$({ mkdir -p "$BASE/servers" && mkdir "$D" && printf '%s\n' "$2" > "$D/port" &&
    printf '%s\n' "$3" > "$D/cmd" && printf '%s\n' "$4" > "$D/leader"; } 2>&1) || {
      free=$({ df -Pk "$BASE" | awk 'NR == 2 { print $4 }'; } 2>/dev/null)
      reply unwritable "$D cannot be written: $problem${free:+ ($free KiB free)}"; return; }
  ( SPECSWEEP_SERVER=$ID; export SPECSWEEP_SERVER
    setsid sh "$D/leader" "$D" "$mask" < /dev/null >> "$D/log" 2>&1 & )
  now; since=$NOW
  until [ -e "$D/started" ] || [ -s "$D/exit" ] || [ $((NOW - since)) -gt 1000 ]; do nap 0.01; now; done
  rm -f "$D/cmd" # it may hold secrets
  [ -e "$D/started" ] || { reply refused "$(tail -c 2000 "$D/log")"; return; }
  choose "$ID" 0 0 - "$PORT"
  look
  origin "$P" > "$D/origin" && same "$LEADER" || rm -f "$D/origin" # the dead are shown in other cgroups
  reply started "$P $S $B
$D/log"
}

verb_status() { # ID PID START BOOT PORT
  choose "$@"
  state=lost code=-
  same "$LEADER" && state=running
  { read -r code < "$D/exit"; } 2>/dev/null && state=exited # read second: the file is there before the leader ends
  [ "$BOOT" != "$4" ] || look
  reply status "$state $code $({ wc -c < "$D/log"; } 2>/dev/null || echo 0)"
}

verb_logs() { # ID FROM MAX
  D=$BASE/servers/$1
  [ -r "$D/log" ] || unknown "$D/log cannot be read"
  begin logs
  tail -c "+$(($2 + 1))" "$D/log" | head -c "$3"
  finish 0
}

verb_owns() { # ID PID START BOOT PORT: is every socket that listens on the port held by a process of the server?
  choose "$@"
  listeners "$PORT" "$PORT"
  look $(marked)
  held=" $(holders | while read -r pid inode; do
    case " $M" in *" $pid:"*) printf '%s ' "$inode" ;; esac
  done)"
  answer=no
  for socket in $L; do
    inode=${socket#*/}
    case $held in *" ${inode%/*} "*) answer=yes ;; *) answer=no; break ;; esac
  done
  reply owns $answer
}

verb_port() { # LOW HIGH: the lowest port that nothing listens on
  listeners "$1" "$2"
  port=$1
  while [ "$port" -le "$2" ]; do
    case " $L" in *" $port/"*) port=$((port + 1)) ;; *) reply port "$port"; return ;; esac
  done
  dirty
}

send() { # SIGNAL PID:START...: never to one that only has the number, nor to the leader (it keeps the exit code)
  signal=$1; shift
  for token; do [ "$token" = "$LEADER" ] || { same "$token" && kill -s "$signal" "${token%:*}" 2>/dev/null; }; done
}

heads() { # those of M that no other of M has started, the leader left out, and that were not told to end yet
  for token in $M; do
    case "$token $TOLD" in "$LEADER "* | *" $token "*) continue ;; esac
    stat_of "${token%:*}" || continue
    case "$PARENT $M" in "${LEADER%:*} "*) ;; *" $PARENT:"*) continue ;; esac
    printf '%s ' "$token"
  done
}

# A server ends its workers itself, in order. Told to end before their parent, they would look to it like a crash:
# SGLang then waits 60 s for core dumps. So SIGTERM goes to each process only once its parent is gone.
end_all() { # GRACE: fails when something is alive PATIENCE after the first SIGKILL; M names it
  alone=0 empty=0 since= killed= TOLD=' '
  while look $(marked); [ -n "$M" ] || [ $empty = 0 ]; do # empty twice: who forks and ends can slip past one look
    [ -n "$M" ] && empty=0 || { empty=1; continue; }
    now; since=${since:-$NOW}; age=$((NOW - since)) new= # since the first look's end: that one may take its time
    for token in $M; do case " $MET" in *" $token "*) ;; *) new="$new$token " ;; esac; done
    MET="$MET$new"
    [ -z "$killed" ] || [ $((NOW - killed)) -lt "$PATIENCE" ] || return 1
    if [ "$M" = "$LEADER " ]; then
      alone=$((alone + 1))
      [ $alone -lt 20 ] || { killed=${killed:-$NOW}; same "$LEADER" && kill -s KILL "${LEADER%:*}"; } 2>/dev/null
    elif [ $age -ge "$1" ]; then
      SIGNALS=${SIGNALS%KILL}KILL killed=${killed:-$NOW}; send KILL $M
    else
      new=$(heads)
      [ -z "$new" ] || { SIGNALS=${SIGNALS:-"TERM "}; send TERM $new; TOLD="$TOLD$new"; }
    fi
    if [ $age -lt 50 ]; then nap 0.02; else nap 0.2; fi
  done
}

young() { stat_of "$1" && [ -O "/proc/$1" ] && [ "$BEGAN" -ge "${LEADER#*:}" ] && [ "$TTY" = 0 ]; }

twin() { young "$1" && [ "$(origin "$1")" = "$(cat "$D/origin")" ]; } # orphaned as the leader was, in its cgroups

wiped() { # PID: its environment can be read and has no variable: emptied, or overwritten by a process title
  [ -r "/proc/$1/environ" ] && ! { tr '\000' '\n' < "/proc/$1/environ"; } 2>/dev/null |
    LC_ALL=C grep -q '^[A-Za-z_][A-Za-z0-9_]*='
}

orphans() { # twins of the leader with a wiped environment
  read -r from < "$D/origin"
  for pid in $(cat /proc/[0-9]*/stat 2>/dev/null | LC_ALL=C awk -v since="${LEADER#*:}" -v from="$from" '
    /^[0-9]+ \(.*\) [A-Za-z] [0-9]/ { pid = $1; sub(/^.*\) /, ""); if ($2 == from && $20 >= since + 0) print pid }')
  do ! wiped "$pid" || ! twin "$pid" || printf '%s ' "$pid"; done
}

on_gpu() { # PID...: those that hold GPU memory; nobody, when nvidia-smi does not say
  [ $# -gt 0 ] && find_smi && ask_smi 1000 --query-compute-apps=gpu_uuid,pid,process_name,used_memory || return 0
  for pid in $(smi_pids); do case " $* " in *" $pid "*) printf '%s ' "$pid" ;; esac; done
}

# Escapees that were never seen are still proved ours by what they hold: the log as their output; our port, which was
# free before the leader started; GPU memory, if besides nothing tells them from a child that lost its environment.
strays() { # STRAYS becomes their PID:START words
  STRAYS= found=$(logging)
  listeners "$PORT" "$PORT"
  if [ -s "$D/origin" ] && [ "$LEADER" != 0:0 ]; then
    for pid in $([ -z "$L" ] || holders | while read -r pid _; do echo "$pid"; done); do
      ! twin "$pid" || found="$found $pid"
    done
    found="$found $(on_gpu $(orphans))"
  fi
  for pid in $found; do ! stat_of "$pid" || ! same "$pid:$BEGAN" || STRAYS="$STRAYS$pid:$BEGAN "; done
}

end_strays() { # GRACE, for the first round; fails when some are left after the third
  for grace in "$1" 0 0 -; do
    strays
    [ -n "$STRAYS" ] || return 0
    M=$STRAYS SEEN=$STRAYS
    [ "$grace" != - ] && end_all "$grace" || return 1
  done
}

verb_stop() { # ID PID START BOOT PORT GRACE PATIENCE (hundredths of a second): waits PATIENCE for the end of what was
  # killed, and then for the port
  choose "$@"; PATIENCE=$7
  umask 077
  mkdir -p "$D" && printf '' > "$D/stopped" # a start that is still under way must find this
  rm -f "$D/cmd"
  now; first=$NOW; MET=; SIGNALS=
  end_all "$6" && end_strays "$6" || {
    begin survivors; for token in $M; do describe "${token%:*}"; done; finish 0; return; }
  now; since=$NOW
  while listeners "$PORT" "$PORT"; [ -n "$L" ] && [ $((NOW - since)) -lt "$PATIENCE" ]; do nap 0.1; now; done
  code=-; { read -r code < "$D/exit"; } 2>/dev/null
  free=no; [ -n "$L" ] || free=yes
  set -- $MET; now
  reply stopped "$code $# $((NOW - first)) $free $SIGNALS"
}

each_server() { # COMMAND: runs it for every server recorded here, newest first, with ALIVE set to yes or no
  names=$(ls -1t "$BASE/servers" 2>/dev/null); found=" $({ marks; logged; } | while read -r _ id; do printf '%s ' "$id"; done)"
  for name in $names; do
    case $name in *[!A-Za-z0-9._-]* | .* | -*) continue ;; esac
    [ -d "$BASE/servers/$name" ] && [ ! -L "$BASE/servers/$name" ] || continue
    { read -r port < "$BASE/servers/$name/port"; } 2>/dev/null || port=0
    case $port in *[!0-9]* | ??????* | "") port=0 ;; esac
    choose "$name" 0 0 - "$port"
    case $found in *" $ID "*) ALIVE=yes ;; *) ALIVE=no ;; esac
    for token in $LEADER $SEEN; do same "$token" && ALIVE=yes; done
    "$1"
  done
}

if_alive() { [ $ALIVE = no ] || [ -s "$D/kept" ] || echo "$ID $P $S $B $PORT"; }
verb_list() { begin list; each_server if_alive; finish 0; }

drop_old() { kept=$((kept + 1)); [ $ALIVE = yes ] || [ $kept -le "$KEEP" ] || rm -rf "$D"; }
verb_prune() { KEEP=$1 kept=0; each_server drop_old; rm -f "$BASE"/nvidia-smi.[0-9]*; reply pruned ""; } # KEEP: of the newest

verb_run() { begin run; ( exec "$@" ); finish $?; }

main() { # NONCE STATE_DIR VERB [ARGUMENT...]
  set -u
  NONCE=$1 BASE=$2 VERB=$3; shift 3
  case $BASE in "~") BASE=$HOME ;; "~/"*) BASE=$HOME/${BASE#"~/"} ;; esac
  { read -r BOOT < /proc/sys/kernel/random/boot_id; } 2>/dev/null || unknown "there is no /proc of Linux"
  "verb_$VERB" "$@"
}
