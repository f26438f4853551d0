"""What nvidia-smi shows of a stand-in GPU besides its memory, by kind of driver; a test may plant other values.

Formats are those of real drivers (tests/data/nvidia_smi): 465, 535 in a container with a MIG slice, 580, GB10.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from . import settings

IDLE = {
    "utilization.gpu": "0",
    "clocks.sm": "180",
    "clocks.mem": "405",
    "pstate": "P8",
    "clocks_event_reasons.active": "0x0000000000000001",
}
BUSY = {
    "utilization.gpu": "97",
    "clocks.sm": "2430",
    "clocks.mem": "12481",
    "pstate": "P1",
    "clocks_event_reasons.active": "0x0000000000000000",
}
RENAMED = {"clocks_throttle_reasons.active": "clocks_event_reasons.active"}
"""Old names, which a newer nvidia-smi takes and prints as the new one."""
DRIVERS: dict[str, dict[str, str]] = {
    "580": {},
    "470": {"clocks_event_reasons.active": ""},
    "gb10": {
        "memory.used": "[N/A]",
        "memory.free": "[N/A]",
        "memory.total": "[N/A]",
        "power.limit": "[N/A]",
    },
    "mig-container": {
        "memory.used": "[Insufficient Permissions]",
        "memory.free": "[Insufficient Permissions]",
        "memory.total": "[Insufficient Permissions]",
        "utilization.gpu": "[N/A]",
    },
}
"""What a driver tells in another way; an empty text: it does not know the field."""


def fields(state: Path, gpu: int, used: int) -> dict[str, str]:
    """Clocks, heat and power of a GPU that is busy once a gigabyte of it is used."""
    busy = used >= 1000
    power = 412.33 + gpu if busy else 14.5 + gpu
    shown = {
        **(BUSY if busy else IDLE),
        "clocks.max.sm": "3090",
        "temperature.gpu": str((61 if busy else 31) + gpu),
        "power.draw": f"{power:.2f}",
        "power.limit": "600.00",
        "ecc.errors.uncorrected.volatile.total": "0",
    }
    return shown | _planted(state).get(str(gpu), {})


def as_driver(state: Path, told: dict[str, str]) -> dict[str, str]:
    """The same as the host's driver tells it: renamed, missing or unsaid."""
    driver = str(_read(state).get("driver", "580"))
    old = {name: told[new] for name, new in RENAMED.items()}
    return {name: value for name, value in (told | old | DRIVERS[driver]).items() if value}


def plant(state: Path, gpu: int, values: dict[str, str]) -> None:
    """From now on the GPU shows these values."""
    planted = _planted(state)
    planted[str(gpu)] = planted.get(str(gpu), {}) | values
    _write(state, _read(state) | {"planted": planted})


def choose(state: Path, driver: str) -> None:
    """From now on the host has a driver of that kind. Raises ValueError."""
    if driver not in DRIVERS:
        raise ValueError(f"no driver is called {driver!r}; there are: {', '.join(DRIVERS)}")
    _write(state, _read(state) | {"driver": driver})


def hang_if_planted(state: Path) -> None:
    """Give no answer, if this call is one that shall not."""
    for path in state.glob("smi-hangs.*"):
        path.unlink(missing_ok=True)
        time.sleep(settings.max_s())


def _read(state: Path) -> dict[str, object]:
    path = state / "sensors"
    found: dict[str, object] = json.loads(path.read_text()) if path.exists() else {}
    return found


def _write(state: Path, values: dict[str, object]) -> None:
    (state / ".sensors").write_text(json.dumps(values))
    (state / ".sensors").rename(state / "sensors")


def _planted(state: Path) -> dict[str, dict[str, str]]:
    planted: dict[str, dict[str, str]] = _read(state).get("planted", {})  # type: ignore[assignment]
    return planted
