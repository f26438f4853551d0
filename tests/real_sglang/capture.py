"""Saves what the real SGLang says and does: `python -m tests.real_sglang.capture FOLDER [CASE ...]`.

A folder per case: the log, the raw answers, and `facts.json` (arguments, timings, processes, the stop). Paths of
this machine are shortened; what SGLang says of models and packages that are not there is left out of the log, and
histogram buckets out of the metrics. To stay small, only the cases of WHOLE keep what the others say again.
"""

from __future__ import annotations

import dataclasses
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.real_sglang.cases import FAILING, SERVING, Case, flags_of
from tests.real_sglang.environment import RealSglang, real_sglang
from tests.real_sglang.running import Running, ended, running, terminate, wait_ready, written

MAX_TOKENS = 64
ANSWERS = {"server_info": "json", "model_info": "json", "v1/loads": "json", "metrics": "prom.txt"}
LEFT_OUT = ("Ignore import error when loading", "UserWarning", "warnings.warn")
WHOLE = ("baseline", "eagle3_tree")


def capture(real: RealSglang, case: Case, folder: Path) -> None:
    """Starts the case, asks it everything, stops it, and fills `folder`. Raises AssertionError, TimeoutError."""
    folder.mkdir(parents=True, exist_ok=True)
    flags = flags_of(case, real)
    facts: dict[str, object] = {"argv": ["python", "-m", "sglang.launch_server", *written(flags)], "env": real.env}
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch, "log")
        with running(real, flags, log) as server:
            ready = wait_ready(server)
            assert ready == case.serves, (
                f"{case.name}: ready is {ready}\n{log.read_text(errors='replace')[-3000:]}"
            )
            facts |= {"health": server.health, "ready_line_s": server.ready_line_s, "ready_s": server.age_s()}
            facts["port_open_s"] = server.port_open_s
            if ready:
                facts["processes"] = [dataclasses.asdict(each) for each in server.tree()]
                facts["stop"] = terminate(server) if _answers(server, case, folder) else ended(server)
            facts["exit_code"] = server.process.returncode
        (folder / "server.log").write_text(_trimmed_log(log.read_bytes().decode(errors="replace"), case))
    (folder / "facts.json").write_text(json.dumps(facts, indent=1) + "\n")
    for saved in folder.iterdir():
        saved.write_text(_shortened(saved.read_text(), real))


def _answers(server: Running, case: Case, folder: Path) -> bool:
    """Saves the raw bodies; False as soon as the server has none. The requests come before the questions."""
    body = {"text": case.prompt, "sampling_params": {"temperature": 0, "max_new_tokens": MAX_TOKENS}}
    once, stream = json.dumps(body).encode(), json.dumps({**body, "stream": True}).encode()
    asked: dict[str, tuple[str, bytes | None]]
    asked = {"generate.json": ("/generate", once), "generate_stream.sse.txt": ("/generate", stream)}
    asked |= {f"{path.replace('/', '_')}.{kind}": (f"/{path}", None) for path, kind in ANSWERS.items()}
    asked |= {"flush_cache.txt": ("/flush_cache", b"{}"), "server_info_flushed.json": ("/server_info", None)}
    asked |= {"generate_flushed.json": ("/generate", once)}
    for name, (path, request) in asked.items():
        status, answer = server.get(path, request)
        if status == 0:
            return False
        text = answer.decode() if status == 200 else f"{status}\n{answer.decode()}"
        (folder / name).write_text(_trimmed_answer(name, text, case))
    return True


def _trimmed_answer(name: str, text: str, case: Case) -> str:
    if name == "metrics.prom.txt":
        lines = [line for line in text.splitlines(keepends=True) if "_bucket{" not in line]
        if case.name not in WHOLE:
            lines = [line for line in lines if not line.startswith("#") and not line.endswith(" 0.0\n")]
        return "".join(lines)
    if name == "generate_stream.sse.txt" and case.name not in WHOLE:
        events = text.split("\n\n")
        return "\n\n".join(events if len(events) < 12 else [*events[:5], *events[-5:]])
    if name == "server_info.json" and case.name not in WHOLE:
        return json.dumps(_set_only(json.loads(text)))
    if name == "server_info_flushed.json":
        return json.dumps(_set_only(json.loads(text))["internal_states"])
    return text


def _set_only(told: dict[str, Any]) -> dict[str, Any]:
    """What is set, said once: each internal state repeats all that stands above it."""
    states = [
        {key: value for key, value in each.items() if told.get(key) != value} for each in told["internal_states"]
    ]
    return {key: value for key, value in told.items() if value} | {"internal_states": states}


def _trimmed_log(text: str, case: Case) -> str:
    left_out = LEFT_OUT if case.name in WHOLE else (*LEFT_OUT, "] server_args=")
    return "".join(line for line in text.splitlines(keepends=True) if not any(each in line for each in left_out))


def _shortened(text: str, real: RealSglang) -> str:
    names = {
        real.python.parents[1]: "/env",
        Path(__file__).parents[2]: "/specsweep",
        real.target.parent: "/models",
    }
    if real.tiny_target:
        names[real.tiny_target.parent] = "/models/tiny-eagle3"
    for path, name in sorted(names.items(), key=lambda each: -len(str(each[0]))):
        text = text.replace(str(path), name)
    return re.sub(r"/root/|/home/[^/\s\"']+/", "/home/user/", text)


def main(folder: Path, names: list[str]) -> None:
    """Every case, or those that are named."""
    real = real_sglang()
    for case in (*SERVING, *FAILING):
        if (not names or case.name in names) and (real.tiny_target or not case.tiny):
            print(case.name, flush=True)
            capture(real, case, folder / case.name)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
