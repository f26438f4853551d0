"""A service for Docker Compose, one file per rank. `$` begins a variable there; `$$` is a dollar sign."""

from __future__ import annotations

from collections.abc import Mapping

from sweeper.exporting.comments import comments
from sweeper.exporting.handover import Handover, Setting, Word
from sweeper.yaml_text import yaml_text

ANY_ADDRESS = "0.0.0.0"
IMAGE_NAME = "SERVER_IMAGE"
SHARED_MEMORY = "32gb"
"""What SGLang's own documentation gives its containers: the processes of a tensor-parallel group share it."""


def services(handover: Handover) -> dict[str, str]:
    """File name to text."""
    return {f"compose{handover.suffix(rank)}.yaml": _file(handover, rank) for rank in range(handover.num_ranks)}


def _file(handover: Handover, rank: int) -> str:
    address = f"{handover.host_setting.name} and {handover.port_setting.name}"
    usage = [
        f"docker compose up --detach. {IMAGE_NAME} names another image.",
        f"{address}: the address and port at which this machine offers the server.",
        *(
            f"Give {secret.name} in the environment or in a file .env beside this one."
            for secret in handover.secrets
        ),
        "The container runs the program of the image, with the flags that were measured.",
    ]
    return comments([*handover.about, "", *usage]) + yaml_text(_project(handover, rank))


def _project(handover: Handover, rank: int) -> Mapping[str, object]:
    serving = handover.serving
    name = f"{handover.name}{handover.suffix(rank)}"
    alone = handover.num_ranks == 1
    host: Word = ANY_ADDRESS if alone else handover.host_setting
    port: Word = str(serving.port) if alone else handover.port_setting
    groups = handover.arguments(host, port, rank)
    service: dict[str, object] = {
        "image": f"${{{IMAGE_NAME}:-{serving.image}}}",
        "entrypoint": [compose_word(word) for word in serving.image_command],
        "command": [compose_word(word) for group in groups for word in group],
    }
    if handover.env:
        service["environment"] = {name: compose_word(word) for name, word in handover.env.items()}
    service |= _network(handover) if alone else {"network_mode": "host"}
    if handover.paths:
        service["volumes"] = [_volume(path) for path in handover.paths]
    if handover.serving.num_gpus:
        service |= {"ipc": "host", "shm_size": SHARED_MEMORY, "ulimits": {"memlock": -1, "stack": 67108864}}
        service["deploy"] = {"resources": {"reservations": {"devices": [_gpus(handover)]}}}
    service |= {"restart": "unless-stopped", "stop_grace_period": "60s", "healthcheck": _health(handover, port)}
    return {"name": name, "services": {"server": service}}


def _network(handover: Handover) -> dict[str, object]:
    host, port = compose_word(handover.host_setting), compose_word(handover.port_setting)
    return {"ports": [f"{host}:{port}:{handover.serving.port}"]}


def _volume(path: str) -> dict[str, object]:
    place = compose_word(path)
    return {"type": "bind", "source": place, "target": place, "read_only": True}


def _gpus(handover: Handover) -> dict[str, object]:
    wanted: dict[str, object] = {"count": handover.serving.num_gpus}
    if handover.gpus:
        wanted = {"device_ids": [str(index) for index in handover.gpus]}
    return {"driver": "nvidia", **wanted, "capabilities": ["gpu"]}


def _health(handover: Handover, port: Word) -> dict[str, object]:
    start_s = max(60, round(3 * (handover.start_s or 600)))
    address = f"http://127.0.0.1:{compose_word(port)}{handover.serving.health_path}"
    return {
        "test": ["CMD", "curl", "--fail", "--silent", "--output", "/dev/null", address],
        "interval": "30s",
        "timeout": "25s",
        "retries": 3,
        "start_period": f"{start_s}s",
    }


def compose_word(word: Word) -> str:
    """One word, before YAML quotes it."""
    if isinstance(word, Setting):
        return f"${{{word.name}:-{word.default}}}" if word.default else f"${{{word.name}:?is secret}}"
    return word.replace("$", "$$")
