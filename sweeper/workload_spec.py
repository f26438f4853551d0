"""What a workload is: prompts, lengths, how the load arrives, and how long it is measured."""

from __future__ import annotations

from pydantic import Field, ValidationInfo, field_validator

from sweeper.frozen import MAX_COUNT, MAX_SECONDS, MAX_SEED, Frozen, once

MAX_REPEATS = 1000
MAX_PROMPTS = 5_000
MAX_REQUESTS = 20_000
"""Of one workload in one launch. All are made, and put under the chat template, before the first launch."""

MAX_TEXT = 100_000
"""Characters of one prompt. Where a host applies the chat template, the text is an argument of a command: Linux
takes 128 KiB at most."""


class Prompt(Frozen):
    """One request of a workload. `prompt_class` groups prompts of a kind (`copy`, `chat`, ...).

    `token_ids` are filled in on the way, for a server that is sent tokens: the text under the chat template.
    """

    id: str
    text: str = Field(min_length=1, max_length=MAX_TEXT)
    prompt_class: str = "default"
    token_ids: tuple[int, ...] = ()


class WorkloadSpec(Frozen):
    """One load pattern.

    `chat`: each prompt is a user's message, under the model's chat template; else the text is completed as it is.
    `ignore_eos`: answers go on to `max_tokens` whatever the model says; for a fixed amount of work.

    `concurrency` requests are under way at once: each next one is sent when one has ended. With `request_rate`
    they arrive by themselves, so many per second on average (a Poisson process drawn from `seed`), and
    `concurrency` is the most that may be under way.

    All prompts are sent `repeats` times, and again up to `max_repeats` times in all (0: never) while the passes
    differ so much that their mean is not known to `precision_pct` percent; no pass begins after `max_measure_s`
    seconds.
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
    request_rate: float | None = Field(default=None, gt=0, le=100_000)
    repeats: int = Field(gt=0, le=MAX_REPEATS)
    max_repeats: int = Field(default=0, ge=0, le=MAX_REPEATS, validate_default=True)
    precision_pct: float = Field(default=0.5, gt=0, le=100)
    max_measure_s: float = Field(default=3600, gt=0, le=MAX_SECONDS)
    stop_hopeless: bool = True
    fresh_prefixes: bool = True
    warmup_max_requests: int = Field(default=12, ge=0, le=MAX_COUNT)
    warmup_max_s: float = Field(default=120, gt=0, le=MAX_SECONDS)
    request_timeout_s: float = Field(gt=0, le=MAX_SECONDS)

    @property
    def sequential(self) -> bool:
        """Whether requests follow one another, so that each can be compared with its like."""
        return self.concurrency == 1 and self.request_rate is None

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
        return rate

    @field_validator("max_repeats")
    @classmethod
    def _possible(cls, most: int, info: ValidationInfo) -> int:
        repeats = info.data.get("repeats", 0)
        if 0 < most < repeats:
            raise ValueError(f"must be 0 or at least repeats ({repeats})")
        count = len(info.data.get("prompts", ()))
        if (total := count * max(most, repeats)) > MAX_REQUESTS:
            passes = f"{count:,} prompts x {max(most, repeats)} passes"
            raise ValueError(f"{passes} are {total:,} requests in each launch, more than {MAX_REQUESTS:,}")
        return most
