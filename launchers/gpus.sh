# What nvidia-smi says, bounded in time. Functions only; they need processes.sh, and `now` and `nap` of supervisor.sh.

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
  setsid "$SMI" "$2" --format=csv,noheader,nounits < /dev/null > "$answer" 2>&1 &
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
