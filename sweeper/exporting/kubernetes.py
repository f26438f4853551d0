"""A Deployment and a Service for Kubernetes. `$(NAME)` is a variable there; `$$` a dollar sign."""

from __future__ import annotations

from collections.abc import Mapping

from sweeper.errors import ConfigError
from sweeper.exporting.comments import comments
from sweeper.exporting.handover import Handover, Setting, Word
from sweeper.yaml_text import yaml_text

ANY_ADDRESS = "0.0.0.0"
FILE = "kubernetes.yaml"
_PROBE_S = 10


def manifests(handover: Handover) -> dict[str, str]:
    """File name to text. Raises ConfigError for a server that spans several hosts."""
    if handover.num_ranks > 1:
        spans = f"the server spans {handover.num_ranks} hosts, and the pods of a Deployment have no ranks"
        raise ConfigError([f"--format: kubernetes: {spans}; take the scripts into a LeaderWorkerSet"])
    usage = [
        f"kubectl apply -f {FILE}. Change image, port and the type of the Service to your needs.",
        *(_secret_usage(handover) if handover.secrets else ()),
    ]
    if handover.paths:
        usage.append("The paths under hostPath must exist on the node; or put a volume of your own there.")
    documents = [yaml_text(_deployment(handover)), yaml_text(_service(handover))]
    return {FILE: comments([*handover.about, "", *usage]) + "---\n".join(documents)}


def _secret_usage(handover: Handover) -> tuple[str, ...]:
    values = " ".join(f"--from-literal={secret.name}=..." for secret in handover.secrets)
    return (f"First: kubectl create secret generic {_secret_name(handover)} {values}",)


def _secret_name(handover: Handover) -> str:
    return f"{handover.name}-secrets"


def _labels(handover: Handover) -> dict[str, object]:
    return {"app.kubernetes.io/name": handover.name}


def _deployment(handover: Handover) -> Mapping[str, object]:
    pod: dict[str, object] = {"containers": [_container(handover)]}
    volumes: list[dict[str, object]] = [
        {"name": f"data-{index}", "hostPath": {"path": path}} for index, path in enumerate(handover.paths)
    ]
    if handover.serving.num_gpus:
        volumes.append({"name": "shm", "emptyDir": {"medium": "Memory"}})
    if volumes:
        pod["volumes"] = volumes
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": handover.name, "labels": _labels(handover)},
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": _labels(handover)},
            "template": {"metadata": {"labels": _labels(handover)}, "spec": pod},
        },
    }


def _container(handover: Handover) -> dict[str, object]:
    serving = handover.serving
    groups = handover.arguments(ANY_ADDRESS, str(serving.port))
    probe = {"httpGet": {"path": serving.health_path, "port": "http"}, "timeoutSeconds": 25}
    start_s = max(60, round(3 * (handover.start_s or 600)))
    container: dict[str, object] = {
        "name": "server",
        "image": serving.image,
        "command": [kubernetes_word(word) for word in serving.image_command],
        "args": [kubernetes_word(word) for group in groups for word in group],
        "ports": [{"name": "http", "containerPort": serving.port}],
    }
    if env := [_variable(handover, name, word) for name, word in _variables(handover).items()]:
        container["env"] = env
    if serving.num_gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": serving.num_gpus}}
    container["startupProbe"] = {
        **probe,
        "periodSeconds": _PROBE_S,
        "failureThreshold": -(-start_s // _PROBE_S),
    }
    container["readinessProbe"] = {**probe, "periodSeconds": 30}
    mounts: list[dict[str, object]] = [
        {"name": f"data-{index}", "mountPath": path, "readOnly": True} for index, path in enumerate(handover.paths)
    ]
    if serving.num_gpus:
        mounts.append({"name": "shm", "mountPath": "/dev/shm"})
    if mounts:
        container["volumeMounts"] = mounts
    return container


def _variables(handover: Handover) -> dict[str, Word]:
    """The environment, and the secrets that stand in arguments: these are read from variables, too."""
    return {**{secret.name: secret for secret in handover.secrets}, **handover.env}


def _variable(handover: Handover, name: str, word: Word) -> dict[str, object]:
    if isinstance(word, Setting):
        return {"name": name, "valueFrom": {"secretKeyRef": {"name": _secret_name(handover), "key": word.name}}}
    return {"name": name, "value": kubernetes_word(word)}


def _service(handover: Handover) -> Mapping[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": handover.name, "labels": _labels(handover)},
        "spec": {
            "type": "ClusterIP",
            "selector": _labels(handover),
            "ports": [{"name": "http", "port": handover.serving.port, "targetPort": "http"}],
        },
    }


def kubernetes_word(word: Word) -> str:
    """One argument or value, before YAML quotes it."""
    return f"$({word.name})" if isinstance(word, Setting) else word.replace("$", "$$")
