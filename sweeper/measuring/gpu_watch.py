"""Looks at a host's GPUs from a thread of its own while a launch is measured. What fails there fails no launch."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

from launchers.base import GpuSource, ServerHandle
from launchers.errors import LauncherError
from launchers.gpu_sample import GpuSample
from launchers.gpus import GpuReading
from sweeper.host_spec import HostSpec
from sweeper.measuring.gpu_others import strangers, unseen_memory
from sweeper.measuring.gpu_window import clock_doubts, clock_notes, gpu_metrics, gpu_window
from sweeper.records import GpuWindow

_FIRST_S = 0.5
"""The first sample is taken that soon: the load is on by then, and a short window gets one."""
_JOIN_S = 5.0
"""So long the end of the window waits for a sample that is being taken. A later one is not waited for."""


class GpuWatch:
    """Samples the GPUs that the server `handle` may use while the context is open; then tells what it saw.

    `host` says how often (`gpu_sample_s`; 0: never), and what an idle GPU may hold. `before`: the look that found
    the GPUs idle. The source is asked from another thread. Leaving the context takes `patience_s` seconds at most,
    and raises nothing.
    """

    def __init__(
        self,
        source: GpuSource,
        host: HostSpec,
        handle: ServerHandle,
        before: GpuReading | None = None,
        *,
        patience_s: float = _JOIN_S,
    ) -> None:
        self._source = source
        self._handle = handle
        self._every_s = host.gpu_sample_s
        self._idle_mib = host.gpu_idle_mib
        self._before = before
        self._patience_s = patience_s
        self._end = threading.Event()
        self._guard = threading.Lock()
        self._is_over = False
        self._samples: list[GpuSample] = []
        self._misses: list[str] = []
        self._thread = threading.Thread(target=self._watch, name=f"{handle.host}: GPUs", daemon=True)

    def __enter__(self) -> Self:
        if self._every_s > 0:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        if self._every_s > 0:
            self._thread.join(self._patience_s)
        with self._guard:
            self._is_over = True
            if self._thread.is_alive():
                self._misses.append("nvidia-smi had not answered when the window ended")

    def window(self) -> GpuWindow:
        """What the record keeps. A launch with `others` in it was measured beside somebody else's job."""
        samples = self._seen()
        window = gpu_window(samples, strangers(samples, self._idle_mib, self._before))
        return window.model_copy(update={"notes": self.notes()})

    def metrics(self) -> dict[str, float]:
        """gpu_sm_clock_mhz, gpu_temperature_c and gpu_power_w, as far as they were told."""
        return gpu_metrics(self._seen())

    def doubts(self) -> tuple[str, ...]:
        """Reasons to look twice at what was measured meanwhile, one line each."""
        samples, misses = self._seen(), self._missed()
        blind = [f"what the GPUs did is not known: {misses[-1]}"] if misses and not samples else []
        return (*blind, *clock_doubts(samples), *unseen_memory(samples, self._idle_mib))

    def notes(self) -> tuple[str, ...]:
        """What is worth knowing and no reason for doubt, one line each."""
        samples, misses = self._seen(), self._missed()
        lost = []
        if misses and samples:
            count = "1 sample" if len(misses) == 1 else f"{len(misses)} samples"
            lost = [f"{count} of the GPUs failed: {misses[-1]}"]
        return (*clock_notes(samples), *lost)

    def _seen(self) -> tuple[GpuSample, ...]:
        with self._guard:
            return tuple(self._samples)

    def _missed(self) -> tuple[str, ...]:
        with self._guard:
            return tuple(self._misses)

    def _watch(self) -> None:
        wait_s = min(_FIRST_S, self._every_s)
        while not self._end.wait(wait_s):
            wait_s = self._every_s
            if not self._take():
                return

    def _take(self) -> bool:
        """Take one sample and keep it; False when there is no point in another."""
        try:
            sample = self._source.gpu_sample(self._handle)
        except LauncherError as error:  # a link that is being mended, say: whoever measures finds out by himself
            sample = GpuSample((), problems=(str(error),))
        if sample is None:
            return False
        with self._guard:
            if self._is_over:
                return False
            if sample.gpus:
                self._samples.append(sample)
            self._misses += sample.problems
        return not sample.is_stuck
