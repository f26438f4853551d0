"""One launch as plain data, so that the parent can hand it to its children; and the pipes between them."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import time
from dataclasses import asdict, dataclass
from typing import Any, NoReturn

from . import settings
from .faults import Fault
from .models import Model
from .settings import Args

Message = dict[str, Any]


@dataclass(frozen=True)
class Launch:
    """What every process of a server knows. `began`: monotonic seconds; `free_mib`: per GPU, before the start."""

    args: Args
    version: tuple[int, int, int]
    number: int
    began: float
    fault: Fault
    target: Model
    draft: Model | None
    free_mib: tuple[int, ...]

    @property
    def graphs(self) -> bool:
        """Whether decoding replays CUDA graphs."""
        off = ("disable_cuda_graph", "disable_decode_cuda_graph")
        asked = json.loads(self.args.get("cuda_graph_config") or "{}").get("decode", {})
        backend = self.args.get("cuda_graph_backend_decode") or asked.get("backend")
        return backend != "disabled" and not any(self.args.get(name) for name in off)

    @property
    def bypassed(self) -> bool:
        """Whether drafts are made and never accepted: EAGLE asked for, an EAGLE-3 drafter given."""
        wrong = self.draft is not None and self.draft.is_eagle3 and self.args["speculative_algorithm"] == "EAGLE"
        return wrong or self.fault.name == "accept_one"

    @property
    def num_ranks(self) -> int:
        """Schedulers on this node."""
        ranks: int = self.args["tp_size"] * self.args["pp_size"] // self.args["nnodes"]
        return ranks

    def gpu(self, local_rank: int) -> int:
        """The GPU that this rank uses. Raises IndexError when there is none."""
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "0,1,2,3,4,5,6,7").split(",")
        return int(visible[self.args["base_gpu_id"] + local_rank * self.args["gpu_id_step"]])

    def to_json(self) -> Message:
        """As data for `from_json`."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Message) -> Launch:
        """The launch that `to_json` wrote."""
        draft = None if data["draft"] is None else Model(**data["draft"])
        changed = {
            "version": tuple(data["version"]),
            "fault": Fault(**data["fault"]),
            "target": Model(**data["target"]),
            "draft": draft,
            "free_mib": tuple(data["free_mib"]),
        }
        return cls(**{**data, **changed})


class Link:
    """One JSON object per line over a stream socket; whole lines only, in both directions."""

    def __init__(self, stream: socket.socket) -> None:
        self._stream = stream
        self._rest = b""
        self._waiting: list[Message] = []

    @classmethod
    def of(cls, descriptor: int) -> Link:
        """The link at an inherited descriptor."""
        return cls(socket.socket(fileno=descriptor))

    def fileno(self) -> int:
        """For select."""
        return self._stream.fileno()

    def send(self, message: Message) -> bool:
        """Whether the other side is still there."""
        try:
            self._stream.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            return False
        return True

    def receive(self, timeout_s: float | None = None) -> Message | None:
        """The next message; None when none came in time. Raises EOFError when the other side is gone."""
        while not self._waiting:
            if not select.select([self._stream], [], [], timeout_s)[0]:
                return None
            try:
                data = self._stream.recv(65536)
            except OSError as error:
                raise EOFError from error
            if not data:
                raise EOFError
            *lines, self._rest = (self._rest + data).split(b"\n")
            self._waiting += [json.loads(line) for line in lines]
        return self._waiting.pop(0)


class Timeline:
    """Sleeps along planned times rather than for durations: ranks stay together, delays do not add up."""

    def __init__(self, began: float) -> None:
        self._next = began

    def spend(self, seconds: float) -> float:
        """Wait until so many scaled seconds after the last planned time; how many that were."""
        self._next += settings.scaled(seconds)
        time.sleep(max(0.0, self._next - time.monotonic()))
        return settings.scaled(seconds)


def hang() -> NoReturn:
    """Do nothing, until somebody or the alarm ends this process."""
    while True:
        signal.pause()
