"""A server that spans several hosts, kept alive as one: started on all of them or on none, and stopped on all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TypeVar

from launchers.base import CommandResult, LaunchSpec, ServerHandle, StopReport
from launchers.errors import HostDirty, LauncherError, StartFailed, StopFailed
from launchers.gpu_sample import GpuSample
from launchers.gpus import GpuReading
from launchers.host import HostLauncher, ServerStatus

TAIL_BYTES = 64 * 1024
T = TypeVar("T")


class GroupLauncher:
    """One launcher per host, in the order of the ranks; implements `Launcher` for servers with `others`.

    The first host's node is the one that answers over HTTP; `run` runs there. All hosts are asked at the same
    time, each over its own shell. When several fail, StopFailed goes first, then HostDirty, then the first host's
    error; the others' words are notes on it. Raises ValueError unless there are two hosts with different names.
    """

    def __init__(self, launchers: Sequence[HostLauncher]) -> None:
        names = [launcher.host for launcher in launchers]
        if len(names) < 2 or len(set(names)) < len(names):
            raise ValueError(f"a group needs at least two hosts with different names, not {names}")
        self.host = "+".join(names)
        self._launchers = tuple(launchers)
        self._ended: list[int] = []  # ranks of the current server's nodes, in the order in which they were missed
        self._inserts: list[tuple[int, bytes]] = []  # what is shown within the first host's log, and where
        self._server_id = ""

    @property
    def launchers(self) -> tuple[HostLauncher, ...]:
        """That of each host, in the order of the ranks."""
        return self._launchers

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Own all hosts for as long as the context is open. Raises HostBusy, and then holds none.

        The order is that of the names: of two groups with the same hosts, one gets them all.
        """
        with ExitStack() as stack:
            for launcher in sorted(self._launchers, key=lambda each: each.host):
                stack.enter_context(launcher.hold())
            yield

    def free_port(self) -> int:
        """The port to use on the first host. Raises HostDirty."""
        return self._launchers[0].free_port()

    def settle(self) -> GpuReading | None:
        """Wait until the GPUs of every host are idle: all of them, host by host, so indices come up again.

        None where no host has an nvidia-smi. Raises HostDirty, which names the hosts.
        """
        readings = [each for each in self._each(lambda launcher, _: launcher.settle()) if each is not None]
        gpus = tuple(gpu for reading in readings for gpu in reading.gpus)
        processes = tuple(process for reading in readings for process in reading.processes)
        return GpuReading(gpus, processes) if readings else None

    def gpu_sample(self, handle: ServerHandle) -> GpuSample | None:
        """One look at the watched GPUs of every host: all of them, host by host, each with its `node`.

        None where no host has an nvidia-smi. Raises HostLost when one of them cannot be asked.
        """
        nodes = self._nodes(handle)
        taken = self._each(lambda launcher, rank: launcher.gpu_sample(nodes[rank]))
        samples = [(rank, sample) for rank, sample in enumerate(taken) if sample is not None]
        if not samples:
            return None
        return GpuSample(
            gpus=tuple(replace(gpu, node=rank) for rank, sample in samples for gpu in sample.gpus),
            holders=tuple(replace(holder, node=rank) for rank, sample in samples for holder in sample.holders),
            problems=tuple(f"node {rank}: {text}" for rank, sample in samples for text in sample.problems),
            is_stuck=any(sample.is_stuck for _, sample in samples),
        )

    def num_breaks(self) -> int:
        """How often the ways to the hosts have broken so far, all together."""
        return sum(launcher.num_breaks() for launcher in self._launchers)

    def start(self, spec: LaunchSpec) -> ServerHandle:
        """Start every node, by rank: `spec` on the first host, `spec.others` on the further ones.

        When it raises, nothing runs on any host: nodes that were started already have been killed. Raises what
        `HostLauncher.start` raises, and StartFailed when `spec` is for another number of hosts.
        """
        specs = (spec, *spec.others)
        if len(specs) != len(self._launchers):
            raise StartFailed(f"server {spec.nonce} is made for {len(specs)} hosts, not for {self.host}")
        handles: list[ServerHandle] = []
        try:
            for launcher, each in zip(self._launchers, specs, strict=True):
                handles.append(launcher.start(each))
        except BaseException as error:
            self._abandon(handles, error)
            raise
        return replace(handles[0], others=tuple(handles[1:]))

    def is_alive(self, handle: ServerHandle) -> bool:
        """Whether the processes of all nodes still run: with one gone, the server is gone."""
        return all(status.state == "running" for status in self._look(handle))

    def exit_code(self, handle: ServerHandle) -> int | None:
        """The exit code of the node that was missed first; None while all run, or when that one was killed."""
        statuses = self._look(handle)
        return statuses[self._ended[0]].exit_code if self._ended else None

    def owns_port(self, handle: ServerHandle) -> bool:
        """Whether only processes of the first node listen on its port."""
        return self._launchers[0].owns_port(handle)

    def logs(self, handle: ServerHandle, from_byte: int = 0, max_bytes: int = 1_000_000) -> bytes:
        """The first host's log, with the end of another node's log put in once that node has ended.

        It is put in where the first host's log ended when `is_alive` or `exit_code` missed the node, so a byte
        that was given out keeps its offset, and whoever reads on finds all of both. This launcher remembers that
        place: another one, which adopts the server, may see it elsewhere.
        """
        inserts = self._inserts if handle.server_id == self._server_id else []
        first = self._launchers[0]
        return spliced(
            lambda start, count: first.logs(handle, start, count), inserts, max(0, from_byte), max_bytes
        )

    def run(self, argv: tuple[str, ...], timeout_s: float, env: Mapping[str, str] | None = None) -> CommandResult:
        """Run a short command on the first host, for its output. Raises HostLost on time-out."""
        return self._launchers[0].run(argv, timeout_s, env)

    def stop(self, handle: ServerHandle, grace_s: float) -> StopReport:
        """Stop all nodes at the same time, as `HostLauncher.stop` does: gone on return, or StopFailed.

        The report counts all hosts' processes; its duration is the longest, its exit code as in `exit_code` (the
        first host's when all ran until now), and the port is free when every node's is.
        """
        nodes = self._nodes(handle)
        first = self._ended[0] if self._ended and handle.server_id == self._server_id else 0
        reports = self._each(lambda launcher, rank: launcher.stop(nodes[rank], grace_s))
        return StopReport(
            exit_code=reports[first].exit_code,
            signals=tuple(dict.fromkeys(signal for report in reports for signal in report.signals)),
            num_processes=sum(report.num_processes for report in reports),
            duration_s=max(report.duration_s for report in reports),
            port_free=all(report.port_free for report in reports),
        )

    def stop_leftovers(self, grace_s: float) -> tuple[str, ...]:
        """Stop what earlier sweeps left on any of the hosts; the ids, host by host. Raises StopFailed."""
        stopped = self._each(lambda launcher, _: launcher.stop_leftovers(grace_s))
        return tuple(server_id for ids in stopped for server_id in ids)

    def url(self, handle: ServerHandle) -> str:
        """The base address of the first node, where the server answers."""
        return self._launchers[0].url(handle)

    def _nodes(self, handle: ServerHandle) -> tuple[ServerHandle, ...]:
        nodes = (handle, *handle.others)
        if len(nodes) != len(self._launchers):
            raise ValueError(f"server {handle.server_id} has {len(nodes)} nodes; {self.host} are other hosts")
        return nodes

    def _look(self, handle: ServerHandle) -> list[ServerStatus]:
        """The states of all nodes; the ends of those that are newly missed, and of their logs, are remembered."""
        nodes = self._nodes(handle)
        if handle.server_id != self._server_id:
            self._server_id, self._ended, self._inserts = handle.server_id, [], []
        statuses = self._each(lambda launcher, rank: launcher.status(nodes[rank]))
        for rank, status in enumerate(statuses):
            if status.state != "running" and rank not in self._ended:
                if rank > 0:
                    text = self._end_of_log(nodes[rank], rank, status.log_size_bytes)
                    self._inserts.append((statuses[0].log_size_bytes, text))
                self._ended.append(rank)
        return statuses

    def _end_of_log(self, node: ServerHandle, rank: int, size: int) -> bytes:
        start = max(0, size - TAIL_BYTES)
        text = self._launchers[rank].logs(node, start, TAIL_BYTES)
        title = f"node {rank} on {node.host} ended; its log from byte {start} on"
        return f"\n--- {title} ---\n".encode() + text + f"\n--- end of the log of {node.host} ---\n".encode()

    def _abandon(self, handles: Sequence[ServerHandle], error: BaseException) -> None:
        """Kill the nodes of a start that failed. Raises StopFailed; a lost host is noted on `error`."""
        try:
            self._each(lambda launcher, rank: launcher.stop(handles[rank], 0.0), len(handles))
        except StopFailed:
            raise
        except LauncherError as lost:
            error.add_note(f"whether a node of the server still runs is unknown: {lost}")

    def _each(self, call: Callable[[HostLauncher, int], T], count: int | None = None) -> list[T]:
        """`call(launcher, rank)` on the first `count` hosts (all) at the same time, and its results by rank.

        Returns or raises only when every call has ended, whatever becomes of the others.
        """
        launchers = self._launchers[:count]
        if not launchers:
            return []
        with ThreadPoolExecutor(len(launchers)) as pool:
            futures = [pool.submit(call, launcher, rank) for rank, launcher in enumerate(launchers)]
        _raise_worst(launchers, futures)
        return [future.result() for future in futures]


def _raise_worst(launchers: Sequence[HostLauncher], futures: Sequence[Future[T]]) -> None:
    """Raise what matters most of the errors, with the others' as notes; nothing when there is none."""
    errors = {
        each.host: error for each, future in zip(launchers, futures, strict=True) if (error := future.exception())
    }
    survived = {host: error for host, error in errors.items() if isinstance(error, StopFailed)}
    dirty = {host: error for host, error in errors.items() if isinstance(error, HostDirty)}
    worst: BaseException | None = next(iter(errors.values()), None)
    if survived:
        names = tuple(f"{host}: {name}" for host, error in survived.items() for name in error.survivors)
        worst = StopFailed("; ".join(map(str, survived.values())), names)
    elif dirty:
        names = tuple(f"{host}: {name}" for host, error in dirty.items() for name in error.holders)
        worst = HostDirty("; ".join(map(str, dirty.values())), names)
    if worst is None:
        return
    for host, error in errors.items():
        if error is not worst and host not in (survived or dirty):
            worst.add_note(f"besides, on {host}: {error}")
    raise worst


def spliced(
    read: Callable[[int, int], bytes], inserts: Sequence[tuple[int, bytes]], start: int, count: int
) -> bytes:
    """At most `count` bytes from `start` on of what `read(start, count)` gives with the `inserts` put in.

    `inserts`: (offset in what is read, text), by offset. `read` may give less than it was asked for: so does this.
    """
    found = bytearray()
    shift = 0  # how much longer all inserts so far have made it
    for offset, text in inserts:
        if start + len(found) < offset + shift:
            wanted = min(count - len(found), offset + shift - start - len(found))
            piece = read(start + len(found) - shift, wanted) if wanted > 0 else b""
            found += piece
            if len(piece) < wanted or len(found) >= count:
                return bytes(found)
        begin = start + len(found) - offset - shift
        found += text[begin : begin + count - len(found)] if begin < len(text) else b""
        shift += len(text)
    if len(found) < count:
        found += read(start + len(found) - shift, count - len(found))
    return bytes(found)
