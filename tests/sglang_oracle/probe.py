"""Asks a real SGLang what it makes of argument combinations. It runs inside that SGLang's environment, by hand.

    python tests/sglang_oracle/probe.py GPU < combinations.json > outcomes.json

GPU: sm80, sm90, sm100 or sm120 (see stand_ins.py for what is played). `combinations.json`: a list of
{"model": NAME, "argv": [...], "env": {...}}, with {DRAFT-NAME} in argv for a draft model's folder. Each outcome
is {"refused": "ExceptionType: message"} or {"resolved": {field: value}}: the command line goes through the
server's own parser, ServerArgs' own resolution and its own final check, as in `sglang.launch_server`.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import logging
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

MODELS = importlib.import_module("models").MODELS
FIELDS = importlib.import_module("models").FIELDS
stand_ins = importlib.import_module("stand_ins")


def main(kind: str) -> None:
    """Read combinations, print outcomes."""
    combinations = json.load(sys.stdin)
    output, sys.stdout = sys.stdout, sys.stderr
    missing = stand_ins.pretend_gpus(kind)
    server_args: Any = importlib.import_module("sglang.srt.server_args")
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder:
        stand_ins.pretend_nvidia_smi(Path(folder))
        for name, config in MODELS.items():
            Path(folder, name).mkdir()
            Path(folder, name, "config.json").write_text(json.dumps(config))
        outcomes = [outcome(server_args, one, folder) for one in combinations]
    answer = {
        "version": importlib.import_module("sglang").__version__,
        "gpu": kind,
        "played": sorted(missing.used),
        "flags": known_flags(server_args),
        "outcomes": outcomes,
    }
    json.dump(answer, output)


def known_flags(server_args: Any) -> list[str]:
    """The long flags of this version's parser, with underscores."""
    parser = argparse.ArgumentParser()
    server_args.ServerArgs.add_cli_args(parser)
    found = {word for action in parser._actions for word in action.option_strings if word.startswith("--")}
    return sorted(word.removeprefix("--").replace("-", "_") for word in found)


def outcome(server_args: Any, combination: dict[str, Any], folder: str) -> dict[str, object]:
    """What this SGLang makes of one combination."""
    argv = ["--model-path", f"{folder}/{combination['model']}", "--device", "cuda"]
    argv += [word.replace("{", folder + "/").replace("}", "") for word in combination["argv"]]
    before = dict(os.environ)
    os.environ.update(combination["env"])
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            resolved = resolve(server_args, argv)
        return {"resolved": {name: plain(getattr(resolved, name, None), folder) for name in FIELDS}}
    except SystemExit:
        return {"refused": "argparse: " + errors.getvalue().strip().rpartition("\n")[2][-200:]}
    except Exception as error:  # noqa: BLE001 - whatever it raises is the answer
        return {"refused": f"{type(error).__name__}: {str(error).replace(folder, '')[:300]}"}
    finally:
        os.environ.clear()
        os.environ.update(before)


def resolve(server_args: Any, argv: list[str]) -> Any:
    """The resolved arguments; raises what the server would end with before it loads anything."""
    prepared = server_args.prepare_server_args(argv)
    logging.disable(logging.CRITICAL)
    if hasattr(prepared, "resolve_once"):  # from 0.5.20 or so on the values live beside the record
        prepared.resolve_once()
        prepared.check_server_args()
        return importlib.import_module("sglang.srt.arg_groups.overrides").resolved_view(prepared)
    prepared.check_server_args()
    with contextlib.suppress(ImportError):
        return importlib.import_module("sglang.srt.arg_groups.overrides").resolved_view(prepared)
    return prepared


def plain(value: object, folder: str) -> object:
    """The value as JSON has it, without the temporary folder."""
    if isinstance(value, str):
        return value.replace(folder, "")
    return value if value is None or isinstance(value, bool | int | float) else str(value)[:200]


if __name__ == "__main__":
    main(sys.argv[1])
