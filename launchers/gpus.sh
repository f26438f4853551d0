# What nvidia-smi says, bounded in time. Functions only; they need processes.sh, and some of supervisor.sh.

find_smi() { # SMI becomes the path of nvidia-smi; fails where there is none
  SMI=$(command -v nvidia-smi) && return 0
  for SMI in /usr/bin/nvidia-smi /usr/local/bin/nvidia-smi /usr/local/nvidia/bin/nvidia-smi; do
    [ ! -x "$SMI" ] || return 0
  done
  return 1
}

# Its answer goes to a file: under a driver that hangs nvidia-smi survives SIGKILL, and a pipe would be waited for.
ask_smi() { # LIMIT QUERY: OUT becomes its answer and CODE its exit code, or: hung (killed after LIMIT hundredths of a
  # second), stuck (and survived that). Fails when there is no place for the answer.
  answer=$BASE/nvidia-smi.$$ OUT=
  ( umask 077; mkdir -p "$BASE" && : > "$answer" ) 2>/dev/null || return 1
  LC_ALL=C setsid "$SMI" "$2" --format=csv,noheader,nounits < /dev/null > "$answer" 2>&1 &
  smi=$!; now; asked=$NOW CODE=
  while runs "$smi"; do
    now; age=$((NOW - asked))
    if [ $age -ge $(($1 + 100)) ]; then
      CODE=stuck; break
    elif [ $age -ge "$1" ] && [ -z "$CODE" ]; then
      CODE=hung; kill -KILL "-$smi" 2>/dev/null
    fi
    nap 0.02
  done
  [ -n "$CODE" ] || { wait "$smi" 2>/dev/null; CODE=$?
    OUT=$(head -c 100000 "$answer" | LC_ALL=C tr -d '\000-\011\013-\037\177'); }
  rm -f "$answer"
}

runs() { stat_of "$1" && case $STATE in [XZ]) return 1 ;; esac; }

owner_of() { # PID: the server of ours that it belongs to, "-" for none that can be seen, "?" when it is not visible
  [ -d "/proc/$1" ] || { echo "?"; return; }
  owner=$({ tr '\000' '\n' < "/proc/$1/environ"; } 2>/dev/null | while IFS= read -r line; do
    case $line in SPECSWEEP_SERVER=*) echo "${line#*=}"; break ;; esac
  done)
  [ -n "$owner" ] || owner=$(logged "$1" | while read -r _ id; do echo "$id"; break; done)
  case ${owner:--} in *[!A-Za-z0-9._-]*) echo "-" ;; *) echo "${owner:--}" ;; esac
}

rows() { # WORD TEXT: each line of TEXT that is not empty, with WORD before it
  printf '%s\n' "$2" | while IFS= read -r row; do [ -z "$row" ] || printf '%s %s\n' "$1" "$row"; done
}

smi_pids() { # the process ids in an answer to --query-compute-apps, at most 100
  printf '%s\n' "$OUT" | LC_ALL=C awk -F, '$2 ~ /^ *[0-9]+ *$/ && !told[$2 + 0]++ && ++n <= 100 { print $2 + 0 }'
}

verb_gpus() { # LIMIT: lines "gpu ROW", "app ROW" and "code WORD CODE" as nvidia-smi gave them, then for each
  # process "pid PID OWNER DESCRIPTION"
  find_smi || { reply nosmi ""; return; }
  ask_smi "$1" --query-gpu=index,name,uuid,memory.used,memory.total || unknown "$BASE cannot be written"
  told=$(echo "code gpu $CODE"; rows gpu "$OUT")
  case $CODE in hung | stuck) ;; *)
    ask_smi "$1" --query-compute-apps=gpu_uuid,pid,process_name,used_memory || unknown "$BASE cannot be written"
    told=$told$(echo; echo "code app $CODE"; rows app "$OUT"
      for pid in $(smi_pids); do printf 'pid %s ' "$pid"; printf '%s ' "$(owner_of "$pid")"; describe "$pid"; done) ;;
  esac
  reply gpus "$told"
}

big_pids() { # MIB: the process ids in an answer to --query-compute-apps that hold more than MIB of a GPU, at most 100
  printf '%s\n' "$OUT" | LC_ALL=C awk -F, -v mib="$1" '
    $2 ~ /^ *[0-9]+ *$/ && $NF + 0 > mib + 0 && !told[$2 + 0]++ && ++n <= 100 { print $2 + 0 }'
}

# Whoever is told to be of nobody's server will be called a stranger. So such a process is looked at again: as a stop
# would, all of the server counts; and one that began after the question only has the number of the one that was meant.
closer() { # PID: ID, "-" or "?"
  case " $M $TWINS" in
    *" $1:"* | *" $1 "*) echo "$ID" ;;
    *) stat_of "$1" && [ "$BEGAN" -le "$ASKED" ] && echo - || echo "?" ;;
  esac
}

verb_sample() { # LIMIT IDLE FIELDS ID PID START BOOT PORT: as verb_gpus, with FIELDS of each GPU; a line "pid" only for
  # processes that hold more than IDLE MiB of one. It notes nothing: other verbs run at the same time
  find_smi || { reply nosmi ""; return; }
  stat_of $$ && ASKED=$BEGAN || unknown "the processes in /proc cannot be read"
  limit=$1 idle=$2 fields=$3 M= TWINS= pairs= strange=; shift 3; choose "$@"
  ask_smi "$limit" "--query-gpu=$fields" || unknown "$BASE cannot be written"
  told=$(echo "code gpu $CODE"; rows gpu "$OUT")
  case $CODE in hung | stuck) reply sample "$told"; return ;; esac
  ask_smi "$limit" --query-compute-apps=gpu_uuid,pid,process_name,used_memory || unknown "$BASE cannot be written"
  for pid in $(big_pids "$idle"); do
    owner=$(owner_of "$pid"); pairs="$pairs $pid/$owner"
    [ "$owner" != - ] || strange=yes
  done
  if [ -n "$strange" ]; then
    folder=$D D=; look $(marked); D=$folder
    [ ! -s "$D/origin" ] || [ "$LEADER" = 0:0 ] || TWINS=$(orphans)
  fi
  told=$told$(echo; echo "code app $CODE"; rows app "$OUT"
    for pair in $pairs; do
      pid=${pair%/*} owner=${pair#*/}
      [ "$owner" != - ] || owner=$(closer "$pid")
      printf 'pid %s %s ' "$pid" "$owner"; describe "$pid"
    done)
  reply sample "$told"
}
