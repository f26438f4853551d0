"""What `--json` prints: one object, without secrets, its keys documented in docs/commands.md."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

from sweeper.known_secrets import KNOWN


def print_json(answer: Mapping[str, object]) -> None:
    """Write it to standard output, indented; what was not measured is absent or null, never NaN."""
    text = json.dumps(KNOWN.hide_json(answer), indent=2, ensure_ascii=False, allow_nan=False, default=str)
    sys.stdout.write(f"{text}\n")
