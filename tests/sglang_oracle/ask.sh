#!/bin/sh
# Asks one version of the real SGLang about all combinations and saves its answers in tests/data/sglang/VERSION.
#
#   tests/sglang_oracle/ask.sh VERSION FOLDER     from the root of the checkout; FOLDER keeps what is downloaded (1.5 GB)
#
# No GPU is needed and no server is started: stand_ins.py says what is played. About three minutes per version.
set -eu
version=$1 folder=$2 root=$(pwd)
sglang=$folder/sglang-$version
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

if [ ! -x "$folder/env/bin/python" ]; then
    python3.11 -m venv "$folder/env"
    "$folder/env/bin/pip" install -q torch==2.13.0 pydantic orjson pyzmq requests psutil aiohttp fastapi uvicorn numpy \
        pillow setproctitle pybase64 msgspec einops openai==2.6.1 openai-harmony partial_json_parser tiktoken
    "$folder/env/bin/pip" install -q --no-deps triton dill
fi
if [ ! -d "$sglang" ]; then
    "$folder/env/bin/pip" install -q --no-deps --target "$sglang" "sglang==$version"
fi
# The versions of SGLang want different, incompatible transformers.
wanted=$(sed -n 's/^Requires-Dist: transformers==\([0-9.]*\).*/\1/p' "$sglang"/sglang-*.dist-info/METADATA)
if [ ! -d "$folder/transformers-$wanted" ]; then
    "$folder/env/bin/pip" install -q --target "$folder/transformers-$wanted" "transformers==$wanted"
    rm -rf "$folder/transformers-$wanted/numpy" "$folder/transformers-$wanted/numpy.libs"
fi
for gpu in sm80 sm90 sm100 sm120; do
    "${PYTHON:-.venv/bin/python}" -m tests.sglang_oracle.combinations "$gpu" > "$folder/asked-$gpu.json"
    PYTHONPATH="$folder/transformers-$wanted:$sglang" "$folder/env/bin/python" \
        "$root/tests/sglang_oracle/probe.py" "$gpu" < "$folder/asked-$gpu.json" > "$folder/$version-$gpu.json"
done
"${PYTHON:-.venv/bin/python}" -m tests.sglang_oracle.store "$folder/$version"-sm*.json
