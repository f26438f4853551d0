#!/bin/sh
# One sweep of the stand-in host, its study in PostgreSQL (the password is PGPASSWORD), shown in MLflow.
# Further words are overrides, as in `specsweep run`.
set -eu
: "${STORAGE:?}" "${TRACKING:?}"
keys=${WORKER_KEYS:-/keys/worker} folder=${GPU_HOST:-/srv/gpu-host}
exec specsweep run --plain preset=kimi_k25_eagle3_8gpu \
  host.ssh.destination="${HOST:-host-a}" host.ssh.port="${SSH_PORT:-2222}" host.ssh.user="${SSH_USER:-gpu}" \
  host.ssh.identity_file="$keys/id" host.ssh.known_hosts="$keys/known_hosts" \
  host.ssh.config_file=/dev/null host.state_dir="$folder/specsweep" \
  engine.command="[$folder/bin/python3,-m,sglang.launch_server]" model.path="$folder/models/kimi-k2.5" \
  space.speculative_draft_model_path="choice($folder/models/kimi-k2.5-eagle3,$folder/models/other-eagle3)" \
  workload.max_tokens=40 workload.repeats=1 limits.start_s=120 \
  study.name="${STUDY:-compose}" study.dir="${SWEEPS:-/sweeps}" study.storage="$STORAGE" \
  tracking.uri="$TRACKING" tracking.artifact_location= budget.trials="${TRIALS:-9}" "$@"
