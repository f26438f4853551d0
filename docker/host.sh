#!/bin/sh
# The stand-in GPU host: a folder with nvidia-smi, models and a Python that has SGLang, behind an sshd of this user.
set -eu
app=$(cd "$(dirname "$0")/.." && pwd)
folder=${GPU_HOST:-/srv/gpu-host} keys=${HOST_KEYS:-/keys/host}
export PYTHONPATH="$app"
python3 -c 'import sys; from pathlib import Path; from tests.gpu_host.host import make_host
make_host(Path(sys.argv[1]), time_scale="0.01", wait_scale="0.01", max_s="86400")' "$folder"
mkdir -p "$folder/home"
cat > "$folder/sshd_config" << END
Port ${SSH_PORT:-2222}
ListenAddress ${LISTEN:-127.0.0.1}
HostKey $keys/host_key
AuthorizedKeysFile $keys/authorized_keys
AllowUsers $(id -un)
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
X11Forwarding no
AllowAgentForwarding no
PermitTunnel no
PidFile none
SetEnv HOME="$folder/home" PATH="$folder/bin:/usr/local/bin:/usr/bin:/bin"
END
[ "$(id -u)" -ne 0 ] || mkdir -p /run/sshd
exec /usr/sbin/sshd -D -e -f "$folder/sshd_config"
