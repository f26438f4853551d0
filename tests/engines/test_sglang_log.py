"""SGLang's log: phases of the start, progress, and signs that nothing will come any more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.engines.sglang.log import fatal_sign, progress, readiness
from tests.engines import sglang_saved

T = "[2026-11-29 18:31:24] "


def phases(log: str) -> list[str]:
    """The phases in the order in which a log that grows shows them."""
    seen: list[str] = []
    for end in range(0, len(log), 150):
        if not seen or readiness(log[:end]) != seen[-1]:
            seen.append(readiness(log[:end]))
    return seen


def test_saved_start_without_speculation_goes_through_its_phases() -> None:
    assert phases(sglang_saved.log("baseline_default")) == [
        "starting",
        "init distributed",
        "loading weights",
        "allocating KV cache",
        "capturing CUDA graphs",
        "warming up",
        "ready",
    ]


def test_saved_start_with_a_draft_names_the_draft() -> None:
    found = phases(sglang_saved.log("e3_s3k1d4"))
    assert found.index("loading draft weights") > found.index("loading weights")
    assert found.count("init distributed") == 1  # the draft's own does not turn the clock back
    assert found[-1] == "ready"


@pytest.mark.parametrize("name", sglang_saved.HEALTHY)
def test_every_saved_healthy_server_became_ready(name: str) -> None:
    assert readiness(sglang_saved.log(name)) == "ready"


@pytest.mark.parametrize(
    ("lines", "phase"),
    [
        # 0.5.8 to 0.5.10 load the draft after the target's graphs.
        (("Load weight begin. avail mem=1 GB", "Load weight end. type=A", "Capture cuda graph begin. This can"),
         "capturing CUDA graphs"),
        (("Load weight begin. avail", "Capture cuda graph end. Time", "Load weight begin. avail"),
         "loading draft weights"),
        (("Load weight begin. avail", "Load weight begin. avail", "Capture draft cuda graph begin. This"),
         "capturing CUDA graphs"),
        # 0.5.20 and later.
        (("Load weight begin.", "Capture target verify CUDA graph begin. backend=full"), "capturing CUDA graphs"),
        (("Load weight begin.", "Post-capture KV sizing: KV cache allocated. dtype: x"), "allocating KV cache"),
        (("max_total_num_tokens=30000, chunked_prefill_size=8192",), "warming up"),
        (("Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)",), "warming up"),
        (("The server is fired up and ready to roll!", "Decode batch, #running-req: 1"), "ready"),
    ],
)  # fmt: skip
def test_every_versions_milestones_are_known(lines: tuple[str, ...], phase: str) -> None:
    assert readiness("\n".join(T + line for line in lines)) == phase


def test_slower_ranks_do_not_turn_the_phase_back() -> None:
    lead, other = "[2026-11-29 18:31:24 TP0] ", "[2026-11-29 18:31:24 TP3] "
    log = "\n".join([lead + "Load weight begin.", other + "Load weight begin.", lead + "Load weight end.", ""])
    assert readiness(log + other + "Load weight begin.") == "allocating KV cache"


def test_two_ranks_that_load_at_once_do_not_make_a_draft() -> None:
    lines = [f"[2026-11-29 18:31:24 DP{rank} TP{rank}] Load weight begin. avail mem=9 GB" for rank in (1, 0)]
    assert readiness("\n".join(lines)) == "loading weights"


def test_a_second_node_without_rank_0_still_shows_its_phases() -> None:
    assert readiness("[2026-11-29 18:31:24 TP4] Load weight begin. avail mem=9 GB") == "loading weights"


def test_a_log_without_its_beginning_shows_a_server_at_work() -> None:
    assert readiness(sglang_saved.log("e3_s3k1d4")[-3000:]) == "ready"


def test_progress_is_that_of_the_present_phase() -> None:
    bar = "Loading safetensors checkpoint shards:  45% Completed | 28/62 [00:10<00:12,  2.7it/s]"
    log = f"{T}Load weight begin. avail mem=9 GB\n\r{bar}"
    assert progress(log) == "45 % (28 of 62)"
    assert progress(f"{log}\n{T}Load weight end. type=X") == ""


def test_progress_of_a_saved_capture() -> None:
    log = sglang_saved.log("e3_s3k1d4")
    assert progress(log[: log.index("29/58")] + "29/58 [00:03<00:01]") == "50 % (29 of 58)"
    assert progress(log) == ""


# Signs of death.


@pytest.mark.parametrize("name", sglang_saved.HEALTHY)
def test_healthy_servers_show_no_fatal_sign(name: str) -> None:
    assert fatal_sign(sglang_saved.log(name)) == ""


@pytest.mark.parametrize(
    ("name", "sign"),
    [
        ("eagle_wrongflag_s3k1d4", "Subprocess scheduler_0 (pid=4207) crashed with exit code -9"),
        ("fail_draft_is_target", "Scheduler hit an exception"),
    ],
)
def test_saved_deaths_show_their_first_sign(name: str, sign: str) -> None:
    assert sign in fatal_sign(sglang_saved.log(name))


@pytest.mark.parametrize(
    "line",
    [
        "Waiting 60.0 seconds for CUDA coredumps before exiting.",
        "DetokenizerManager hit an exception: Traceback (most recent call last):",
        "Received sigquit from a child process. It usually means the child failed.",
        "Rank 3 scheduler is dead. Please check if there are relevant logs.",
        "Rank 1 scheduler died during initialization (exit code: -9).",
        "Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)",
        "Watchdog timeout (self.watchdog_timeout=300)",
        "ProcessGroupNCCL's watchdog got stuck for 600 seconds without making progress in monitoring",
        "terminate called after throwing an instance of 'c10::DistBackendError'",
    ],
)
def test_lines_after_which_nothing_comes(line: str) -> None:
    assert fatal_sign(f"{T}Decode batch, #running-req: 1\n{T}{line}\nmore\n") == T + line


def test_a_soft_watchdog_only_warns() -> None:
    soft = f"{T}Scheduler watchdog timeout (self.watchdog_timeout=20, self.soft=True)\n"
    hard = f"{T}Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)\n"
    assert fatal_sign(soft) == ""
    assert "300" in fatal_sign(soft + hard)


def test_a_sign_is_one_bounded_line() -> None:
    assert len(fatal_sign("x" * 10_000 + " hit an exception: " + "y" * 10_000)) <= 300


PIECES = [
    "Load weight begin",
    "Memory pool end",
    "% |",
    "|",
    "1/9 [",
    "\r",
    "\n",
    "[x TP",
    "1] ",
    " hit an exception: ",
]
LOG_TEXT = st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=30).map("".join)


@given(log=LOG_TEXT)
def test_hostile_logs_never_raise(log: str) -> None:
    assert readiness(log)
    progress(log)
    fatal_sign(log)
