"""Records that lie in memory by the thousand: what is the same in two of them is held once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sweeper.records import LaunchRecord
from sweeper.spec import FlagValue, ServerConfig

_TEXTS = ("provenance", "argv", "lossy")
_OTHERS = ("requested", "canonical", "gpu", "others")
_MOST = 0.75
"""A server's settings are held by what differs if at least so many are as those of another one."""


def sharing(launch: LaunchRecord, other: LaunchRecord) -> LaunchRecord:
    """The same launch, with what is equal in `other` held once."""
    values = {name: getattr(launch, name) for name in LaunchRecord.model_fields}
    values |= {name: theirs for name in _TEXTS if (theirs := getattr(other, name)) == values[name]}
    values |= {name: theirs for name in _OTHERS if is_same(values[name], theirs := getattr(other, name))}
    values["outputs"] = _with_texts_of(launch.outputs, other.outputs)
    values["effective"] = alike(launch.effective, other.effective)
    known = launch.model_fields_set
    shared = other.model_fields_set if known == other.model_fields_set else known
    return LaunchRecord.model_construct(shared, **values)


def is_same(ours: object, theirs: object) -> bool:
    """Equal, and written alike: 1, 1.0 and True are equal."""
    if isinstance(ours, ServerConfig) and isinstance(theirs, ServerConfig):
        return ours == theirs and _spelled(ours) == _spelled(theirs)
    return ours == theirs and repr(ours) == repr(theirs)


def _spelled(config: ServerConfig) -> list[object]:
    """The order of the settings, and of what kind their values are."""
    return [*config.flags, *map(type, config.flags.values()), *config.env]


def _with_texts_of(ours: Mapping[str, str], theirs: Mapping[str, str]) -> Mapping[str, str]:
    if ours == theirs:
        return theirs
    return {name: known if (known := theirs.get(name)) == text else text for name, text in ours.items()}


class Alike(Mapping[str, FlagValue]):
    """Settings of which most are as those of another server: `most`, but for `different` and without `absent`."""

    __slots__ = ("_absent", "_different", "_most")

    def __init__(
        self, most: Mapping[str, FlagValue], different: Mapping[str, FlagValue], absent: frozenset[str]
    ) -> None:
        self._most, self._different, self._absent = most, different, absent

    @property
    def most(self) -> Mapping[str, FlagValue]:
        """What others are held by, too."""
        return self._most

    def __getitem__(self, name: str) -> FlagValue:
        if name in self._different:
            return self._different[name]
        if name in self._absent:
            raise KeyError(name)
        return self._most[name]

    def __iter__(self) -> Iterator[str]:
        yield from (name for name in self._most if name not in self._absent)
        yield from (name for name in self._different if name not in self._most)

    def __len__(self) -> int:
        further = sum(1 for name in self._different if name not in self._most)
        return len(self._most) - len(self._absent) + further

    def __repr__(self) -> str:
        return repr(dict(self))


def alike(ours: Mapping[str, FlagValue], theirs: Mapping[str, FlagValue]) -> Mapping[str, FlagValue]:
    """`ours`, held by how it differs from `theirs` where that is little."""
    most = theirs.most if isinstance(theirs, Alike) else theirs
    others = [item for item in ours.items() if most.get(item[0]) is not item[1]]  # most are the very same
    different = {name: value for name, value in others if not _has(most, name, value)}
    absent = frozenset(most.keys() - ours.keys())
    if len(different) + len(absent) > (1 - _MOST) * len(most):
        return ours
    return Alike(most, different, absent)


def _has(settings: Mapping[str, FlagValue], name: str, value: FlagValue) -> bool:
    """Whether the setting has this very value, written alike: 1, 1.0 and True are equal, as are 0.0 and -0.0."""
    known = settings.get(name)
    return type(known) is type(value) and known == value and (bool(known) or repr(known) == repr(value))
