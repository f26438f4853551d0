"""GPU memory that lives in files: STATE/gpu/INDEX/PID.START holds MiB, and counts while that process is alive."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

NUM_GPUS = 8
TOTAL_MIB = 97_887
IDLE_MIB = 4
NAME = "NVIDIA RTX PRO 6000 Blackwell Server Edition"


@dataclass(frozen=True)
class Holder:
    """A process that holds memory of one GPU; `pid` 0: memory that no process accounts for."""

    gpu: int
    pid: int
    mib: int


def uuid(gpu: int) -> str:
    """The name of a GPU that survives a reboot."""
    return f"GPU-5e1f0c2a-77aa-4b1e-9d0{gpu}-0123456789a{gpu}"


def start_time(pid: int) -> int:
    """Field 22 of /proc/PID/stat; 0 when there is no such process, or only its zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] in (b"Z", b"X") else int(fields[19])


def hold(state: Path, gpu: int, mib: int, pid: int) -> None:
    """From now on process `pid` holds `mib` of the GPU in all, until it ends."""
    folder = state / "gpu" / str(gpu)
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{pid}.{start_time(pid)}"
    (folder / f".{name}").write_text(str(mib))
    (folder / f".{name}").rename(folder / name)


def leak(state: Path, gpu: int, mib: int, pid: int, seconds: float) -> None:
    """When process `pid` ends, so much of its memory stays in use without a process, for so long."""
    folder = state / "gpu" / str(gpu)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"leak.{pid}.{start_time(pid)}").write_text(f"{mib} {seconds} 0")


def _leaked(path: Path) -> int:
    """MiB of a leak file that count now; the first look after the process's end starts its time."""
    _, pid, began = path.name.split(".")
    mib, seconds, until = path.read_text().split()
    if start_time(int(pid)) == int(began):
        return 0
    if until == "0":
        until = str(time.time() + float(seconds))
        path.write_text(f"{mib} {seconds} {until}")
    return int(mib) if time.time() < float(until) else 0


def holders(state: Path) -> list[Holder]:
    """Who holds what right now. Files of processes that have ended are removed."""
    found = []
    for path in sorted((state / "gpu").glob("*/[!.]*")):
        gpu = int(path.parent.name)
        if path.name.startswith("leak."):
            if mib := _leaked(path):
                found.append(Holder(gpu, 0, mib))
            continue
        pid, _, began = path.name.partition(".")
        if began != "0" and start_time(int(pid)) == int(began):
            found.append(Holder(gpu, int(pid), int(path.read_text())))
        else:
            path.unlink(missing_ok=True)
    return found


def used(state: Path) -> list[int]:
    """MiB in use on each GPU."""
    mib = [IDLE_MIB] * NUM_GPUS
    for holder in holders(state):
        mib[holder.gpu] += holder.mib
    return mib


def misread(state: Path, fault: str, seconds: float) -> None:
    """nvidia-smi hangs or talks nonsense, for so long."""
    if fault in ("nvidia_smi_hangs", "nvidia_smi_garbage"):
        (state / "smi").write_text(f"{fault} {time.time() + seconds}")


def misreading(state: Path) -> str:
    """The fault of nvidia-smi that is in force; empty for none."""
    path = state / "smi"
    fault, _, until = path.read_text().partition(" ") if path.is_file() else ("", "", "0")
    return fault if time.time() < float(until or 0) else ""
