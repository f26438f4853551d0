"""What of the Compose specification and of Kubernetes' API our files use, as JSON schemas that allow nothing else.

The manifests were held once to the full schemas, too: docs/decisions.md says with which tools.
"""

from __future__ import annotations

from typing import Any

TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT}
NAME = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"}
DURATION = {"type": "string", "pattern": "^[0-9]+s$"}
NUMBER = {"type": "integer", "minimum": 1}


def closed(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    """An object with these properties and no other."""
    properties = {**required, **(optional or {})}
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def listed(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": 1}


_DEVICE = {
    **closed({"driver": TEXT, "capabilities": {"const": ["gpu"]}}, {"count": NUMBER, "device_ids": TEXTS}),
    "oneOf": [{"required": ["count"]}, {"required": ["device_ids"]}],  # the specification forbids both
}
_SERVICE = closed(
    {"image": TEXT, "entrypoint": TEXTS, "command": TEXTS, "restart": {"const": "unless-stopped"}},
    {
        "environment": {"type": "object", "additionalProperties": TEXT},
        "ports": listed({"type": "string", "pattern": "^.+:.+:[0-9]+$"}),
        "network_mode": {"const": "host"},
        "volumes": listed(
            closed({"type": {"const": "bind"}, "source": TEXT, "target": TEXT, "read_only": {"const": True}})
        ),
        "ipc": {"const": "host"},
        "shm_size": TEXT,
        "ulimits": closed({"memlock": {"const": -1}, "stack": NUMBER}),
        "deploy": closed({"resources": closed({"reservations": closed({"devices": listed(_DEVICE)})})}),
        "stop_grace_period": DURATION,
        "healthcheck": closed(
            {
                "test": TEXTS,
                "interval": DURATION,
                "timeout": DURATION,
                "retries": NUMBER,
                "start_period": DURATION,
            }
        ),
    },
)
COMPOSE = closed({"name": NAME, "services": closed({"server": _SERVICE})})

_LABELS = {"type": "object", "additionalProperties": TEXT, "minProperties": 1}
_META = closed({"name": NAME, "labels": _LABELS})
_PROBE = closed(
    {
        "httpGet": closed({"path": TEXT, "port": {"const": "http"}}),
        "timeoutSeconds": NUMBER,
        "periodSeconds": NUMBER,
    },
    {"failureThreshold": NUMBER},
)
_VARIABLE = {
    **closed(
        {"name": TEXT},
        {"value": TEXT, "valueFrom": closed({"secretKeyRef": closed({"name": NAME, "key": TEXT})})},
    ),
    "oneOf": [{"required": ["value"]}, {"required": ["valueFrom"]}],
}
_CONTAINER = closed(
    {
        "name": NAME,
        "image": TEXT,
        "command": TEXTS,
        "args": TEXTS,
        "ports": listed(closed({"name": NAME, "containerPort": NUMBER})),
        "startupProbe": _PROBE,
        "readinessProbe": _PROBE,
    },
    {
        "env": listed(_VARIABLE),
        "resources": closed({"limits": closed({"nvidia.com/gpu": NUMBER})}),
        "volumeMounts": listed(closed({"name": NAME, "mountPath": TEXT}, {"readOnly": {"const": True}})),
    },
)
_VOLUME = closed(
    {"name": NAME}, {"hostPath": closed({"path": TEXT}), "emptyDir": closed({"medium": {"const": "Memory"}})}
)
_POD = closed({"containers": listed(_CONTAINER)}, {"volumes": listed(_VOLUME)})
DEPLOYMENT = closed(
    {
        "apiVersion": {"const": "apps/v1"},
        "kind": {"const": "Deployment"},
        "metadata": _META,
        "spec": closed(
            {
                "replicas": {"const": 1},
                "strategy": closed({"type": {"const": "Recreate"}}),
                "selector": closed({"matchLabels": _LABELS}),
                "template": closed({"metadata": closed({"labels": _LABELS}), "spec": _POD}),
            }
        ),
    }
)
SERVICE = closed(
    {
        "apiVersion": {"const": "v1"},
        "kind": {"const": "Service"},
        "metadata": _META,
        "spec": closed(
            {
                "type": {"const": "ClusterIP"},
                "selector": _LABELS,
                "ports": listed(closed({"name": NAME, "port": NUMBER, "targetPort": {"const": "http"}})),
            }
        ),
    }
)
