"""The compose file: of the specification's form, and what Docker makes of it is what was measured."""

from __future__ import annotations

import re
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given, settings

from sweeper.exporting.compose import services
from sweeper.exporting.handover import Handover
from sweeper.secrets import Secrets
from sweeper.spec import ServerConfig
from tests.exporting.made import MODEL, configs, expected, flags, handover
from tests.exporting.schemas import COMPOSE

_FORM = jsonschema.Draft202012Validator(COMPOSE)


def interpolated(value: Any, given_values: dict[str, str]) -> Any:
    """Compose's own interpolation: `$$`, `${NAME:-default}` and `${NAME:?error}`; anything else is a mistake."""
    if isinstance(value, dict):
        return {key: interpolated(item, given_values) for key, item in value.items()}
    if isinstance(value, list):
        return [interpolated(item, given_values) for item in value]
    if not isinstance(value, str):
        return value

    def filled(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        assert found[1], f"an invalid interpolation in {value!r}"
        return given_values[found[1]] if found[2] == "?" else given_values.get(found[1], found[3])

    return re.sub(r"\$\$|\$\{(\w+):([-?])([^}]*)\}|\$", filled, value)


def read(text: str, **given_values: str) -> dict[str, Any]:
    data = yaml.safe_load(text)
    _FORM.validate(data)
    service: dict[str, Any] = interpolated(data, given_values)["services"]["server"]
    return service


def compose(made: Handover) -> str:
    (text,) = services(made).values()
    return text


@given(config=configs)
@settings(max_examples=30)
def test_docker_reads_back_any_values_as_they_are(config: ServerConfig) -> None:
    made = handover(config)
    service = read(compose(made))
    assert service["command"] == expected(made, "0.0.0.0", "30000")
    assert service.get("environment", {}) == config.env


def test_only_this_machine_sees_the_server_unless_a_person_says_so() -> None:
    text = compose(handover(flags()))
    assert read(text)["ports"] == ["127.0.0.1:30000:30000"]
    assert read(text, SERVER_HOST="0.0.0.0", SERVER_PORT="80")["ports"] == ["0.0.0.0:80:30000"]


def test_the_image_is_that_of_the_measured_version_and_can_be_changed() -> None:
    text = compose(handover(flags()))
    assert read(text)["image"] == "lmsysorg/sglang:v0.5.23"
    assert read(text, SERVER_IMAGE="mine")["image"] == "mine"


def test_the_container_sees_all_paths_among_the_values_under_their_names() -> None:
    cached = f"/c/hub/models--a--b/snapshots/{'0' * 40}"
    service = read(compose(handover(flags(speculative_draft_model_path=cached, note="no/path", x="/a$b"))))
    assert [volume["target"] for volume in service["volumes"]] == [MODEL, "/c/hub/models--a--b", "/a$b"]
    assert all(volume["source"] == volume["target"] for volume in service["volumes"])


@pytest.mark.parametrize(
    ("values", "more", "device"),
    [
        ({"tp_size": 4, "pp_size": 2}, {}, {"count": 8}),
        ({"tp_size": 4, "dp_size": 2}, {}, {"count": 8}),
        ({"tp_size": 4, "dp_size": 2, "enable_dp_attention": True}, {}, {"count": 4}),
        ({"tp_size": 2}, {"gpus": (2, 3)}, {"device_ids": ["2", "3"]}),
    ],
)
def test_as_many_gpus_are_reserved_as_the_server_spans(
    values: dict[str, Any], more: dict[str, Any], device: dict[str, Any]
) -> None:
    service = read(compose(handover(flags(**values), **more)))
    (found,) = service["deploy"]["resources"]["reservations"]["devices"]
    assert found == {"driver": "nvidia", "capabilities": ["gpu"], **device}
    assert (service["ipc"], service["shm_size"]) == ("host", "32gb")


def test_a_server_without_gpus_reserves_none() -> None:
    service = read(compose(handover(flags(), engine="llamacpp")))
    assert not {"deploy", "ipc", "shm_size"} & service.keys()
    assert service["entrypoint"] == ["/app/llama-server"]


def test_secrets_come_from_the_environment() -> None:
    config = ServerConfig(flags={"api_key": "s3cret!"}, env={"HF_TOKEN": "hf_abc"})
    text = compose(handover(config, secrets=Secrets(frozenset({"s3cret!", "hf_abc"}))))
    assert "s3cret" not in text
    assert "hf_abc" not in text
    service = read(text, SERVER_API_KEY="k", HF_TOKEN="t")
    assert "k" in service["command"]
    assert service["environment"] == {"HF_TOKEN": "t"}


def test_the_ranks_of_a_server_over_several_hosts_share_the_hosts_network() -> None:
    files = services(handover(flags(tp_size=16), nodes=(2, "10.0.0.1:20000")))
    assert list(files) == ["compose-rank-0.yaml", "compose-rank-1.yaml"]
    service = read(files["compose-rank-1.yaml"])
    assert service["network_mode"] == "host"
    assert service["command"][-3:] == ["10.0.0.1:20000", "--node-rank", "1"]
    assert service["deploy"]["resources"]["reservations"]["devices"][0]["count"] == 8
