"""`python -m sglang.launch_server` of the stand-in: arguments, children, HTTP, and the many ways to end."""

from __future__ import annotations

import sys

from .standin import main

if __name__ == "__main__":
    main.run(sys.argv[1:])
