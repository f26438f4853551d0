"""Looks at a host without changing anything on it: what `specsweep doctor` asks, in few round trips.

Everything that comes back is untrusted: bounded by the shell (8 MiB) and here (lines), and never executed.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from launchers.errors import HostLost
from launchers.gpus import GpuLook, read_gpus
from launchers.host import HostLauncher
from launchers.replies import LOOKING, Reply, call_script, expect, parse_reply

MAX_LINES = 20_000
_SMI_S = 20
_CARDS_S = 20
_FILES_S = 60.0
_SECONDS = re.compile(r"(\d{9,12})(?:\.(\d{1,9}))?")


@dataclass(frozen=True)
class Told:
    """What a host told in lines `WORD TEXT`, by their word. `noise`: what its shell printed before the answer."""

    lines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    noise: str = ""

    def all(self, word: str) -> tuple[str, ...]:
        """Every text under `word`."""
        return self.lines.get(word, ())

    def first(self, word: str) -> str:
        """The first text under `word`; empty when there is none."""
        return next(iter(self.all(word)), "").strip()

    def numbers(self, word: str) -> tuple[int, ...]:
        """The whole numbers of the first line under `word`; empty unless it has nothing else."""
        words = self.first(word).split()
        return tuple(map(int, words)) if all(re.fullmatch(r"\d{1,18}", each) for each in words) else ()


@dataclass(frozen=True)
class Pulse:
    """How long a small script takes there and back, and the host's clock less this machine's, both in seconds.

    `skew_s` is known to half of `trip_s`; None where the host's `date` tells nothing.
    """

    trip_s: float
    skew_s: float | None


def pulse(launcher: HostLauncher) -> Pulse:
    """The time of one round trip, and the difference of the clocks. Raises HostLost."""
    clock = launcher.clock
    before, began_s = clock.now().timestamp(), clock.monotonic_s()
    result = launcher.shell.run("date +%s.%N\n", launcher.settings.answer_timeout_s)
    trip_s = clock.monotonic_s() - began_s
    found = [*_SECONDS.finditer(result.stdout.decode("utf-8", "replace"))]
    there = float(f"{found[-1][1]}.{found[-1][2] or '5'}") if found else None  # without fractions: half a second
    return Pulse(trip_s, None if there is None else there - (before + trip_s / 2))


def look_at_host(launcher: HostLauncher) -> Told:
    """System, state folder, lock, limits, memory and inference servers of the host. Raises HostLost."""
    reply, noise = _asked(launcher, "look", (), launcher.settings.answer_timeout_s)
    return Told(_by_word(expect(reply, "look").text().split("\n")), noise)


def look_at_gpus(launcher: HostLauncher) -> GpuLook | None:
    """The watched GPUs and who holds what of them; None where there is no nvidia-smi. Raises HostLost."""
    timeout_s = launcher.settings.answer_timeout_s + 2 * _SMI_S
    reply, _ = _asked(launcher, "gpus", (str(100 * _SMI_S),), timeout_s)
    return None if reply.kind == "nosmi" else read_gpus(expect(reply, "gpus").text(), launcher.settings.gpus)


def look_at_cards(launcher: HostLauncher, questions: Mapping[str, str]) -> Told | None:
    """What nvidia-smi answers to each of `questions` (a word to its arguments), and `code WORD NUMBER`.

    None where there is no nvidia-smi. After one that took too long none is asked. Raises HostLost.
    """
    words = [word for pair in questions.items() for word in pair]
    timeout_s = launcher.settings.answer_timeout_s + _CARDS_S
    reply, _ = _asked(launcher, "cards", (str(_CARDS_S), *words), timeout_s)
    return None if reply.kind == "nosmi" else Told(_by_word(expect(reply, "cards").text().split("\n")))


def look_at_models(launcher: HostLauncher, paths: Sequence[str]) -> tuple[Told, ...]:
    """What lies at each of the absolute `paths`: kind, weight files, the shards that its index names.

    Raises HostLost.
    """
    reply, _ = _asked(launcher, "models", paths, _FILES_S)
    lines = _by_word(expect(reply, "models").text().split("\n"))
    return tuple(Told(_by_word(lines.get(str(number), ()))) for number in range(len(paths)))


def _asked(launcher: HostLauncher, verb: str, arguments: Iterable[str], timeout_s: float) -> tuple[Reply, str]:
    """The reply to one verb of looking.sh, and what was printed before it. Raises HostLost."""
    nonce = secrets.token_hex(8)
    script = call_script(nonce, launcher.settings.state_dir, verb, arguments, LOOKING)
    result = launcher.shell.run(script, timeout_s)
    try:
        reply = parse_reply(result.stdout, nonce)
    except HostLost as error:
        said = result.stderr[-300:].decode("utf-8", "backslashreplace").strip()
        raise HostLost(f"{launcher.host}, `{verb}`: {error}; exit {result.exit_code}: {said}") from error
    if reply.kind == "unknown":
        raise HostLost(f"{launcher.host}, `{verb}`: {reply.text()}")
    noise = result.stdout.partition(f"\n@specsweep {nonce} ".encode())[0]
    return reply, noise[:2000].decode("utf-8", "backslashreplace")


def _by_word(lines: Iterable[str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for number, line in enumerate(lines):
        word, _, rest = line.partition(" ")
        if word and number < MAX_LINES:
            found.setdefault(word, []).append(rest)
    return {word: tuple(texts) for word, texts in found.items()}
