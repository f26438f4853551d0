"""What `specsweep plan --json` prints. Keys stay; new ones may come. Plain frozen data."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import AwareDatetime

from sweeper.records import Record


class BrokenRule(Record):
    """One rule of the engine: `rule` with N for numbers, how many configurations break it, and one that does."""

    rule: str
    count: int
    example: str
    reason: str


class ShortFilter(Record):
    """How a filter that people write by hand (`rule`) would do in place of the engine's rules.

    `missed`: valid configurations that it leaves out, one of them in words (`example`); `let_through`: illegal
    ones that it keeps; `repeated`: those that it keeps besides another one that is the same to the server.
    """

    rule: str
    missed: int
    example: str
    let_through: int
    repeated: int


class Space(Record):
    """The space under the engine's rules.

    `asked`: combinations under the conditions; `product`: as if there were no conditions; None: without end.
    `looked_at`: as many of them were looked at, at random if not all (`is_sample`), and the counts below are of
    these: `illegal`, `same` as another after the engine's rewrites, `distinct`, the baseline among them or not
    (`has_baseline`). `continuous`: parameters that are intervals.
    """

    asked: int | None
    product: int | None
    looked_at: int
    is_sample: bool
    illegal: int
    same: int
    distinct: int
    has_baseline: bool
    rules: tuple[BrokenRule, ...]
    short_filter: ShortFilter | None
    continuous: tuple[str, ...]
    never_legal: tuple[str, ...]

    @property
    def to_try(self) -> int | None:
        """How many configurations the search has; None when nobody can list them."""
        return None if self.is_sample else self.distinct - self.has_baseline


class Command(Record):
    """A server's command line on one host, secrets hidden: what is set in and removed from the environment."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = {}
    unset_env: tuple[str, ...] = ()


class Launch(Record):
    """One of the next launches. `commands`: one for each host that the server spans. `expected`: by the search."""

    trial: int
    purpose: str
    name: str
    commands: tuple[Command, ...]
    expected: str = ""
    reason: str = ""


class LaunchTime(Record):
    """Seconds that one launch takes, and between what; None: unknown. `source`: from where, in words."""

    mean_s: float | None = None
    low_s: float | None = None
    high_s: float | None = None
    num_timed: int = 0
    is_guess: bool = False
    source: str = ""


class Launches(Record):
    """How many launches are to go. `search` includes the baseline's; `at_most`: when nothing is clear early.

    `at_least`: the whole search and the shortest confirmation. `expected` lies between.
    """

    search: int
    controls: int
    confirm: int
    expected: int
    at_least: int
    at_most: int


class Deadline(Record):
    """What runs out. `holds`: so many search launches fit before the confirmation; None: nobody knows yet."""

    setting: str
    ends_at: AwareDatetime | None
    left_s: float
    kept_back_s: float | None
    holds: int | None
    needed: int


class Plan(Record):
    """The whole. `study`: where it stands, in words; `end_*`: when the sweep ends, expected and between what.

    `search`: what the sampler does, one line each. `facts`: from where the engine's version and the models' files
    are known. `unchecked`: what only the host can tell.
    """

    study: str
    host: str
    engine: str
    model: str
    objective: str
    stands: str
    trials_done: int
    trials_total: int
    space: Space
    search: tuple[str, ...]
    launches: tuple[Launch, ...]
    num_launches: Launches
    launch_time: LaunchTime
    now: AwareDatetime
    end_expected_at: AwareDatetime | None
    end_earliest_at: AwareDatetime | None
    end_latest_at: AwareDatetime | None
    deadlines: tuple[Deadline, ...]
    facts: str
    unchecked: tuple[str, ...]
    notes: tuple[str, ...]
