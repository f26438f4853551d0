# What `specsweep doctor` reads of a host. Functions only, after those of supervisor.sh. Nothing is written there: no
# file, no folder, no lock; no process is left behind.

bounded() { # SECONDS COMMAND...: 124 or 137 when it took longer
  if command -v timeout > /dev/null; then limit=$1; shift; timeout -k 2 "$limit" "$@"; else shift; "$@"; fi
}

shown() { printf '%s\n' "$1" | head -c 200000 | LC_ALL=C tr -d '\000-\010\013-\037\177'; } # TEXT: tabs and lines stay

# In the place of the one in gpus.sh, which keeps the answer in a file: this one survives no driver that hangs, so it
# is only asked in scripts of its own.
ask_smi() { # LIMIT QUERY
  OUT=$(LC_ALL=C bounded $((($1 + 99) / 100)) "$SMI" "$2" --format=csv,noheader,nounits < /dev/null 2>&1); CODE=$?
  OUT=$(shown "$OUT")
  case $CODE in 124 | 137) CODE=hung ;; esac
}

describe() { # PID: as in processes.sh, with whose it is
  words=$(head -c 300 "/proc/$1/cmdline" 2>/dev/null | LC_ALL=C tr '\000-\037\177' ' ')
  [ -n "$words" ] || { read -r words < "/proc/$1/comm"; } 2>/dev/null
  printf 'pid %s of %s: %s\n' "$1" "$(user_of "$1")" "${words:-?}"
}

# shellcheck disable=SC2012  # the owner of a folder whose name is a number
user_of() { ls -ld "/proc/$1" 2>/dev/null | awk '{ print $3 }'; } # PID

verb_cards() { # SECONDS then WORD ARGUMENTS...: for each pair lines "WORD ROW" and "code WORD CODE"
  find_smi || { reply nosmi ""; return; }
  begin cards
  limit=$1; shift
  while [ $# -gt 1 ]; do
    # shellcheck disable=SC2086  # several arguments in one word
    answer=$(LC_ALL=C bounded "$limit" "$SMI" $2 < /dev/null 2>&1); code=$?
    rows "$1" "$(shown "$answer")"
    echo "code $1 $code"
    case $code in 124 | 137) break ;; esac
    shift 2
  done
  finish 0
}

look_system() {
  rows os "$(uname -srm)"
  rows distribution "$(sed -n 's/^PRETTY_NAME=//p' /etc/os-release | head -n 1)"
  rows user "$(id -un)"
  rows shell "${SHELL:-}"
  rows load "$(cat /proc/loadavg)"
  for program in awk flock setsid sed tail timeout; do
    command -v "$program" > /dev/null || rows missing "$program"
  done
}

look_state() {
  place=$BASE
  [ ! -L "$BASE/host.lock" ] || rows state link
  while [ ! -e "$place" ] && [ "$place" != / ]; do place=${place%/*}; place=${place:-/}; done
  [ "$place" = "$BASE" ] || rows state absent
  [ -d "$place" ] || rows state nofolder
  { [ -w "$place" ] && [ -x "$place" ]; } || rows state readonly
  rows place "$place"
  rows disk "$(df -Pk -- "$place" | awk 'NR == 2 { print $2, $4 }')"
  rows inodes "$(df -Pi -- "$place" | awk 'NR == 2 { print $4 }')"
  if [ -f "$BASE/host.lock" ]; then
    inode=$(ls -di "$BASE/host.lock"); inode=${inode%% *}
    held=$(awk -v inode="$inode" '$2 == "FLOCK" { n = split($6, f, ":"); if (f[n - 1] == inode || f[n] == inode) print "held" }' \
      /proc/locks | head -n 1)
    rows lock "${held:-free} $(head -c 1000 "$BASE/host.lock" | tr '\n' ' ')"
  fi
}

look_limits() {
  rows limit "$(grep -E '^Max (open files|locked memory|processes) ' /proc/self/limits)"
  rows shm "$(df -Pk /dev/shm | awk 'NR == 2 { print $2, $4 }')"
  rows cpus "$(cat /sys/devices/system/cpu/online)"
  rows cpuset "$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)"
  rows memory "$(grep -E '^(MemTotal|MemAvailable|SwapTotal|SwapFree):' /proc/meminfo)"
  rows ceiling "$(cat /sys/fs/cgroup/memory/memory.limit_in_bytes)"
  group=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)
  while [ "${#group}" -ge 14 ]; do
    rows ceiling "$(cat "$group/memory.max")"
    group=${group%/*}
  done
}

SERVERS='sglang\.launch_server|sglang::|sglang serve|vllm serve|vllm\.entrypoints|VLLM::|llama-server|llamacpp_server|text-generation-(launcher|server|router)|tritonserver|trtllm-serve|lmdeploy|ollama (serve|runner)'

look_servers() { # lines "server PID PARENT OWNER DESCRIPTION" of inference servers; specsweep only names them
  for pid in $(head -c 400 /proc/[0-9]*/cmdline | LC_ALL=C tr '\000' ' ' | LC_ALL=C awk -v wanted="$SERVERS" '
    /^==> \/proc\/[0-9]+\/cmdline <==$/ { split($0, path, "/"); pid = path[3]; next }
    pid != "" && $0 ~ wanted && !/(sweeper|specsweep) [a-z]+ / && ++n <= 200 { print pid; pid = "" }')
  do
    stat_of "$pid" || continue
    printf 'server %s %s %s ' "$pid" "$PARENT" "$(owner_of "$pid")"; describe "$pid"
  done
}

verb_look() { # the host, in lines "WORD TEXT"
  begin look
  { look_system; look_state; look_limits; look_servers; } 2> /dev/null
  finish 0
}

look_files() { # in a model's folder: lines "N file BYTES NAME", "N shard NAME", "N total BYTES", "N hidden NAME"
  find -L . -maxdepth 1 -type f \( -name '*.safetensors' -o -name '*.bin' -o -name '*.pt' -o -name '*.pth' -o \
    -name '*.gguf' -o -name '*.incomplete' -o -name '*.aria2' -o -name 'config.json' \) -exec ls -lnL {} + |
    awk -v n="$1" '++lines <= 5000 { size = $5; name = $0; sub(/^.* \.\//, "", name); print n, "file", size, name }'
  for file in *.safetensors *.bin config.json; do
    [ ! -e "$file" ] || [ -r "$file" ] || rows "$1 hidden" "$file"
    [ ! -L "$file" ] || [ -e "$file" ] || rows "$1 dangling" "$file"
  done
  for file in *.index.json; do
    [ -r "$file" ] || continue
    rows "$1 shard" "$(head -c 64000000 "$file" | grep -oE '"[^"/]{1,200}\.(safetensors|bin)"' | tr -d '"' | sort -u | head -n 5000)"
    rows "$1 total" "$(head -c 64000000 "$file" | grep -oE '"total_size": *[0-9]{1,18}' | head -n 1 | tr -cd '0-9')"
  done
}

verb_models() { # PATH...: what lies in each, in lines "N WORD TEXT"
  begin models
  n=0
  for path; do
    if [ -d "$path" ]; then
      echo "$n kind folder"
      ( cd -- "$path" && look_files "$n" || echo "$n kind closed" )
    elif [ -f "$path" ]; then
      echo "$n kind file"
      [ -r "$path" ] || echo "$n kind closed"
      rows "$n file" "$(ls -lnL -- "$path" | awk '{ print $5 }') ${path##*/}"
      rows "$n magic" "$(head -c 4 -- "$path" | LC_ALL=C tr -cd 'A-Za-z0-9')"
    else
      echo "$n kind absent"
    fi
    rows "$n disk" "$(df -PT -- "$path" 2>/dev/null | awk 'NR == 2 { print $2 }')"
    n=$((n + 1))
  done 2> /dev/null
  finish 0
}
