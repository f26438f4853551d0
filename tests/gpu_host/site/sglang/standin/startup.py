"""What one rank does before it serves: the lines of its log, the memory it takes, the ways it fails."""

from __future__ import annotations

import json
import os
import time
from typing import Any, NoReturn

from . import failures, gpus, graphs, lines, log, settings
from .failures import ServerError
from .launch import Launch, Link, Timeline, hang
from .models import Model

GIB = 1024
CONTEXT_MIB = 620
"""What CUDA and NCCL take before anything is loaded."""


class Startup:
    """One rank's start. `run` returns what the server will report, or raises ServerError."""

    def __init__(self, launch: Launch, rank: int, link: Link) -> None:
        self.launch = launch
        self.link = link
        self.rank = rank
        self.args = launch.args
        self.gpu = launch.gpu(rank)
        self.timeline = Timeline(launch.began)
        self.taken_mib = 0
        self.info: dict[str, Any] = {}

    @property
    def avail_gib(self) -> float:
        """Free memory of this rank's GPU."""
        return (self.launch.free_mib[self.gpu] - self.taken_mib) / GIB

    def run(self) -> dict[str, Any]:
        """From process start to the point where the HTTP server may open."""
        self._distributed()
        self._load(self.launch.target)
        if self.launch.draft is not None:
            self._draft_worker(self.launch.draft)
        self._pools()
        graphs.capture(self)
        return self._finish()

    def fault(self, name: str) -> bool:
        """Whether this rank is the one to show the fault `name`: rank 0, the others never get so far."""
        return self.rank == 0 and self.launch.fault.name == name

    def take(self, mib: int) -> None:
        """Hold so much more memory of the GPU. Raises ServerError (out of memory) when there is no room."""
        if mib > self.launch.free_mib[self.gpu] - self.taken_mib:
            self.out_of_memory(mib / GIB)
        self.taken_mib += mib
        gpus.hold(settings.state(), self.gpu, self.taken_mib, os.getpid())

    def out_of_memory(self, wanted_gib: float, frames: Any = failures.LOAD, before: str = "") -> NoReturn:
        """Torch's own words; other holders of the GPU are named."""
        others = [
            (h.pid, h.mib / GIB)
            for h in gpus.holders(settings.state())
            if h.gpu == self.gpu and h.pid != os.getpid()
        ]
        free = max(0.0, min(self.avail_gib, wanted_gib * 0.3))
        raise ServerError(frames, before + failures.out_of_memory(self.gpu, wanted_gib, free, others))

    def _distributed(self) -> None:
        log.say(lines.distributed_begins(self.launch.version))
        if self.args["tp_size"] > 1 and self.rank == 0:
            log.say("sglang is using nccl==2.28.9")
        self._nccl_lines()
        if self.launch.fault.name == "hang_init_nccl":
            hang()
        if self.fault("nccl_error"):
            raise ServerError(failures.LOAD, failures.NCCL)
        self.take(CONTEXT_MIB)
        self._meet()
        spent = self.timeline.spend(0.05)
        for line in lines.distributed_ends(self.launch.version, spent, CONTEXT_MIB / GIB):
            log.say(line)
        if self.args["tp_size"] > 2 and not self.args["disable_custom_all_reduce"] and self.rank == 0:
            log.say(lines.CUSTOM_ALL_REDUCE)
        self._balance()

    def _meet(self) -> None:
        """All ranks go on together, from the time that the parent says."""
        self.link.send({"joined": self.rank})
        if message := self.link.receive():
            self.timeline = Timeline(message["go"])

    def _nccl_lines(self) -> None:
        if os.environ.get("NCCL_DEBUG", "").upper() != "INFO":
            return
        here = f"gpuhost:{os.getpid()}:{os.getpid()} [{self.gpu}] NCCL INFO"
        log.raw(f"{here} NCCL version 2.28.9+cuda13.0")
        for name in sorted(os.environ):
            if name.startswith("NCCL_") and name not in ("NCCL_DEBUG", "NCCL_DEBUG_SUBSYS"):
                log.raw(f"{here} {name} set by environment to {os.environ[name]}")
        proto = os.environ.get("NCCL_PROTO", "LL")
        algo = os.environ.get("NCCL_ALGO", "RING").upper()
        log.raw(f"{here} AllReduce: 14336 Bytes -> Algo {algo} proto {proto} channel{{Lo..Hi}}={{0..1}}")

    def _balance(self) -> None:
        """With several ranks, GPUs that differ in free memory are refused: somebody else is there."""
        free = [self.launch.free_mib[self.launch.gpu(rank)] / GIB for rank in range(self.launch.num_ranks)]
        mine = self.launch.free_mib[self.gpu] / GIB
        faked = self.fault("unbalanced_memory")
        if (len(free) > 1 and min(free) < mine * 0.9) or faked:
            least = mine * 0.5 if faked else min(free)
            raise ServerError(
                failures.LOAD,
                "ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes. "
                f"pre_model_load_memory={least}, local_gpu_memory={mine}, local_gpu_memory * 0.9={mine * 0.9}",
            )

    def _load(self, model: Model) -> None:
        fault, version = self.launch.fault, self.launch.version
        log.say(f"Load weight begin. avail mem={self.avail_gib:.2f} GB")
        if version < (0, 5, 10) and model.architecture == "KimiK25ForConditionalGeneration":
            raise ServerError(
                failures.LOAD,
                f"ValueError: Model architectures ['{model.architecture}'] are not supported for now. "
                "Supported architectures: dict_keys(['DeepseekV3ForCausalLM', 'LlamaForCausalLM', ...])",
            )
        began = time.monotonic()
        mib = int(model.weights_gib * GIB / self.args["tp_size"])
        self._shards(model)
        if self.fault("oom_load") and model is self.launch.target:
            self.out_of_memory(3.5)
        self.take(mib)
        elapsed = f"elapsed={time.monotonic() - began:.2f} s, " if version >= (0, 5, 10) else ""
        dtype = "" if version >= (0, 5, 10) else "dtype=torch.bfloat16, "
        log.say(
            f"Load weight end. {elapsed}type={model.architecture}, {dtype}avail mem={self.avail_gib:.2f} GB, "
            f"mem usage={mib / GIB:.2f} GB."
        )
        if self.fault("disk_full_log") and fault.detail != "late":
            log.silence()

    def _shards(self, model: Model) -> None:
        """Read the files, with tqdm's lines; the faults of this phase come in its middle."""
        fault, total = self.launch.fault, 64 if model is self.launch.target else 1
        words = (
            "Multi-thread loading shards"
            if self.launch.version >= (0, 5, 15)
            else "Loading safetensors checkpoint shards"
        )
        parts = 8 if total > 1 else 2
        slow = fault.number(10) if fault.name == "slow_weights" and total > 1 else 0.0
        for part in range(parts + 1):
            done = total * part // parts
            if self.rank == 0:
                bar = f"{done}/{total} [00:{done:02d}<00:{total - done:02d},  1.07it/s]"
                log.raw(f"\r{words}: {100 * done // total:3d}% Completed | {bar}")
            if part == parts // 2 and total > 1:
                self._fail_in_load()
            time.sleep(slow / parts if part < parts else 0)
            self.timeline.spend((0.35 if total > 1 else 0.05) / parts if part < parts else 0)

    def _fail_in_load(self) -> None:
        name, detail = self.launch.fault.name, self.launch.fault.detail
        if name == "hang_load":
            self.take(CONTEXT_MIB)
            hang()
        if self.fault("non_utf8_log"):
            log.raw(b"\xff\xfe\x00 half a character: \xe2\x82 and \x1b[31mcolour\x1b[0m \x80\x81")
        if self.fault("crash_load"):
            if detail != "oom_killer":
                log.raw(
                    "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f0c (most recent call first):"
                )
            os.kill(os.getpid(), 9 if detail == "oom_killer" else 11)

    def _draft_worker(self, draft: Model) -> None:
        for line in lines.draft_worker(self.launch.version):
            log.say(line)
        self._load(draft)
        graphs.check_draft_backend(self.launch, draft)

    def _pools(self) -> None:
        """KV caches. What the fraction leaves after the weights; too little is an error that asks for MORE."""
        fraction = self.args["mem_fraction_static"]
        before = self.launch.free_mib[self.gpu] / GIB
        room = self.avail_gib - before * (1 - fraction)
        name = self.launch.fault.name
        if room <= 0.1 or (self.rank == 0 and name in ("weights_too_big", "bad_memfrac")):
            raise ServerError(failures.POOL, self._no_room(before, fraction, old=name == "bad_memfrac"))
        model = self.launch.target
        per_token = model.num_layers * (576 if model.is_mla else 2048) * 2
        limit = self.args["max_total_tokens"] or 1 << 60
        tokens = min(limit, int(room * (1 << 30) / per_token))
        self.take(int(tokens * per_token / (1 << 20)))
        for _ in range(2 if self.launch.draft else 1):
            gib = tokens * per_token / (1 << 30)
            log.say(lines.pool(self.launch.version, tokens, gib, latent=model.is_mla))
            log.say(f"Memory pool end. avail mem={self.avail_gib:.2f} GB")
        self.timeline.spend(0.03)
        self.info = {"max_total_num_tokens": tokens, "kv_gib": tokens * per_token / (1 << 30)}

    def _no_room(self, before: float, fraction: float, *, old: bool) -> str:
        version = self.launch.version
        if version >= (0, 5, 15) and not old:
            least = 1 - self.avail_gib / before
            return (
                "ValueError: Loaded weights leave no GPU memory for the KV cache under "
                f"--mem-fraction-static={fraction}. Raise --mem-fraction-static above {least + 0.001:.3f} "
                f"(minimum viable = 1 - available/pre = {least:.4f}). "
                "If using speculative decoding, draft weights are now counted."
            )
        value = "self.server_args." if version < (0, 5, 10) else ""
        return (
            "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. "
            f"Current value: {value}mem_fraction_static={fraction}"
        )

    def _finish(self) -> dict[str, Any]:
        running = self.args["max_running_requests"] or 2048
        context = self.args["context_length"] or self.launch.target.context_length
        if self.rank == 0:
            log.say(
                f"max_total_num_tokens={self.info['max_total_num_tokens']}, "
                f"chunked_prefill_size={self.args['chunked_prefill_size']}, "
                f"max_prefill_tokens={self.args['max_prefill_tokens']}, max_running_requests={running}, "
                f"context_len={context}, available_gpu_mem={self.avail_gib:.2f} GB"
            )
        for line in lines.tree_cache(self.launch.version):
            log.say(line)
        self.info |= {"max_running": running, "context_length": context, "avail_gib": self.avail_gib}
        return json.loads(json.dumps(self.info))  # type: ignore[no-any-return]
