#!/bin/sh
# MLflow's server on a database of its own; artifacts go through it (no client needs their folder).
# The database's password is PGPASSWORD: an address with a password would stand in messages.
set -eu
: "${MLFLOW_BACKEND_STORE_URI:?}"
export MLFLOW_BACKEND_STORE_URI MLFLOW_DISABLE_TELEMETRY=true MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false
exec python3 -m mlflow server --host "${LISTEN:-127.0.0.1}" --port "${PORT:-5000}" --workers 1 \
  --serve-artifacts --artifacts-destination "${ARTIFACTS:-/artifacts}"
