# Leads the session of one server and keeps its exit code. supervisor.sh copies it into the server's state folder
# and starts it with setsid. $1: the state folder; $2: the umask the server is to have (the host's own).

D=$1 mask=$2
trap '' HUP      # the server inherits this: it outlives the connection that started it
trap : TERM       # the server does not inherit this: a leader that died of it would lose the exit code
umask 077
read -r s < "/proc/$$/stat"
read -r boot < /proc/sys/kernel/random/boot_id
set -- ${s##*\) }
printf '%s %s %s\n' "$$" "${20}" "$boot" > "$D/pid.new" && mv "$D/pid.new" "$D/pid" || exit 1
[ ! -e "$D/stopped" ] || exit 1 # a stop came first: it cannot have missed us, or else we find this
(
  . "$D/cmd" # the environment, and the program with its arguments as "$@"; builtins only from here, as PATH may be new
  case $1 in
    */*) [ -f "$1" ] && [ -x "$1" ] ;;
    *) command -v "$1" > /dev/null ;;
  esac || { echo "$1: no such program, or it may not be executed"; exit 127; }
  printf '' > "$D/started" || exit 126
  umask "$mask"
  exec "$@"
)
printf '%s\n' "$?" > "$D/exit.new" && exec mv "$D/exit.new" "$D/exit" # exec: a fork would count as a process
