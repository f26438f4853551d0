"""The launchers' own test bench, here too: its state folder is hostile, and nothing may run after a test."""

from __future__ import annotations

from tests.launchers.conftest import bench, kind, program, remote, shell

__all__ = ["bench", "kind", "program", "remote", "shell"]
