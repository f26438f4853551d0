"""How long one step of a simulated server takes, in milliseconds.

A layer takes the longest of its launch, its memory reads and its arithmetic in tiles; a mixture reads the
different experts that the tokens need; two all-reduces follow. A speculative step adds the drafter's forwards and
the host.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.bench.search.simulator.configurations import Config, Trees
from tests.bench.search.simulator.draws import Floats
from tests.bench.search.simulator.interactions import Interactions
from tests.bench.search.simulator.machine import Machine

SMALL_KB = 512
"""Up to here, SGLang's own all-reduce is used."""


@dataclass(frozen=True)
class StepTime:
    """The step times of one server. Flags are complete: every name of FLAGS has a value."""

    machine: Machine
    interactions: Interactions

    def baseline(self, flags: Config) -> float:
        """A step that decodes one token."""
        kernels, scheduler = self.machine.kernels, self.machine.scheduler
        host_ms = kernels.host_ms * (1.6 if flags["disable_cuda_graph"] else 1.0)
        saved = scheduler.saved_baseline * _batching(flags)
        step_ms = float(self._decode_one(flags)) + host_ms * (1 - saved)
        return step_ms * float(np.exp(self.interactions.baseline(flags)))

    def speculative(self, flags: Config, trees: Trees) -> Floats:
        """A step that drafts a tree and verifies it, for each tree."""
        kernels, scheduler = self.machine.kernels, self.machine.scheduler
        tokens = trees.draft_tokens.astype(float)
        verify_ms = self._target_pass(flags, tokens, self._verify_attention(flags, tokens))
        launching = kernels.speculation_host_ms * (1.25 if flags["disable_cuda_graph"] else 1.0)
        host_ms = launching + scheduler.tree_host_ms * (trees.topk > 1)
        saved = scheduler.saved_speculative * _batching(flags)
        odd = 1 + scheduler.odd_share * (trees.draft_tokens % scheduler.odd_multiple != 0)
        step_ms = verify_ms + scheduler.sampling_ms * tokens + self._drafting(flags, trees) + host_ms * (1 - saved)
        return np.asarray(step_ms * np.exp(self.interactions.speculative(flags, trees)) * odd)

    def all_reduce(self, flags: Config, tokens: Floats) -> Floats:
        """One all-reduce of the hidden states of so many tokens."""
        machine, ways = self.machine, self.machine.collectives
        if machine.regime.num_gpus == 1:
            return 0.0 * tokens
        latency_us, size_kb = machine.kernels.all_reduce_us, tokens * machine.regime.message_kb
        protocol, algorithm = ways.protocols[str(flags["NCCL_PROTO"])], ways.algorithms[str(flags["NCCL_ALGO"])]
        level = ways.p2p_levels[str(flags["NCCL_P2P_LEVEL"])]
        transfer_us = size_kb / ways.bandwidth_gb_s
        constant_us = latency_us * protocol.latency * algorithm.latency * level
        time_us = constant_us + transfer_us * protocol.size * algorithm.size * level * 1.75
        if ways.custom is not None and not flags["disable_custom_all_reduce"]:
            own_us = latency_us * ways.custom + transfer_us * 1.1
            time_us = np.where(size_kb < SMALL_KB, own_us, time_us)
        if flags["disable_cuda_graph"]:
            time_us = time_us * (1 + ways.eager_share) + 2.0
        elif flags["NCCL_PROTO"] == "LL":
            time_us = time_us * (1 + ways.graph_share_ll)
        return time_us / 1000

    def _decode_one(self, flags: Config) -> Floats:
        backend = self.machine.scheduler.backends[str(flags["attention_backend"])]
        return self._target_pass(flags, np.array(1.0), np.array(backend.decode))

    def _verify_attention(self, flags: Config, tokens: Floats) -> Floats:
        """Attention over a tree, in units of attention over one token."""
        backend = self.machine.scheduler.backends[str(flags["attention_backend"])]
        return backend.verify * self.machine.kernels.verify_attention * (1 + backend.per_token * tokens)

    def _target_pass(self, flags: Config, tokens: Floats, attention_factor: Floats) -> Floats:
        """One forward of the target over so many tokens."""
        kernels, layers = self.machine.kernels, self.machine.regime.num_layers
        tiled = np.where(tokens > 1, np.ceil(tokens / kernels.tile) * kernels.tile, 1.0)
        compute_ms = kernels.compute_ms * tiled / layers
        dense_ms = kernels.dense_ms / layers
        attention = np.maximum(kernels.launch_ms * 0.4, dense_ms * 0.45) * attention_factor
        attention = np.maximum(attention, compute_ms * 0.35)
        experts_ms = self._experts(tokens)
        mlp = np.maximum(np.maximum(kernels.launch_ms * 0.6, dense_ms * 0.55 + experts_ms), compute_ms * 0.65)
        if flags["disable_cuda_graph"]:
            attention = np.maximum(attention, kernels.eager_launch_ms * 0.45)
            mlp = np.maximum(mlp, kernels.eager_launch_ms * 0.55)
        reduces_ms = 2 * self.all_reduce(flags, tokens)
        return np.asarray(layers * (attention + mlp + reduces_ms) + self.machine.scheduler.head_ms)

    def _experts(self, tokens: Floats) -> Floats:
        """Reading, per layer, the different experts that the tokens need."""
        regime, kernels = self.machine.regime, self.machine.kernels
        if regime.experts == 0:
            return 0.0 * tokens
        independent = 1 + (tokens - 1) * kernels.expert_overlap
        missed = (1 - regime.active_experts / regime.experts) ** independent
        different = regime.experts * (1 - missed)
        return kernels.expert_ms / regime.num_layers * different / regime.active_experts

    def _drafting(self, flags: Config, trees: Trees) -> Floats:
        """The drafter's forwards: first over what was accepted, then one per further step over the beam."""
        tokens, topk = trees.draft_tokens.astype(float), trees.topk.astype(float)
        first_ms = self._draft_pass(flags, np.minimum(tokens, trees.num_steps + 1.0), trees) * 1.15
        further_ms = self._draft_pass(flags, topk, trees) + self.machine.scheduler.branch_ms * (topk - 1)
        return first_ms + (trees.num_steps - 1) * further_ms

    def _draft_pass(self, flags: Config, tokens: Floats, trees: Trees) -> Floats:
        kernels, scheduler = self.machine.kernels, self.machine.scheduler
        sizes = np.array(scheduler.drafter_sizes)[trees.drafter]
        launch = 2.6 if flags["disable_cuda_graph"] else 1.0
        decode = scheduler.backends[str(flags["attention_backend"])].decode
        forward_ms = kernels.draft_ms * (0.55 + 0.45 * sizes) * launch * (0.8 + 0.2 * decode)
        return forward_ms + 3 * self.all_reduce(flags, tokens) + kernels.compute_ms * 0.03 * tokens


def _batching(flags: Config) -> float:
    """How much of what it can save the scheduler saves: 0 with one continuous decode step, 7/8 with eight."""
    return 1 - 1 / int(flags["num_continuous_decode_steps"])
