"""What `status` reads of a launch is what the whole record says."""

from __future__ import annotations

import json

import pytest

from sweeper.records import LaunchRecord
from sweeper.standing.briefs import Brief, read_brief
from sweeper.storing.saved_launch import SavedLaunch, Unreadable, read_saved
from tests.fakes import launch


@pytest.mark.parametrize("value", [50.0, None])
def test_a_brief_has_the_fields_of_the_record_and_defaults_for_all_others(value: float | None) -> None:
    made = launch(value, repeats=[49.0, 51.0]).model_copy(update={"effective": {"x": 1}, "argv": ("serve", "--x")})
    text = json.dumps({"record": json.loads(made.model_dump_json()), "artifacts": ["launch-0-server.log"]})
    whole, brief = read_saved(text), read_brief(text)
    assert isinstance(whole, SavedLaunch)
    assert isinstance(brief, SavedLaunch)
    for name, field in LaunchRecord.model_fields.items():
        wanted = (
            getattr(whole.record, name)
            if name in Brief.model_fields
            else field.get_default(call_default_factory=True)
        )
        assert getattr(brief.record, name) == wanted, name


def test_what_a_brief_leaves_out_is_not_what_a_record_must_have() -> None:
    required = {name for name, field in LaunchRecord.model_fields.items() if field.is_required()}
    assert required <= Brief.model_fields.keys() <= LaunchRecord.model_fields.keys()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"record": {"host": 3}}', '{"record": {"metrics": NaN}}'])
def test_what_is_no_launch_is_told(text: str) -> None:
    assert isinstance(read_brief(text), Unreadable)
