"""A stand-in for the `sglang` package. It shows how SGLang behaves, never how fast anything is: see README.md."""

from __future__ import annotations

import os

__version__ = os.environ.get("STANDIN_VERSION", "0.5.15.post1")
