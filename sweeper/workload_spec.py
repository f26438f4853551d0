"""What a workload is: prompts, lengths, how the load arrives, and how long it is measured."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pydantic import Field, ValidationInfo, field_validator

from sweeper.frozen import MAX_COUNT, MAX_SECONDS, MAX_SEED, Frozen, once

MAX_REPEATS = 1000
MAX_PROMPTS = 5_000
MAX_REQUESTS = 20_000
"""Of one workload in one launch. All are made, and put under the chat template, before the first launch."""

PER_PLACE = 2
"""Requests in one pass for each place under way: fewer than one would leave places empty from the beginning."""

MAX_TEXT = 100_000
"""Characters of one prompt. Where a host applies the chat template, the text is an argument of a command: Linux
takes 128 KiB at most."""


class Prompt(Frozen):
    """One request of a workload. `prompt_class` groups prompts of a kind (`copy`, `chat`, ...).

    `token_ids` are filled in on the way, for a server that is sent tokens: the text under the chat template.
    """

    id: str = Field(min_length=1)
    text: str = Field(min_length=1, max_length=MAX_TEXT)
    prompt_class: str = Field(default="default", min_length=1)
    token_ids: tuple[int, ...] = ()


class WorkloadSpec(Frozen):
    """One load pattern.

    `chat`: each prompt is a user's message, under the model's chat template; else the text is completed as it is.
    `ignore_eos`: answers go on to `max_tokens` whatever the model says; for a fixed amount of work.

    `concurrency` requests are under way at once: each next one is sent when one has ended. With `request_rate`
    they arrive by themselves, so many per second on average (a Poisson process drawn from `seed`), and
    `concurrency` is the most that may be under way. All of one pass arrive within `max_measure_s` seconds.

    All prompts are sent `repeats` times. They are sent as often again while the passes differ so much that their
    mean is not known to `precision_pct` percent, if that is no more than `max_repeats` times in all: a smaller one
    leaves it at `repeats`. After `max_measure_s` seconds no pass begins, but for the rest of `repeats` further
    ones of which the first was begun in time.
    `fresh_prefixes`: each pass after the first puts a few words of its own in front of every prompt, the same ones
    in every launch, so that no cache of the server knows it. `stop_hopeless`: a search launch ends as soon as
    its paired comparison with the best so far leaves no hope.

    The server is warmed up until its speed no longer rises: at most `warmup_max_requests` requests (0: none) and
    `warmup_max_s` seconds.
    """

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _-]{0,49}$")
    prompts: tuple[Prompt, ...] = Field(min_length=1, max_length=MAX_PROMPTS)
    chat: bool = True
    max_tokens: int = Field(gt=0, le=MAX_COUNT)
    ignore_eos: bool = False
    temperature: float = Field(ge=0)
    seed: int = Field(ge=0, le=MAX_SEED)
    concurrency: int = Field(default=1, ge=1, le=4096)
    max_measure_s: float = Field(default=3600, gt=0, le=MAX_SECONDS)
    request_rate: float | None = Field(default=None, gt=0, le=100_000)
    fresh_prefixes: bool = True
    repeats: int = Field(gt=0, le=MAX_REPEATS)
    max_repeats: int = Field(default=0, ge=0, le=MAX_REPEATS, validate_default=True)
    precision_pct: float = Field(default=0.5, gt=0, le=100)
    stop_hopeless: bool = True
    warmup_max_requests: int = Field(default=12, ge=0, le=MAX_COUNT)
    warmup_max_s: float = Field(default=120, gt=0, le=MAX_SECONDS)
    request_timeout_s: float = Field(gt=0, le=MAX_SECONDS)

    @property
    def sequential(self) -> bool:
        """Whether requests follow one another, so that each can be compared with its like."""
        return self.concurrency == 1 and self.request_rate is None

    @property
    def num_copies(self) -> int:
        """How often each prompt is sent in one pass, under prefixes of its own.

        More than once where there are fewer than PER_PLACE for each place. A load that arrives by itself fills no
        places, and without `fresh_prefixes` a copy would be answered from a cache.
        """
        return _num_copies({name: getattr(self, name) for name in ("prompts", *_FILLING)})

    @field_validator("prompts")
    @classmethod
    def _distinct(cls, prompts: tuple[Prompt, ...]) -> tuple[Prompt, ...]:
        once(tuple(prompt.id for prompt in prompts))
        return prompts

    @field_validator("request_rate")
    @classmethod
    def _room(cls, rate: float | None, info: ValidationInfo) -> float | None:
        if rate is not None and info.data.get("concurrency") == 1:
            raise ValueError("arriving requests need concurrency above 1: the most that may be under way")
        count, limit_s = len(info.data.get("prompts", ())), info.data.get("max_measure_s", math.inf)
        if rate is not None and count - 1 > rate * limit_s:
            arrive = f"{count:,} prompts arrive in {(count - 1) / rate:,.0f} s on average"
            raise ValueError(f"{arrive}, more than max_measure_s ({limit_s:g})")
        return rate

    @field_validator("repeats", "max_repeats")
    @classmethod
    def _possible(cls, passes: int, info: ValidationInfo) -> int:
        count, copies = len(info.data.get("prompts", ())), _num_copies(info.data)
        if (total := count * copies * passes) > MAX_REQUESTS:
            filled = f" x {copies:,} (to fill {info.data['concurrency']:,} places twice)" if copies > 1 else ""
            asked = f"{count:,} prompts{filled} x {passes} passes"
            raise ValueError(f"{asked} are {total:,} requests in each launch, more than {MAX_REQUESTS:,}")
        return passes


_FILLING = ("concurrency", "request_rate", "fresh_prefixes")


def _num_copies(fields: Mapping[str, Any]) -> int:
    """`WorkloadSpec.num_copies` of these fields; 1 where one is missing, since it is wrong itself."""
    if not fields.get("prompts") or not all(name in fields for name in _FILLING):
        return 1
    places: int = fields["concurrency"]
    if places == 1 or fields["request_rate"] is not None or not fields["fresh_prefixes"]:
        return 1
    return max(1, math.ceil(PER_PLACE * places / len(fields["prompts"])))
