"""What a dying SGLang left in its log: the right kind of failure, what to do, and the lines that prove it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.engines.base import Diagnosis
from sweeper.engines.sglang.diagnosis import MAX_EVIDENCE, SIGNS, diagnose_log
from sweeper.errors import FailureKind
from tests.engines import sglang_saved

OOM, REFUSED, DIRTY = FailureKind.OUT_OF_MEMORY, FailureKind.UNSUPPORTED, FailureKind.HOST_DIRTY
CRASH, HANG = FailureKind.SERVER_CRASH, FailureKind.SERVER_HANG

START = "[2026-11-29 18:26:52] server_args=ServerArgs(model_path='/m')\n"
LOADING = "[2026-11-29 18:26:54] Load weight begin. avail mem=78.00 GB\n"
SERVING = "[2026-11-29 18:27:01] The server is fired up and ready to roll!\n"
BATCH = "[2026-11-29 18:27:02] Decode batch, #running-req: 1, cuda graph: True\n"
KILLED = "[2026-11-29 18:27:03] Received sigquit from a child process. It usually means the child failed.\n"


INIT = '  File "/env/site/sglang/srt/managers/scheduler.py", line 424, in __init__\n    self.init()\n'
TRACEBACK = "Traceback (most recent call last):\n"
HANDLED = f"\nDuring handling of the above exception, another exception occurred:\n\n{TRACEBACK}"


def died(*exceptions: str, frames: str = INIT, before: str = LOADING) -> str:
    """The log of a server whose scheduler raised `exceptions`: the cause first, then what came of it."""
    chain = HANDLED.join(f"{frames}{line}\n" for line in exceptions)
    return f"{before}[2026-11-29 18:27:03 TP0] Scheduler hit an exception: {TRACEBACK}{chain}{KILLED}"


def diagnose(log: str, exit_code: int | None = 137) -> Diagnosis:
    found = diagnose_log(log, exit_code)
    assert found is not None
    return found


# Logs of a real server.


@pytest.mark.parametrize(
    ("name", "kind", "said", "proof"),
    [
        ("fail_bad_draft_path", REFUSED, "check the path", "Repo id must be"),
        ("fail_bad_model_path", REFUSED, "check the path", "Repo id must be"),
        ("fail_draft_is_target", REFUSED, "cannot be the draft", "has no attribute 'hot_token_id'"),
        ("fail_unknown_algo", REFUSED, "does not speculate this way", "name: EAGLE9"),
        ("fail_unknown_flag", REFUSED, "command line", "arguments: --speculative-num-stepz"),
        ("fail_memfrac_no_cache", OOM, "raise mem_fraction_static", "leave no GPU memory for the KV cache"),
        ("fail_port_in_use", DIRTY, "only 9.8 GiB", "CUDA error: out of memory"),
        ("warm_e3_s3k1d4", CRASH, "just in time", "Symbols not found"),
        ("eagle_wrongflag_s3k1d4", CRASH, "killed from outside", "crashed with exit code -9"),
    ],
)
@pytest.mark.parametrize("exit_code", [None, 137, 1])
def test_saved_failures_get_their_class(
    name: str, kind: FailureKind, said: str, proof: str, exit_code: int | None
) -> None:
    found = diagnose(sglang_saved.log(name), exit_code)
    assert found.kind is kind
    assert said in found.message
    assert any(proof in line for line in found.evidence)


@pytest.mark.parametrize("name", [*sglang_saved.HEALTHY, "cut_off_early"])
@pytest.mark.parametrize("exit_code", [None, 0, 1, 137, -9])
def test_healthy_logs_show_no_failure_whatever_the_exit_code(name: str, exit_code: int | None) -> None:
    assert diagnose_log(sglang_saved.log(name), exit_code) is None


@pytest.mark.parametrize("name", sglang_saved.HEALTHY)
def test_what_healthy_servers_say_is_no_evidence_when_they_die_of_something_else(name: str) -> None:
    found = diagnose(sglang_saved.log(name) + "Fatal Python error: Segmentation fault\n")
    assert (found.kind, found.evidence) == (CRASH, ("Fatal Python error: Segmentation fault",))


def test_a_handled_exception_that_was_followed_by_service_is_no_failure() -> None:
    handled = (
        "[2026-11-29 18:27:01] Exception in ASGI application\nTraceback (most recent call last):\nKeyError: 'x'\n"
    )
    assert diagnose_log(SERVING + handled + BATCH, 137) is None


def test_memory_that_ran_out_and_was_survived_is_not_what_killed_it_later() -> None:
    log = SERVING + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n" + 3 * BATCH
    assert diagnose_log(log, 137) is None
    assert diagnose(died("RuntimeError: CUDA error: an illegal memory access", before=log)).kind is CRASH


@pytest.mark.parametrize("exit_code", [137, -9, 143, 0, None, 1])
def test_an_exit_code_alone_says_nothing(exit_code: int | None) -> None:
    assert diagnose_log("", exit_code) is None
    assert diagnose_log(LOADING, exit_code) is None


@pytest.mark.parametrize(("exit_code", "name"), [(139, "SIGSEGV"), (-6, "SIGABRT"), (135, "SIGBUS")])
def test_a_signal_of_its_own_making_is_a_crash(exit_code: int, name: str) -> None:
    found = diagnose(LOADING, exit_code)
    assert found.kind is CRASH
    assert name in found.message


def test_a_survived_complaint_is_no_failure() -> None:
    assert (
        diagnose_log(SERVING + "Failed to write the cache: [Errno 28] No space left on device\n" + BATCH, 137)
        is None
    )


def test_other_ranks_that_go_on_for_a_while_do_not_hide_a_death() -> None:
    assert diagnose(died("RuntimeError: CUDA error: out of memory") + 4 * BATCH).kind is OOM


# Causes and consequences.


def test_a_cause_stands_before_what_it_brings_about() -> None:
    other_rank = "[rank3]: torch.distributed.DistBackendError: NCCL error in: x.cpp:3353, remote process exited\n"
    log = KILLED + other_rank + died("RuntimeError: CUDA error: out of memory", "RuntimeError: CUDA graph failed")
    found = diagnose(log)
    assert found.kind is OOM
    assert found.evidence == ("RuntimeError: CUDA error: out of memory",)


# Exceptions that no list knows.

SPEC = '  File "/env/site/sglang/srt/arg_groups/speculative_hook.py", line 379, in handle_speculative_decoding\n'
WEIGHTS = '  File "/env/site/sglang/srt/models/llama_eagle3.py", line 99, in load_weights\n'


@pytest.mark.parametrize("name", ["ValueError", "TypeError", "KeyError", "AttributeError", "NotImplementedError"])
def test_what_python_would_raise_again_is_a_refusal(name: str) -> None:
    found = diagnose(died(f"{name}: never seen before"))
    assert (found.kind, found.message) == (REFUSED, f"the server refused to start: {name}: never seen before")


def test_the_same_exception_while_serving_is_a_crash() -> None:
    assert diagnose(died("KeyError: 'rid'", before=LOADING + SERVING)).kind is CRASH


def test_an_unknown_runtime_error_is_a_crash() -> None:
    assert diagnose(died("RuntimeError: never seen before")).kind is CRASH


def test_an_assertion_without_words_is_explained() -> None:
    main = f"{TRACEBACK}{SPEC}    assert steps is not None\nAssertionError\n"
    found = diagnose(main, exit_code=1)
    assert found.kind is REFUSED
    assert "speculative_num_steps is needed" in found.message


def test_a_refusal_says_what_it_is_about() -> None:
    found = diagnose(died("KeyError: 'midlayer.weight'", frames=WEIGHTS))
    assert found.message == "the server refused the model's weights: KeyError: 'midlayer.weight'"
    assert "in load_weights" in found.evidence[0]


def test_echoes_of_a_dead_process_are_not_the_cause() -> None:
    echo = died("ConnectionResetError: [Errno 104] Connection reset by peer")
    assert diagnose(echo + died("IndexError: list index out of range")).message.endswith("list index out of range")


def test_source_lines_of_a_traceback_are_no_evidence() -> None:
    frames = INIT.replace("self.init()", 'raise_if(x, "CUDA out of memory")')
    assert diagnose(died("KeyError: 'x'", frames=frames)).kind is REFUSED


def test_of_a_chain_in_the_main_process_the_first_is_the_cause() -> None:
    log = f"{TRACEBACK}{INIT}KeyError: 'kimi_k2'\n{HANDLED}{INIT}TypeError: what came of it\n"
    assert "KeyError: 'kimi_k2'" in diagnose(log, exit_code=1).message


def test_a_first_request_that_was_never_answered_is_a_hang() -> None:
    warmup = f"{LOADING}[2026-11-29 18:27:01] Initialization failed. warmup error: {TRACEBACK}"
    assert (
        diagnose(f"{warmup}requests.exceptions.ReadTimeout: HTTPConnectionPool(): Read timed out.\n").kind is HANG
    )


def test_a_server_that_stopped_answering_hangs() -> None:
    check = (
        "[2026-11-29 18:28:01] Health check failed. Server couldn't get a response from detokenizer for last 20"
    )
    assert diagnose(SERVING + BATCH + check, None).kind is HANG
    assert diagnose_log(f"{SERVING}{check}\n{BATCH}", None) is None


# Evidence is bounded, and nothing is ever raised.


def test_evidence_of_eight_ranks_is_shown_once() -> None:
    log = "".join(died(f"RuntimeError: CUDA error: an illegal memory access {n}") for n in range(8))
    assert len(diagnose(log).evidence) == 1


def test_evidence_is_bounded_and_without_terminal_codes() -> None:
    lines = "".join(f"\x1b[31mCUDA out of memory {'x' * n * 500}\n" for n in range(1, 40))
    found = diagnose(lines)
    assert len(found.evidence) <= MAX_EVIDENCE
    assert all(len(line) <= 300 and "\x1b" not in line for line in found.evidence)


WORDS = [TRACEBACK, " hit an exception: ", "ValueError: x", "CUDA out of memory", "\n", "  File ", "exit code -"]
WORDS += [
    "Process 1 has 9.9.9 GiB memory in use",
    "Load weight begin. avail mem=1",
    "9" * 20,
    "\x1b[",
    "\r",
    START,
]


@given(
    log=st.lists(st.sampled_from(WORDS) | st.text(max_size=10), max_size=30).map("".join),
    exit_code=st.none() | st.integers(),
)
def test_hostile_logs_never_raise(log: str, exit_code: int | None) -> None:
    diagnose_log(log, exit_code)


def test_every_sign_says_what_happened_and_has_a_kind_that_the_policy_knows() -> None:
    assert len({sign.message for sign in SIGNS}) == len(SIGNS)
    assert {sign.kind for sign in SIGNS} <= {OOM, REFUSED, DIRTY, CRASH, HANG, FailureKind.START_TIMEOUT}
