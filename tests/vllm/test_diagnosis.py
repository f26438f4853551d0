"""Failures of vLLM are told from its log. Wordings: the source of 0.32.0, and captures of it on a CPU."""

from __future__ import annotations

import pytest

from sweeper.engines.vllm import Vllm
from sweeper.errors import FailureKind
from tests.vllm import saved

ENGINE = Vllm()
CORE = "(EngineCore pid=12) ERROR 11-30 14:10:32 [core.py:1203] "
API = "(APIServer pid=11) "
FAILED = f"{API}RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {{}}"
DEAD = f"{API}ERROR 11-30 14:12:00 [async_llm.py:772] vllm.v1.engine.exceptions.EngineDeadError: EngineCore died."

STARTS = [
    (
        "ValueError: Free memory on device cuda:0 (3/79) on startup is less than desired GPU memory utilization",
        FailureKind.HOST_DIRTY,
        "held by something else",
    ),
    (
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`",
        FailureKind.OUT_OF_MEMORY,
        "raise gpu_memory_utilization",
    ),
    (
        "ValueError: To serve at least one request with the model's max seq len (131072), (16.00 GiB KV cache",
        FailureKind.OUT_OF_MEMORY,
        "lower max_model_len",
    ),
    (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB.",
        FailureKind.OUT_OF_MEMORY,
        "ran out of memory",
    ),
    (
        "ValueError: Model architectures ['EagleLlamaForCausalLMEagle3'] are not supported for now.",
        FailureKind.UNSUPPORTED,
        "needs eagle3",
    ),
    (
        "AssertionError: Attempted to load weight (torch.Size([4096])) into parameter (torch.Size([2048]))",
        FailureKind.UNSUPPORTED,
        "does not suit the target",
    ),
    (
        "OSError: You are trying to access a gated repo. 401 Client Error: Unauthorized for url",
        FailureKind.UNSUPPORTED,
        "cannot be read",
    ),
    ("KeyError: 'model.layers.0.mlp.experts'", FailureKind.UNSUPPORTED, "refused to start: KeyError"),
    ("OSError: [Errno 28] No space left on device", FailureKind.HOST_DIRTY, "disk"),
    ("RuntimeError: NCCL error: unhandled cuda error", FailureKind.SERVER_CRASH, "NCCL failed"),
]


@pytest.mark.parametrize(("line", "kind", "says"), STARTS)
def test_the_root_cause_above_is_what_a_failed_start_is_told_by(line: str, kind: FailureKind, says: str) -> None:
    log = f"{CORE}EngineCore failed to start.\n{CORE}Traceback (most recent call last):\n{CORE}{line}\n{FAILED}\n"
    found = ENGINE.diagnose(log, 1)
    assert found is not None
    assert found.kind is kind
    assert says in found.message
    assert any(line[:60] in evidence for evidence in found.evidence)


COMMAND_LINES = [
    "vllm: error: unrecognized arguments: --no-such-flag 3",
    "vllm serve: error: argument --kv-cache-dtype: invalid choice: 'bogus' (choose from auto, fp8)",
]


@pytest.mark.parametrize("line", COMMAND_LINES)
def test_a_refused_command_line_is_no_crash(line: str) -> None:
    found = ENGINE.diagnose(f"usage: vllm [-h] [-v]\n{line}\n", 2)
    assert found is not None
    assert (found.kind, found.evidence) == (FailureKind.UNSUPPORTED, (line,))


def test_a_port_that_is_taken_is_the_hosts_fault() -> None:
    log = "OSError: [Errno 98] Address already in use\n"
    found = ENGINE.diagnose(log, 1)
    assert found is not None
    assert found.kind is FailureKind.HOST_DIRTY


def served(*lines: str) -> str:
    return saved.log("ngram") + "".join(f"{line}\n" for line in lines)


def test_an_engine_that_dies_while_it_serves_is_a_crash_with_its_cause() -> None:
    log = served(
        f"{CORE}EngineCore encountered a fatal error.",
        f"{CORE}Traceback (most recent call last):",
        f"{CORE}torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
        DEAD,
    )
    found = ENGINE.diagnose(log, None)
    assert found is not None
    assert found.kind is FailureKind.SERVER_CRASH
    assert "outside its memory" in found.message
    assert ENGINE.fatal_sign(log).endswith("EngineCore encountered a fatal error.")


def test_a_dead_worker_is_named() -> None:
    log = served("(EngineCore pid=12) ERROR 11-30 [multiproc_executor.py:320] Worker proc VllmWorker-1 died "
                 "unexpectedly, shutting down executor.", DEAD)  # fmt: skip
    found = ENGINE.diagnose(log, None)
    assert found is not None
    assert found.kind is FailureKind.SERVER_CRASH
    assert "worker died" in found.message


def test_what_a_server_that_served_refuses_may_go_well_another_time() -> None:
    log = served(
        f"{CORE}EngineCore encountered a fatal error.", f"{CORE}ValueError: num_speculative_tokens is odd"
    )
    found = ENGINE.diagnose(log, None)
    assert found is not None
    assert found.kind is FailureKind.SERVER_CRASH


@pytest.mark.parametrize("case", saved.FAILED)
def test_each_failure_that_was_seen_is_told(case: str) -> None:
    found = ENGINE.diagnose(saved.log(case), 1)
    assert found is not None
    assert found.kind is FailureKind.UNSUPPORTED
    assert found.evidence
