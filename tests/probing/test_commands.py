"""The command lines of the two programs, and what is read from their output."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.probing.commands import Messages, nccl_tests_argv, read_times, script_argv

MESSAGES = Messages(num_ranks=8, hidden_size=1024, num_layers=61, tokens=(1, 4))

NEWER = """# nThread 8 nGpus 1 minBytes 2048 maxBytes 8192 step: 2(factor) warmup iters: 20 iters: 100 agg iters: 1
# Using devices
#  Rank  0 Group  0 Pid  41 on gpu1 device  0 [0x07] Some GPU
#
#    out-of-place    in-place
#   size   count    type  redop  root    time  algbw  busbw #wrong    time  algbw  busbw #wrong
#    (B)    (elements)    (us)  (GB/s)  (GB/s)    (us)  (GB/s)  (GB/s)
   2048   1024   half   sum   -1   31.50   0.07   0.11   N/A   30.25   0.07   0.12   N/A
   4096   2048   half   sum   -1   32.50   0.13   0.22   N/A   31.25   0.13   0.23   N/A
   8192   4096   half   sum   -1   35.50   0.23   0.40   N/A   1.4e+02   0.06   0.10   N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 0.2
"""


OLDER = """#                                             out-of-place                       in-place
#       size    count   type   redop     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)  (elements)                 (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
        2048     1024   half     sum    31.50    0.07    0.11    N/A    30.25    0.07    0.12    N/A
        8192     4096   half     sum    35.50    0.23    0.40    N/A    33.00    0.25    0.43    N/A
"""


def told(num_bytes: object, us: object) -> str:
    return f'\nspecsweep-all-reduce {{"bytes": {num_bytes}, "us": {us}}}\n'


def test_nccl_tests_times_all_sizes_in_one_start() -> None:
    text = " ".join(nccl_tests_argv("/opt/all_reduce_perf", MESSAGES))
    assert text == "/opt/all_reduce_perf -b 2048 -e 8192 -f 2 -d half -t 8 -g 1 -w 20 -n 100 -c 0"


def test_sizes_that_it_would_not_come_by_are_refused() -> None:
    with pytest.raises(ValueError, match="powers of 2"):
        nccl_tests_argv("/opt/all_reduce_perf", Messages(8, 1024, 61, (1, 3)))


def test_the_script_is_given_to_the_servers_python_with_all_sizes() -> None:
    *python, _, _, job = script_argv(("numactl", "python3"), MESSAGES, 30000, 60.0)
    assert python == ["numactl", "python3"]
    assert json.loads(job)["sizes_bytes"] == [2048, 8192]


@pytest.mark.parametrize(("table", "times"), [(NEWER, {1: 30.25, 4: 140.0}), (OLDER, {1: 30.25, 4: 33.0})])
def test_the_time_in_place_is_read_from_the_tables_of_several_versions(
    table: str, times: dict[int, float]
) -> None:
    assert read_times(table, MESSAGES) == times


def test_the_scripts_lines_are_found_among_others() -> None:
    noise = "NCCL version 2.27.3\nspecsweep-all-reduce {nonsense}\n[W] a warning\n"
    assert read_times(noise + told(2048, 12.5) + noise + told(8192, 14), MESSAGES) == {1: 12.5, 4: 14.0}


@pytest.mark.parametrize(
    "output",
    [
        "",
        told(2048, 12.5),  # the other size is missing
        told(2048, 12.5) + told(8192, -1),
        told(2048, 12.5) + told(8192, 0),
        told(2048, 12.5) + told(8192, "NaN"),
        told(2048, 12.5) + told(8192, 1e300),
        told(2048, 12.5) + told(8192, '"x"'),
        told(2048, 12.5) + told(8192, "[[]]"),
        NEWER.partition("\n   8192")[0],  # it died on the way
        NEWER.replace("1.4e+02", "N/A"),
        NEWER.replace("N/A   30.25", "30.25"),  # a column is missing: which one is not known
        "\n".join(line for line in NEWER.splitlines() if "size" not in line),  # no heading
    ],
)
def test_output_that_lacks_a_time_has_none(output: str) -> None:
    assert read_times(output, MESSAGES) == {}


@settings(max_examples=50)
@given(st.text())
def test_no_output_is_too_strange(text: str) -> None:
    assert read_times(text, MESSAGES) == {}
    assert read_times(f"# size time\n{text}", MESSAGES).keys() in (set(), {1, 4})
