# What can be read from /proc about processes and sockets. Functions only; they need `choose` and `unknown` of
# supervisor.sh. "I could not tell" is never taken for "there is none": `unknown` then ends the script.

stat_of() { # PID: its fields from /proc/PID/stat; fails when there is no such process
  STAT=
  { while IFS= read -r part || [ -n "$part" ]; do STAT="$STAT $part"; done < "/proc/$1/stat"; } 2>/dev/null
  [ -n "$STAT" ] || return 1
  set -- ${STAT##*\) } # a name may hold spaces, parentheses and newlines: fields count from the last ")"
  [ $# -ge 20 ] || return 1
  STATE=$1 PARENT=$2 TTY=$5 THREADS=${18} BEGAN=${20}
}

same() { # PID:START: that very process is alive; a zombie is dead, unless only its main thread ended
  stat_of "${1%:*}" && [ "$BEGAN" = "${1#*:}" ] || return 1
  case $STATE in [XZ]) [ "$THREADS" -gt 1 ] ;; esac
}

marks() { # every marked process, as lines "PID ID"
  head -c 1048576 /proc/[0-9]*/environ 2>/dev/null | LC_ALL=C tr '\000' '\n' | LC_ALL=C awk '
    /^==> \/proc\/[0-9]+\/environ <==$/ { split($0, path, "/"); pid = path[3]; next }
    /^SPECSWEEP_SERVER=/ { print pid, substr($0, 18) }'
}

marked() { # processes that carry the marker of ID; looked at one by one, as a variable may imitate a header line
  for pid in $(marks | while read -r pid mark; do [ "$mark" != "$ID" ] || printf '%s ' "$pid"; done); do
    { tr '\000' '\n' < "/proc/$pid/environ"; } 2>/dev/null | grep -qxF "SPECSWEEP_SERVER=$ID" &&
      printf '%s ' "$pid"
  done
}

# A session counts once one of its processes is proven ours: the kernel gives no number anew that still names one.
MEMBERS='
  { whole = ($0 ~ /^[0-9]+ \(.*\) [A-Za-z] [0-9]/) ? $0 : rest $0; rest = "" }
  whole !~ /\) [A-Za-z] [0-9]/ { rest = whole " "; next }
  { split(whole, word, " "); pid = word[1]; sub(/^.*\) /, "", whole); split(whole, f, " ")
    if (pid == me) looked = 1
    if (pid == me || f[2] == me) next
    parent[pid] = f[2]; session[pid] = f[4]; began[pid] = f[20]; gone[pid] = (f[1] ~ /[XZ]/ && f[18] <= 1) }
  END {
    if (!looked) exit
    n = split(known, word, " ")
    for (i = 1; i <= n; i++) { split(word[i], f, ":"); if (f[1] in began && began[f[1]] == f[2]) ours[f[1]] }
    n = split(marked, word, " ")
    for (i = 1; i <= n; i++) if (word[i] in began) ours[word[i]]
    for (pid in ours) if (sid > 1 && session[pid] == sid) trusted = 1
    do { grown = 0
      for (pid in began) if (!(pid in ours) && ((trusted && session[pid] == sid) || parent[pid] in ours)) {
        ours[pid]; grown = 1 }
    } while (grown)
    for (pid in ours) if (!gone[pid]) printf "%s:%s ", pid, began[pid]
    print trusted ? "+" : "." }'

look() { # [PID...]: M becomes all that is alive of the server, as PID:START words; it is remembered
  M=$(cat /proc/[0-9]*/stat 2>/dev/null | LC_ALL=C awk -v me=$$ -v sid="${LEADER%:*}" -v known="$LEADER $SEEN" \
    -v marked="$*" -v trusted="$TRUSTED" "$MEMBERS")
  case $M in *.) M=${M%.} ;; *+) M=${M%+} TRUSTED=1 ;; *) unknown "the processes in /proc cannot be read" ;; esac
  [ "$M" = "$SEEN" ] || { [ -d "$D" ] && printf '%s\n' "$M" > "$D/seen"; } 2>/dev/null
  SEEN=$M
}

listeners() { # LOW HIGH: L becomes the listening sockets as PORT/INODE/UID words, whatever their address
  L=$(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | LC_ALL=C awk -v low="$1" -v high="$2" '
    function number(hex, i, n) {
      for (i = 1; i <= length(hex); i++) n = n * 16 + index(digits, substr(hex, i, 1)) - 1
      return n + 0 }
    BEGIN { digits = "0123456789ABCDEF" }
    /local_address/ { looked = 1; next }
    $4 == "0A" { sub(/^.*:/, "", $2); port = number($2)
      if (low <= port && port <= high) printf "%d/%s/%s ", port, $10, $8 }
    END { if (looked) print "." }')
  case $L in *.) L=${L%.} ;; *) unknown "the sockets in /proc/net/tcp cannot be read" ;; esac
}

holders() { # lines "PID INODE" of the processes that hold the sockets in L open
  ls -ln /proc/[0-9]*/fd 2>/dev/null | LC_ALL=C awk -v sockets="$L" '
    BEGIN { n = split(sockets, word, " "); for (i = 1; i <= n; i++) { split(word[i], f, "/"); wanted[f[2]] } }
    /^\/proc\/[0-9]+\/fd:$/ { split($0, path, "/"); pid = path[3] }
    match($0, /socket:\[[0-9]+\]$/) { inode = substr($0, RSTART + 8, RLENGTH - 9)
      if (inode in wanted && !((pid, inode) in told)) { told[pid, inode]; print pid, inode } }'
}

describe() { # PID: one line for a message, without control characters
  words=$(head -c 300 "/proc/$1/cmdline" 2>/dev/null | LC_ALL=C tr '\000-\037\177' ' ')
  [ -n "$words" ] || { read -r words < "/proc/$1/comm"; } 2>/dev/null
  printf 'pid %s: %s\n' "$1" "${words:-?}"
}

logged() { # [PID]: lines "PID ID": its standard output or error is the log of server ID, by the name of the file.
  # What a process cannot shed by accident: a new session, an emptied environment and a dead parent leave it as it is
  ls -ln /proc/${1:-[0-9]*}/fd/[12] 2>/dev/null | LC_ALL=C awk '
    match($0, /\/proc\/[0-9]+\/fd\/[12] -> /) { split(substr($0, RSTART), path, "/"); pid = path[3] }
    match($0, /\/servers\/[A-Za-z0-9._-]+\/log$/) { split(substr($0, RSTART), path, "/")
      if (pid != "" && !told[pid, path[3]]++) print pid, path[3] }'
}

logging() { # the processes whose output really goes to the log of ID; by file, as a name may imitate another
  for pid in $(logged | while read -r pid id; do [ "$id" != "$ID" ] || printf '%s ' "$pid"; done); do
    for fd in 1 2; do
      [ ! "/proc/$pid/fd/$fd" -ef "$D/log" ] || { printf '%s ' "$pid"; break; }
    done
  done
}

origin() { stat_of "$1" && echo "$PARENT" && cat "/proc/$1/cgroup"; } 2>/dev/null
