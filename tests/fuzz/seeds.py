"""What real programs said, cut to a size that thousands of variants can be made of."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass
from pathlib import Path

from sweeper.errors import FailureKind
from sweeper.measuring.load_packing import Packer
from tests.fakes import launch

DATA = Path(__file__).parents[1] / "data"
LLAMACPP = DATA / "llamacpp" / "xllamacpp-2026.10.11549"
VLLM = DATA / "vllm" / "0.32.0-cpu"
SGLANG = DATA / "sglang" / "0.5.15.post1-h200"
MAX_SEED = 3000


@dataclass(frozen=True)
class Saved:
    """One engine's output, by what reads it."""

    logs: tuple[bytes, ...]
    metrics: tuple[bytes, ...]
    infos: tuple[bytes, ...]
    streams: tuple[bytes, ...]
    versions: tuple[bytes, ...]
    builds: tuple[bytes, ...]
    helps: tuple[bytes, ...]


def of_engine(name: str) -> Saved:
    return {"llamacpp": _llamacpp, "sglang": _sglang, "vllm": _vllm}[name]()


def _llamacpp() -> Saved:
    return Saved(
        logs=ends(LLAMACPP, "log_*.txt"),
        metrics=whole(LLAMACPP, "metrics_*.txt"),
        infos=(small_json((LLAMACPP / "props.json").read_bytes()),),
        streams=tuple(short_stream(file) for file in sorted(LLAMACPP.glob("*.sse"))),
        versions=whole(LLAMACPP, "version.txt"),
        builds=whole(LLAMACPP, "version.txt"),
        helps=(b"-m,  --model FNAME  the model\n-t,  --threads N\n--spec-type none,ngram-simple\n",),
    )


def _sglang() -> Saved:
    build = {"sglang": "0.5.15", "torch": "2.9.0", "cuda": "12.9", "nccl": "2.27", "commit": "abc"}
    return Saved(
        logs=ends(SGLANG / "logs", "*.log"),
        metrics=tuple(decisive(file) for file in sorted((SGLANG / "api").glob("metrics_*.txt"))),
        infos=tuple(small_json(file.read_bytes()) for file in sorted((SGLANG / "api").glob("server_info_*.json"))),
        streams=tuple(short_stream(file) for file in sorted((SGLANG / "api").glob("*.sse"))),
        versions=(b"sglang 0.5.15.post1\n", b"warning: x\nsglang 0.5.24.dev1+gabc\n"),
        builds=(f"specsweep-build {json.dumps(build)}\n".encode(),),
        helps=(b"usage: launch_server [-h] --model-path MODEL_PATH\n  --tp-size N, --speculative-num-steps N\n",),
    )


def _vllm() -> Saved:
    build = {"torch": "2.13.0", "cuda": "13.0", "nccl": "2.28", "commit": "abc"}
    return Saved(
        logs=ends(VLLM, "*/server.log"),
        metrics=tuple(decisive(file) for file in sorted(VLLM.glob("*/metrics.prom.txt"))),
        infos=whole(VLLM, "ngram/server_info.json", 10 * MAX_SEED),
        streams=tuple(short_stream(file) for file in sorted(VLLM.glob("*/chat.sse.txt"))),
        versions=(b"vllm 0.32.0\n", b"warning: x\nvllm 0.32.1.dev1+gabc\n"),
        builds=(f"specsweep-build {json.dumps(build)}\n".encode(),),
        helps=(b"  --served-model-name X\n  --max-num-seqs N\n  --speculative-config, -sc X\n",),
    )


def whole(folder: Path, pattern: str, size: int = MAX_SEED) -> tuple[bytes, ...]:
    return tuple(file.read_bytes()[:size] for file in sorted(folder.glob(pattern)))


def ends(folder: Path, pattern: str) -> tuple[bytes, ...]:
    """The end of each log: the failure stands there."""
    return tuple(file.read_bytes()[-MAX_SEED:] for file in sorted(folder.glob(pattern)))


def decisive(page: Path) -> bytes:
    """The lines about speculation, and some others."""
    lines = page.read_bytes().splitlines(keepends=True)
    return b"".join([line for line in lines if b"spec" in line or b"accept" in line] + lines[:12])[:MAX_SEED]


def small_json(content: bytes) -> bytes:
    """The object with its long entries left out."""
    told = json.loads(content)
    return json.dumps({k: v for k, v in told.items() if len(json.dumps(v)) < 120})[: 2 * MAX_SEED].encode()


def short_stream(file: Path) -> bytes:
    """Two events and the end."""
    lines = [line for line in file.read_bytes().split(b"\n") if line.strip()]
    return b"\n\n".join([*lines[:2], *lines[-4:]])


def log_lines() -> tuple[bytes, ...]:
    shown = b"api_key='s3same' HF_TOKEN=abcdef http://u:p@h/x --hf-token abcd\n"
    return (*(log[-1000:] for log in ends(SGLANG / "logs", "fail_*.log")), shown)


def frames() -> tuple[bytes, ...]:
    return (
        b"banner\n@specsweep n0 begin status\n12\n@specsweep n0 end 0\n",
        b"\n@specsweep n0 begin logs\n\xff\n@specsweep n0 end 137\n",
    )


def replies() -> tuple[bytes, ...]:
    """Kind and body of each verb's reply."""
    memory = b"code gpu 0\ngpu 0, H200, GPU-0, 4, 143771\ncode app 0\napp GPU-0, 77, python, 4000\npid 77 - root x"
    return (
        b"port\n30001", b"dirty\npid 12 of root: python x", b"started\n12 34 0a-1b\n/state/servers/s-1/log",
        b"refused\nno such program", b"used\n", b"status\nrunning -  120", b"status\nexited 137 99", b"owns\nyes",
        b"logs\nsome output\xff", b"run\nout", b"stopped\n0 3 12 yes TERM KILL", b"survivors\n12 a\n13 b",
        b"list\ns-1 12 34 b-1 30000", b"pruned\n", b"gpus\n" + memory, b"sample\n" + samples()[0], b"nosmi\n",
        b"unknown\nwhat",
    )  # fmt: skip


def gpu_answers() -> tuple[bytes, ...]:
    told = (
        b"code gpu 0\ngpu 0, NVIDIA H200, GPU-0, 4, 143771\ngpu 1, NVIDIA H200, GPU-1, [N/A], [N/A]\ncode app 0\n"
        b"app GPU-0, 77, python, 4000\npid 77 s-1 root python -m x"
    )
    warned = (
        b"code gpu 14\ngpu WARNING: infoROM is corrupted at gpu 0000:65:00.0\n"
        b"gpu 3, RTX, GPU-3, 100 MiB, 200 MiB\ncode app hung"
    )
    return told, warned


def samples() -> tuple[bytes, ...]:
    busy = b"30000, 97, 1980, 1980, 3201, 61, 412.33, 700.00, 0x0000000000000044"
    return (
        b"code gpu 0\ngpu 0, GPU-0, "
        + busy
        + b"\ncode app 0\napp GPU-0, 77, python, 29000\npid 77 s-1 root python",
        b'code gpu 2\ngpu Field "clocks_event_reasons.active" is not a valid field to query.\ncode app 0',
    )


def policies() -> tuple[bytes, ...]:
    first = b"0, 580.1, Enabled, 600.00 W, [N/A], [N/A], Disabled, Disabled, Default\n"
    return (first + b"1, 580.1, Enabled, 600.00 W, 1, 2, x, y, z\n",)


def load_answers() -> tuple[bytes, ...]:
    exchange = {"sent_ms": 0.5, "late_ms": 0.0, "e2e_ms": 7.0, "lines": "", "error": "", "hung": False}
    told = json.dumps({"exchanges": [exchange], "cpu_s": 0.25, "wall_s": 1.5}).encode()
    return tuple(
        b"\nspecsweep-load " + base64.b64encode(zlib.compress(text)) + b" end\n"
        for text in (
            told,
            told.replace(b"0.5", b"NaN"),
            b"[" * 5000,
            told.replace(b"7.0", b"9" * 6000),
            b"0" * 100_000,
        )
    )


def records() -> tuple[bytes, ...]:
    """The lines of an answer as the client writes them, not yet packed."""
    return (zlib.decompressobj(13).decompress(packed_lines()[0]),)


def packed_lines() -> tuple[bytes, ...]:
    packer = Packer()
    for number in range(4):
        packer.add(0.01 * number, b'data: {"text": "word %d", "ids": [%d]}' % (number, number))
    packer.end()
    return (b"".join(packer.packed),)


def deflated(records: bytes) -> bytes:
    squeeze = zlib.compressobj(1, wbits=13)
    return squeeze.compress(records) + squeeze.flush()


def stored_launches() -> tuple[bytes, ...]:
    record = launch(80.0, repeats=(79.0, 81.0), flags={"n": 3}).model_dump(mode="json")
    failed = launch(None, failure=FailureKind.OUT_OF_MEMORY).model_dump(mode="json")
    kept = {"artifacts": ["launch-0-a"], "artifacts_at": "machine m, in /a"}
    return tuple(json.dumps({"record": each, **kept}).encode() for each in (record, failed))


def token_ids() -> tuple[bytes, ...]:
    return (b"Loading\nspecsweep-token-ids [[1, 2, 3], [128000, 5]]\n",)


def squeue_answers() -> tuple[bytes, ...]:
    return (b"12_0|RUNNING|n1|None\n12_1|PENDING||(Resources)\n13|TIMEOUT|n[1-2]|TimeLimit\n",)


def environs() -> tuple[bytes, ...]:
    return (b"SGLANG_SIMULATE_ACC_LEN=3\nSGLANG_X=\nSGLANG_X=2\n",)


def timings() -> tuple[bytes, ...]:
    table = (
        b"#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
        b"       14336          7168      half     sum      -1    23.45    0.61    1.07      0\n"
        b"       57344         28672      half     sum      -1    25.45    2.25    3.94      0\n"
    )
    told = (b'{"bytes": 14336, "us": 20.1}', b'{"bytes": 57344, "us": 24.5}')
    return table, b"\n".join(b"\nspecsweep-all-reduce " + line for line in told)


def model_configs() -> tuple[bytes, ...]:
    target = {
        "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "vocab_size": 128256, "num_hidden_layers": 32,
        "max_position_embeddings": 8192, "rope_scaling": {"factor": 8.0, "rope_type": "yarn"},
    }  # fmt: skip
    draft = {**target, "architectures": ["LlamaForCausalLMEagle3"], "draft_vocab_size": 32000, "eagle_config": {}}
    return json.dumps(target).encode(), json.dumps(
        {"text_config": draft, "dflash_config": {"block_size": 8}}
    ).encode()


def prompt_files() -> tuple[bytes, ...]:
    rows = (
        {"id": "a", "text": "x"},
        {"prompt": "y", "class": "chat"},
        {"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]},
        {"question_id": 81, "category": "writing", "turns": ["one", "two"]},
    )
    lines = b"\n".join(json.dumps(row).encode() for row in rows)
    return lines, json.dumps(rows).encode(), b"\xef\xbb\xbf" + lines
