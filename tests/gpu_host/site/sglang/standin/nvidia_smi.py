"""A fake nvidia-smi: eight GPUs whose memory is what the processes of the stand-in say they hold."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from . import gpus, sensors, settings

UNITS = {"memory.used": "MiB", "memory.total": "MiB", "memory.free": "MiB", "used_memory": "MiB"}
UNITS |= {"used_gpu_memory": "MiB", "power.draw": "W", "power.limit": "W", "utilization.gpu": "%"}
UNITS |= {"clocks.sm": "MHz", "clocks.max.sm": "MHz", "clocks.mem": "MHz"}


def gpu_fields(gpu: int, used: int) -> dict[str, str]:
    """Everything that may be asked of one GPU."""
    told = {
        "index": str(gpu),
        "name": gpus.NAME,
        "gpu_name": gpus.NAME,
        "uuid": gpus.uuid(gpu),
        "gpu_uuid": gpus.uuid(gpu),
        "pci.bus_id": f"00000000:{gpu + 1:02X}:00.0",
        "memory.used": str(used),
        "memory.free": str(gpus.TOTAL_MIB - used),
        "memory.total": str(gpus.TOTAL_MIB),
        "driver_version": "580.95.05",
        "compute_cap": "12.0",
        "count": str(gpus.NUM_GPUS),
    }
    state = settings.state()
    return sensors.as_driver(state, told | sensors.fields(state, gpu, used))


def process_fields(holder: gpus.Holder) -> dict[str, str]:
    """Everything that may be asked of one process."""
    try:
        name = Path(f"/proc/{holder.pid}/cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
    except OSError:
        name = "[Not Found]"
    fields = gpu_fields(holder.gpu, holder.mib)
    shown = {"pid": str(holder.pid), "process_name": name, "name": name}
    return {**fields, **shown, "used_memory": str(holder.mib), "used_gpu_memory": str(holder.mib)}


def table(query: str, rows: list[dict[str, str]], layout: str) -> str:
    """The asked columns as CSV."""
    columns = query.split(",")
    unknown = [name for name in columns if rows and name not in rows[0]]
    if unknown:
        print(f'Field "{unknown[0]}" is not a valid field to query.\n')
        raise SystemExit(2)
    units = {} if "nounits" in layout else UNITS
    known = rows[0] if rows else {}
    titles = [new if (new := sensors.RENAMED.get(name, name)) in known else name for name in columns]
    lines = [] if "noheader" in layout else [", ".join(f"{c} [{units[c]}]" if c in units else c for c in titles)]
    lines += [", ".join(_with_unit(row[name], units.get(name, "")) for name in columns) for row in rows]
    return "".join(line + "\n" for line in lines)


def _with_unit(value: str, unit: str) -> str:
    return f"{value} {unit}" if unit and not value.startswith("[") else value


def answer(argv: list[str]) -> str:
    """What is printed for these arguments."""
    state = settings.state()
    given = dict(word.partition("=")[::2] for word in argv)
    layout = given.get("--format", "csv")
    if "--query-compute-apps" in given:
        held = [process_fields(h) for h in gpus.holders(state) if h.pid]
        return table(given["--query-compute-apps"], held, layout)
    every = [gpu_fields(gpu, used) for gpu, used in enumerate(gpus.used(state))]
    if "--query-gpu" in given:
        if "-i" in argv or "--id" in given:
            wanted = given.get("--id") or argv[argv.index("-i") + 1]
            every = [fields for fields in every if wanted in (fields["index"], fields["uuid"])]
        return table(given["--query-gpu"], every, layout)
    return "".join(f"GPU {gpu}: {gpus.NAME} (UUID: {gpus.uuid(gpu)})\n" for gpu in range(gpus.NUM_GPUS))


def main() -> None:
    """Print the answer, unless a fault says otherwise."""
    settings.end_in_time()
    sensors.hang_if_planted(settings.state())
    fault = gpus.misreading(settings.state())
    if fault == "nvidia_smi_hangs":
        time.sleep(settings.max_s())
    if fault == "nvidia_smi_garbage":
        print("Unable to determine the device handle for GPU0000:01:00.0: Unknown Error\n\x00\ufffd, , [N/A]")
        return
    print(answer(sys.argv[1:]), end="")


if __name__ == "__main__":
    main()
