"""docker-compose.yml read as data: no Docker can be asked here, so its promises are checked one by one."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docker-compose.yml").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load(TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = (ROOT / "docker" / "Dockerfile").read_text()
VARIABLE = re.compile(r"\$\{([A-Z_]+)(:\?|:-)?([^}]*)\}")

TEXTS = {"type": "array", "items": {"type": "string"}}
SCHEMA = {
    # The part of the Compose specification that is used here; any other key is a slip.
    "type": "object",
    "required": ["services", "networks", "volumes"],
    "properties": {
        "services": {"additionalProperties": {"$ref": "#/$defs/service"}},
        "networks": {},
        "volumes": {},
    },
    "patternProperties": {"^x-": {}},
    "additionalProperties": False,
    "$defs": {
        "service": {
            "type": "object",
            "required": ["image", "restart", "logging", "cap_drop", "security_opt"],
            "additionalProperties": False,
            "properties": {
                "image": {"type": "string", "pattern": r"^[a-z0-9./-]+:\d+[\w.-]*$"},
                "build": {
                    "type": "object",
                    "required": ["context", "dockerfile", "target"],
                    "additionalProperties": {"type": "string"},
                },
                "restart": {"type": "string", "pattern": "^(no|unless-stopped|on-failure:[0-9]+)$"},
                "environment": {"type": "object", "additionalProperties": {"type": "string"}},
                "ports": {"type": "array", "items": {"type": "string", "pattern": r"^127\.0\.0\.1:"}},
                "volumes": TEXTS,
                "networks": TEXTS,
                "network_mode": {"const": "none"},
                "entrypoint": TEXTS,
                "cap_add": TEXTS,
                "cap_drop": {"const": ["ALL"]},
                "security_opt": {"const": ["no-new-privileges:true"]},
                "init": {"type": "boolean"},
                "stop_grace_period": {"type": "string", "pattern": "^[0-9]+[sm]$"},
                "logging": {"type": "object", "required": ["driver", "options"]},
                "healthcheck": {
                    "type": "object",
                    "required": ["test", "interval", "timeout", "retries"],
                    "additionalProperties": False,
                    "properties": {
                        "test": TEXTS,
                        "interval": {"type": "string"},
                        "timeout": {"type": "string"},
                        "start_period": {"type": "string"},
                        "retries": {"type": "integer"},
                    },
                },
                "depends_on": {
                    "type": "object",
                    "additionalProperties": {
                        "type": "object",
                        "required": ["condition"],
                        "properties": {
                            "condition": {"enum": ["service_healthy", "service_completed_successfully"]}
                        },
                    },
                },
            },
        }
    },
}


def test_the_file_is_what_compose_understands() -> None:
    jsonschema.validate(COMPOSE, SCHEMA)


def test_whatever_is_named_exists() -> None:
    for name, service in SERVICES.items():
        assert set(service.get("depends_on", {})) <= set(SERVICES), name
        assert set(service.get("networks", [])) <= set(COMPOSE["networks"]), name
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert source in COMPOSE["volumes"] or (ROOT / source).is_file(), volume
        if build := service.get("build"):
            assert re.search(rf"^FROM \S+ AS {build['target']}$", DOCKERFILE, re.MULTILINE), name
    used = {v.split(":")[0] for s in SERVICES.values() for v in s.get("volumes", [])}
    assert set(COMPOSE["volumes"]) <= used


def test_every_service_that_stays_has_a_health_check_and_is_waited_for_by_it() -> None:
    staying = {name for name, service in SERVICES.items() if service["restart"] != "no"}
    assert {name for name, service in SERVICES.items() if "healthcheck" in service} == staying
    for service in SERVICES.values():
        for other, how in service.get("depends_on", {}).items():
            assert how["condition"] == (
                "service_healthy" if other in staying else "service_completed_successfully"
            )


def test_there_is_no_default_password_and_every_variable_is_explained() -> None:
    example = (ROOT / ".env.example").read_text()
    explained = dict(re.findall(r"^#?([A-Z_]+)=(.*)$", example, re.MULTILINE))
    for name, how, _ in VARIABLE.findall(TEXT):
        assert name in explained, name
        if "PASSWORD" in name:
            assert (how, explained[name]) == (":?", ""), name
        else:
            assert how == ":-", name
    assert set(explained) == {name for name, _, _ in VARIABLE.findall(TEXT)}
    settings = [f"{k}={v}" for s in SERVICES.values() for k, v in s.get("environment", {}).items()]
    assert all("${" in text for text in settings if "PASSWORD" in text)
    assert not re.search(r"://[^/@\s]+:[^/@\s]+@", TEXT), "no address holds a password"
    assert ".env" in (ROOT / ".gitignore").read_text().splitlines()
    assert ".env" in (ROOT / ".dockerignore").read_text().splitlines()


def test_tags_are_pinned_and_those_that_were_not_pulled_say_so() -> None:
    outside = [s["image"] for s in SERVICES.values() if "build" not in s]
    outside += [image for image in re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE) if ":" in image]
    assert outside
    for image in outside:
        assert re.search(r":\d+\.\d+(\.\d+)?-", image), image
        assert "latest" not in image
    assert "not pulled" in TEXT.lower()
    assert "not pulled" in DOCKERFILE.lower()


def test_every_step_of_an_image_is_a_script_that_a_test_can_run() -> None:
    steps = re.findall(r"^(?:RUN|ENTRYPOINT) (.+)$", DOCKERFILE, re.MULTILINE)
    scripts = {word for step in steps for word in re.findall(r"docker/[\w-]+\.sh", step)}
    assert scripts
    one = r"docker/[\w-]+\.sh(?: [\w/-]+)*"
    for step in steps:
        assert re.fullmatch(rf'{one}(?: && {one})*|\["/app/docker/[\w-]+\.sh"\]', step), step
    named = {*scripts, *re.findall(r"docker/[\w-]+\.sh", TEXT)}
    assert named == {f"docker/{path.name}" for path in (ROOT / "docker").glob("*.sh")}
    for stage in ("mlflow", "host", "worker"):
        part = DOCKERFILE.partition(f"AS {stage}\n")[2].partition("\nFROM")[0]
        assert re.search(r"^USER (?!root)\w+$", part, re.MULTILINE), f"{stage} runs as root"


@pytest.mark.host
@pytest.mark.parametrize("script", sorted(path.name for path in (ROOT / "docker").glob("*.sh")))
def test_a_script_is_sound_and_can_be_executed(script: str) -> None:
    path = ROOT / "docker" / script
    assert path.stat().st_mode & 0o111
    subprocess.run(["sh", "-n", str(path)], check=True)
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed")
    subprocess.run(["shellcheck", "-s", "sh", str(path)], check=True)


@pytest.mark.host
def test_what_an_image_installs_is_known_here() -> None:
    only_say = {"APT_GET_OPTIONS": "-s", "MAKE_OPTIONS": "-n", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    if shutil.which("apt-get") is None:
        pytest.skip("no Debian")
    for words in (["packages.sh", "base"], ["packages.sh", "host"]):
        subprocess.run([str(ROOT / "docker" / words[0]), words[1]], env=only_say, check=True, capture_output=True)
    said = subprocess.run(
        [str(ROOT / "docker/install.sh")],
        env={**only_say, "MAKE_OPTIONS": "-n -B"},
        check=True,
        capture_output=True,
    )
    assert b"--require-hashes -r requirements.lock" in said.stdout
