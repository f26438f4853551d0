"""The manifests: of the API's form, and what Kubernetes makes of them is what was measured."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given, settings

from sweeper.errors import ConfigError
from sweeper.exporting.handover import Handover
from sweeper.exporting.kubernetes import manifests
from sweeper.secrets import Secrets
from sweeper.spec import ServerConfig
from tests.exporting.made import MODEL, configs, expected, flags, handover
from tests.exporting.schemas import DEPLOYMENT, SERVICE

_DEPLOYMENT, _SERVICE = map(jsonschema.Draft202012Validator, (DEPLOYMENT, SERVICE))


def read(made: Handover) -> tuple[dict[str, Any], dict[str, Any]]:
    (text,) = manifests(made).values()
    deployment, service = yaml.safe_load_all(text)
    _DEPLOYMENT.validate(deployment)
    _SERVICE.validate(service)
    return deployment, service


def container(made: Handover) -> dict[str, Any]:
    found: dict[str, Any] = read(made)[0]["spec"]["template"]["spec"]["containers"][0]
    return found


def expanded(word: str, given_values: Mapping[str, str]) -> str:
    """`$$` is `$` and `$(NAME)` the variable's value, where there is one (third_party/forked/golang/expansion)."""
    return re.sub(r"\$\$|\$\(([^)]*)\)", lambda f: "$" if f[0] == "$$" else given_values.get(f[1], f[0]), word)


@given(config=configs)
@settings(max_examples=30)
def test_kubernetes_reads_back_any_values_as_they_are(config: ServerConfig) -> None:
    made = handover(config)
    found = container(made)
    assert [expanded(word, config.env) for word in found["args"]] == expected(made, "0.0.0.0", "30000")
    assert {each["name"]: expanded(each["value"], {}) for each in found.get("env", [])} == config.env


def test_the_pod_has_its_gpus_its_shared_memory_and_its_model() -> None:
    made = handover(flags(tp_size=8))
    pod = read(made)[0]["spec"]["template"]["spec"]
    (found,) = pod["containers"]
    assert found["resources"] == {"limits": {"nvidia.com/gpu": 8}}
    mounts = {mount["name"]: mount["mountPath"] for mount in found["volumeMounts"]}
    assert mounts == {"data-0": MODEL, "shm": "/dev/shm"}
    volumes = {volume.pop("name"): volume for volume in pod["volumes"]}
    assert volumes == {"data-0": {"hostPath": {"path": MODEL}}, "shm": {"emptyDir": {"medium": "Memory"}}}


def test_the_pod_is_ready_when_the_engine_says_so_and_may_take_thrice_its_measured_start() -> None:
    found = container(handover(flags(), start_s=250.0))
    assert found["readinessProbe"]["httpGet"] == {"path": "/health", "port": "http"}
    assert found["startupProbe"]["failureThreshold"] * found["startupProbe"]["periodSeconds"] >= 750


def test_the_service_leads_to_the_pod() -> None:
    deployment, service = read(handover(flags()))
    assert service["spec"]["selector"] == deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"]
    assert service["spec"]["ports"][0]["port"] == 30000


def test_secrets_come_from_a_secret() -> None:
    config = ServerConfig(flags={"api_key": "s3cret!"}, env={"HF_TOKEN": "hf_abc"})
    made = handover(config, secrets=Secrets(frozenset({"s3cret!", "hf_abc"})))
    text = "".join(manifests(made).values())
    assert "s3cret" not in text
    assert "hf_abc" not in text
    found = container(made)
    assert [each["valueFrom"]["secretKeyRef"]["key"] for each in found["env"]] == ["SERVER_API_KEY", "HF_TOKEN"]
    assert "$(SERVER_API_KEY)" in found["args"]
    assert "kubectl create secret generic night-server-secrets --from-literal=SERVER_API_KEY=" in text


def test_a_server_over_several_hosts_is_no_deployment() -> None:
    with pytest.raises(ConfigError, match="spans 2 hosts"):
        manifests(handover(flags(), nodes=(2, "10.0.0.1:20000")))
