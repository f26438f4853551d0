"""The load generators' own files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sweeper.errors import ConfigError
from sweeper.importing.files import read_results
from sweeper.importing.importer import Options
from tests.importing.night import DATA, bring, csv_file, stored, trials

pytestmark = pytest.mark.study


def test_bench_speculative_is_read_with_its_own_speed(tmp_path: Path) -> None:
    one = Options(where={"concurrency": "1"})
    bring(tmp_path, DATA / "bench_speculative.jsonl", options=one)
    found = trials(tmp_path)
    assert [t.mean("decode_throughput") for t in found] == [118.765, 166.337, 202.521, 210.363, 197.732]
    assert found[0].mean("accept_length") is None
    assert found[3].canonical.flags["speculative_algorithm"] == "EAGLE"
    assert found[3].mean("accept_length") == 2.72
    assert stored(tmp_path).fact("fingerprint")["workload.concurrency"] == "1"


def test_bench_serving_tells_its_configuration_and_no_secret(tmp_path: Path) -> None:
    outcome = bring(tmp_path, DATA / "bench_serving.jsonl", options=Options())
    base, three, five = trials(tmp_path)
    assert base.canonical.flags == {"tp_size": 2, "attention_backend": "fa3"}
    assert [n.metrics["output_throughput"] for n in three.launches] == [402.25, 398.5]
    assert five.canonical.flags["speculative_draft_model_path"] == "/models/llama-eagle3"
    assert three.launches[0].provenance["engine_version"] == "0.5.15.post1"
    assert three.launches[0].metrics["ttft_ms"] == 64.2
    assert "do-not-keep" not in str([t.model_dump() for t in trials(tmp_path)])
    (note,) = outcome.notes
    assert note.startswith("bench_serving.jsonl, line 5: drafted, and does not say with which algorithm")


def test_vllm_counts_acceptance_by_position(tmp_path: Path) -> None:
    bring(tmp_path, DATA / "vllm_serve.json", DATA / "vllm_serve_baseline.json", options=Options())
    base, drafts = trials(tmp_path)
    assert base.canonical.flags == {}
    assert drafts.canonical.flags == {"spec_method": "eagle3", "spec_tokens": 3}
    launch = drafts.launches[0]
    steps = launch.metrics["num_verify_steps"]
    assert launch.metrics["accept_length"] == pytest.approx(2.43)
    assert launch.metrics["accept_rate"] == pytest.approx(1.43 / 3)
    assert [round(n / steps, 2) for n in launch.accepted_per_position] == [0.71, 0.45, 0.27]
    assert (launch.ended_at - launch.started_at).total_seconds() == 120


def test_vllm_without_metadata_takes_the_configuration_from_the_command(tmp_path: Path) -> None:
    data = json.loads((DATA / "vllm_serve.json").read_text())
    bare = tmp_path / "bare.json"
    bare.write_text(json.dumps({k: v for k, v in data.items() if k not in ("method", "num_speculative_tokens")}))
    with pytest.raises(ConfigError, match="--set spec_method=NAME"):
        bring(tmp_path, bare, options=Options())
    bring(tmp_path, bare, options=Options(fixed={"method": "mtp", "num_speculative_tokens": 1}))
    assert trials(tmp_path)[0].canonical.flags == {"spec_method": "mtp", "spec_tokens": 1}


def test_files_of_two_engines_are_imported_apart(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="results of sglang and vllm; import them apart"):
        bring(tmp_path, DATA / "vllm_serve.json", DATA / "bench_serving.jsonl", options=Options())


def test_a_latency_benchmark_is_refused_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "latency.json"
    path.write_text('{"avg_latency": 1.2, "latencies": [1.2], "percentiles": {"50": 1.2}}')
    with pytest.raises(ConfigError, match="neither the number of tokens nor acceptance"):
        read_results(path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "holds no result"),
        (b"a,a\n1,2\n", "a name of its own"),
        (b"\xff\xfe\x00", "is not UTF-8"),
        (b'a,b\n"1,2\n', "is no CSV"),
        (b"{", "is no JSON"),
        (b"[1, 2]", "is no JSON object"),
    ],
)
def test_what_is_no_file_of_results_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=reason):
        read_results(path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (
            "root:x:0:0:root:/root:/bin/bash\n" * 20 + "gnats:x:41:41:Bugs (admin),,,:/:/none\n" * 8,
            "it has root:x:0:0:",
        ),
        ("# A page\n\nWords, and more words.\n" * 50, "it has # A page"),
        ("[a]\nb = 1\n" * 50, "its first line is '[a]'; line 1: is no JSON"),
        ("only one line \x1b[31m" + "x" * 500, "its first line is 'only one line"),
        ("a,b\n" + "1,2,3\n" * 50, "its first line is 'a,b'; line 2: has 3 fields, the header 2"),
        ("name,speed_of_it\n" + "a,50\n" * 50, "--columns throughput=COLUMN"),
        ('{"a": 1}\n' * 50, "it has a; --columns"),
    ],
)
def test_what_is_no_table_is_told_once_with_its_first_line(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "x"
    path.write_text(content)
    with pytest.raises(ConfigError) as caught:
        bring(tmp_path, path, options=Options())
    (told,) = caught.value.mistakes
    assert says in told
    assert len(told) < 400
    assert told.isprintable()


def test_a_file_that_is_not_there_is_one_message(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_results(tmp_path / "none.csv")


def test_a_broken_line_among_good_ones_is_told(tmp_path: Path) -> None:
    good = (DATA / "bench_speculative.jsonl").read_text().splitlines()[:2]
    path = csv_file(tmp_path, good[0], "{broken", good[1], name="r.jsonl")
    outcome = bring(tmp_path, path, options=Options())
    assert outcome.num_new == 2
    assert outcome.notes[0].startswith("r.jsonl, line 2: is no JSON")
