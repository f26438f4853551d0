#!/bin/sh
# The worker's key, the host's own key, and what each must know of the other: nobody trusts on first use.
set -eu
umask 077
worker=${WORKER_KEYS:-/keys/worker} host=${HOST_KEYS:-/keys/host} name=${HOST:-host-a} port=${SSH_PORT:-2222}
make_key() { [ -s "$1" ] || ssh-keygen -q -t ed25519 -N '' -C specsweep -f "$1" < /dev/null; }
make_key "$worker/id"
make_key "$host/host_key"
cp "$worker/id.pub" "$host/authorized_keys"
printf '[%s]:%s %s\n' "$name" "$port" "$(cut -d ' ' -f 1,2 < "$host/host_key.pub")" > "$worker/known_hosts"
