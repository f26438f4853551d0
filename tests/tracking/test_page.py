"""The experiment's page: description and saved view."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

from sweeper.records import WorkloadResult
from sweeper.tracking.page import (
    MAX_PARAM_COLUMNS,
    TAG_PAGE,
    TAG_VERDICT,
    TAG_VIEW,
    description,
    further_columns,
    page_tags,
    saved_state,
    searched_params,
    view_fragment,
)
from sweeper.tracking.view import RunView, run_view
from tests.tracking.studies import config, launch, make_study, trial


def views(count: int) -> list[RunView]:
    records = make_study(count).records
    return [run_view({}, record, records[0], "output_throughput") for record in records]


def unpacked(tags: dict[str, str]) -> dict[str, Any]:
    state = json.loads(tags[TAG_VIEW])["state"].removeprefix("deflate;")
    unpacked: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(state)))
    return unpacked


def test_the_view_opens_with_the_objective_best_first() -> None:
    state = unpacked(page_tags("decode_throughput", {}, None, views(4)))
    assert (state["orderByKey"], state["orderByAsc"]) == ("metrics.`decode_throughput`", False)
    assert state["selectedColumns"][0] == "metrics.`decode_throughput`"
    assert state["selectedColumns"][-3:] == [
        "params.`spec_ngram_size_m`",
        "params.`spec_ngram_size_n`",
        "params.`spec_type`",
    ]


def test_a_latency_is_best_when_it_is_low() -> None:
    assert saved_state("tpot_ms", [])["orderByAsc"] is True


def test_only_parameters_that_differ_become_columns_and_not_too_many() -> None:
    assert searched_params(views(4)) == ["spec_ngram_size_m", "spec_ngram_size_n", "spec_type"]
    assert searched_params(views(1)) == []
    wide = config({f"flag_{number}": number for number in range(20)})
    both = [run_view({}, record, None, "ttft_ms") for record in (trial(0, config({})), trial(1, wide))]
    assert len(searched_params(both)) == MAX_PARAM_COLUMNS


def test_further_workloads_and_notes_become_columns_where_there_are_any() -> None:
    settings = config({"spec_type": "ngram-mod"})
    busy = {"busy": WorkloadResult(metrics={"output_throughput": 300.0, "ttft_ms": 9.0})}
    noted = trial(1, settings, launches=(launch(1, settings, others=busy, doubts=("cold",)),))
    both = [run_view({}, record, None, "output_throughput") for record in (trial(0, config({})), noted)]
    assert further_columns(both) == ["metrics.`busy.output_throughput`", "tags.`specsweep.doubts`"]
    assert further_columns(both[:1]) == []
    state = unpacked(page_tags("output_throughput", {}, None, both))
    assert "metrics.`busy.output_throughput`" in state["columnOrder"]


def test_the_page_digest_is_written_last_and_follows_the_content() -> None:
    tags = page_tags("output_throughput", {"host": "a"}, None, views(3))
    assert list(tags)[-1] == TAG_PAGE
    assert page_tags("output_throughput", {"host": "a"}, None, views(3)) == tags
    changed = page_tags("output_throughput", {"host": "a"}, "winner: trial 2", views(3))
    assert changed[TAG_PAGE] != tags[TAG_PAGE]
    assert (changed[TAG_VERDICT], TAG_VERDICT in tags) == ("winner: trial 2", False)


def test_the_description_starts_with_the_verdict_and_lists_the_facts() -> None:
    lines = description({"model": "a|b\nc"}, "winner: trial 2\nby 20 %").splitlines()
    assert lines[:2] == ["    winner: trial 2", "    by 20 %"]
    assert lines[-1] == "| model | a\\|b c |"


def test_everything_fits_into_mlflows_limits() -> None:
    facts = {f"fact {number}": "x" * 1000 for number in range(100)}
    tags = page_tags("output_throughput", facts, "v" * 100_000, views(30))
    assert max(len(value) for value in tags.values()) <= 20_000


def test_the_address_names_the_view() -> None:
    assert view_fragment("12") == "#/experiments/12/runs?workflowType=machine_learning&viewStateShareKey=specsweep"
