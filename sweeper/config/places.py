"""Where a sweep writes: folders that can stand in the address of a database, and MLflow's own address."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from sweeper.config.mistakes import one_line, schema_mistakes, shown
from sweeper.errors import ConfigError
from sweeper.spec import NotifySpec, StudyPlace
from sweeper.storing.addresses import is_shared, normal_url
from sweeper.tracking.place import uri_mistake

_NOT_IN_URL = re.compile(r"[?#%\\\x00-\x1f]")
_SQLITE = "sqlite:///"


def to_place(data: Mapping[str, object], told: Mapping[str, str]) -> StudyPlace:
    """Where the study and its view are; what else is wrong or missing does not matter. Raises ConfigError."""
    study, tracking = mapping(data.get("study")), mapping(data.get("tracking"))
    mistakes = [line for path, line in told.items() if line and path.startswith(("study", "tracking"))]
    mistakes += place_mistakes(study, tracking)
    name = str(mapping(data.get("engine")).get("name", ""))
    try:
        asked = json.dumps({"study": study, "tracking": tracking, "engine_name": name}, default=str)
        place = StudyPlace.model_validate_json(asked).model_copy(update={"notify": _notify(data.get("notify"))})
    except ValidationError as error:
        raise ConfigError(list(dict.fromkeys([*mistakes, *schema_mistakes(error, told)]))) from None
    if mistakes:
        raise ConfigError(list(dict.fromkeys(mistakes)))
    return place


def _notify(data: object) -> NotifySpec:
    """Whom to tell; nobody where that is given wrongly: what is looked at needs no notification."""
    try:
        return NotifySpec.model_validate_json(json.dumps(data, default=str))
    except ValidationError:
        return NotifySpec()


def place_mistakes(study: Mapping[str, object], tracking: Mapping[str, object]) -> list[str]:
    """What is wrong with the addresses of study and MLflow, and with study.dir or, if right, with each folder.

    A relative place lies in the working directory. In an address `?` begins the options, `#` and `%` have a
    meaning too: MLflow would write into another folder, or nowhere.
    """
    uri, storage, folder = _text(tracking, "uri"), _text(study, "storage"), _text(study, "dir")
    if lines := _folder_mistakes({"study.dir": (folder, folder)}):  # the addresses are made from it
        return lines
    if wrong := _storage_mistake(storage, uri):
        return [f"study.storage: {shown(storage)} {wrong}"]
    if reason := uri_mistake(uri):
        return [f"tracking.uri: {reason}"]
    places = {}
    if storage.startswith(_SQLITE):
        places["study.storage"] = (storage, storage.removeprefix(_SQLITE).partition("?")[0])
    if uri.startswith(_SQLITE):
        places["tracking.uri"] = (uri, uri.removeprefix(_SQLITE))
        artifacts = _text(tracking, "artifact_location")
        places["tracking.artifact_location"] = (artifacts, "" if "://" in artifacts else artifacts)
    return _folder_mistakes(places)


def _storage_mistake(storage: str, uri: str) -> str:
    """Why a study cannot lie there; empty when it can (or says nothing: the schema complains of that)."""
    if not storage or storage.startswith("sqlite:"):
        if storage and uri_mistake(storage):
            return "names no file; write sqlite:///PATH"
        same = bool(uri) and storage.startswith(_SQLITE) and _file_of(storage) == _file_of(uri)
        return "is MLflow's database too (tracking.uri): each of them needs one of its own" if same else ""
    if not is_shared(storage):
        return "is not supported; use sqlite:///PATH, or postgresql://HOST/DATABASE, which several hosts can share"
    try:
        address = make_url(normal_url(storage))
    except (ArgumentError, ValueError):
        return "is not an address; write postgresql://USER@HOST:PORT/DATABASE"
    if "@" in (address.host or ""):
        return "names a host with an @; one that belongs to the password is written %40"
    known = "postgresql+psycopg"
    return "" if address.drivername == known else f"names a driver that is not installed; write {known}://"


def _file_of(address: str) -> Path:
    return Path(address.removeprefix(_SQLITE).partition("?")[0]).absolute()


def mapping(raw: object) -> Mapping[str, object]:
    """A part of the configuration; an empty one when it is none (the schema complains of that)."""
    return raw if isinstance(raw, Mapping) else {}


def _text(values: Mapping[str, object], name: str) -> str:
    """One value; empty when it is not text (the schema complains of that)."""
    value = values.get(name)
    return value if isinstance(value, str) else ""


def _folder_mistakes(places: Mapping[str, tuple[str, str]]) -> list[str]:
    """`places`: dotted path to the value as written and the path in it; an empty one is left alone."""
    lines = []
    for path, (value, place) in places.items():
        if found := _NOT_IN_URL.search(place):
            reason = f"should not contain {found[0]!r}: database addresses are made from it"
            lines.append(f"{path}: {shown(value)} {reason}")
        elif place and (found := _NOT_IN_URL.search(str(Path(place).absolute()))):
            reason = f"whose {found[0]!r} cannot stand in a database's address; set study.dir=/ANOTHER/PLACE"
            lines.append(f"{path}: {shown(value)} lies in {one_line(repr(str(Path.cwd())))}, {reason}")
    return lines
