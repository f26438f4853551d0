"""What the columns of results mean: roles by name, units made explicit, values read strictly."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sweeper.errors import ConfigError
from sweeper.metric_names import metric_called
from sweeper.near_names import nearest
from sweeper.spec import FlagValue
from sweeper.text import plain


@dataclass(frozen=True)
class Role:
    """What a column can be. `metric`: the metric that it holds, once multiplied by `factor`; empty for all else.

    `also`: other names under which people write it.
    """

    name: str
    metric: str = ""
    factor: float = 1.0
    also: tuple[str, ...] = ()


def _timed(name: str, metric: str, *also: str) -> tuple[Role, ...]:
    """The same time in milliseconds and in seconds."""
    return (Role(f"{name}_ms", metric, 1.0, also), Role(f"{name}_s", metric, 1000.0))


ROLES: tuple[Role, ...] = (
    Role(
        "throughput",
        "output_throughput",
        also=(
            "output_throughput",
            "output_tok_s",
            "tok_s",
            "toks_per_s",
            "tokens_per_second",
            "output_tokens_per_s",
        ),
    ),
    Role("decode_throughput", "decode_throughput", also=("decode_tok_s",)),
    Role("request_throughput", "request_throughput", also=("requests_per_s",)),
    Role(
        "accept_length",
        "accept_length",
        also=(
            "accept_len",
            "acc_len",
            "acc_length",
            "acceptance_length",
            "mean_acceptance_length",
            "mean_accept_len",
        ),
    ),
    Role("accept_rate", "accept_rate", also=("acceptance_rate",)),
    Role("accept_rate_pct", "accept_rate", 0.01),
    *_timed("ttft", "ttft_ms", "median_ttft_ms"),
    *_timed("ttft_p99", "ttft_p99_ms", "p99_ttft_ms"),
    *_timed("tpot", "tpot_ms", "median_tpot_ms"),
    *_timed("itl_p99", "itl_p99_ms", "p99_itl_ms"),
    *_timed("e2e_latency", "e2e_latency_ms", "median_e2e_latency_ms", "median_e2el_ms", "e2e_ms"),
    Role("num_output_tokens", "num_output_tokens", also=("output_tokens", "total_output_tokens")),
    Role("num_under_way", "num_under_way"),
    Role("num_requests", "num_requests", also=("completed",)),
    Role("num_drafted_tokens", "num_drafted_tokens"),
    Role("num_accepted_tokens", "num_accepted_tokens"),
    Role("num_verify_steps", "num_verify_steps"),
    Role("algorithm", also=("speculative_algorithm", "spec_algorithm", "method")),
    Role("drafter", also=("speculative_draft_model_path", "draft", "draft_model", "draft_model_path")),
    Role("num_steps", also=("speculative_num_steps", "steps", "num_speculative_tokens", "k", "num_spec_tokens")),
    Role("topk", also=("speculative_eagle_topk", "eagle_topk")),
    Role("draft_tokens", also=("speculative_num_draft_tokens", "num_draft_tokens", "ndt")),
    Role("disable_cuda_graph"),
    Role("cuda_graphs", also=("cuda_graph",)),
    Role("baseline", also=("is_baseline",)),
    Role("prompt", also=("prompt_id",)),
    Role("prompt_class"),
    Role("repeat", also=("run", "run_index", "repetition")),
    Role("concurrency", also=("batch_size", "bs", "max_concurrency")),
    Role("request_rate"),
    Role("workload", also=("dataset", "dataset_name", "benchmark")),
    Role("model", also=("model_id", "model_path")),
    Role("engine_version", also=("version", "sglang_version", "vllm_version")),
    Role("gpus", also=("gpu", "gpu_name")),
    Role("host"),
    Role("date"),
    Role("duration_s"),
    Role("positions"),
)

BY_NAME: Mapping[str, Role] = {role.name: role for role in ROLES}
_BY_ALIAS: Mapping[str, str] = {alias: role.name for role in ROLES for alias in (role.name, *role.also)}

_NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d*)?(?:[eE][+-]?\d{1,3})?|\.\d+"
_VALUE = re.compile(rf"(~|≈|ca\.? )?\s*({_NUMBER})\s*(?:tok/s)?", re.IGNORECASE)
_RANGE = re.compile(rf"({_NUMBER})\s*(?:-|–|—|\.\.|to)\s*({_NUMBER})")
_MOST = 1e15
"""No measured figure is larger."""

_NOTHING = ("", "-", "–", "na", "n/a", "nan", "null", "none")
_WORDS = {"true": True, "yes": True, "on": True, "x": True, "false": False, "no": False, "off": False}


@dataclass(frozen=True)
class Number:
    """A number as it was written. A range has no single `value`; `about`: it was written as approximate."""

    value: float | None
    low: float | None = None
    high: float | None = None
    about: bool = False


def assigned(
    columns: Sequence[str], asked: Mapping[str, str], kept: Sequence[str]
) -> tuple[dict[str, str], list[str]]:
    """Role to the column that has it, and the columns that have none: these are not read.

    What is asked for comes first; else a column has the role that it is named after. `kept` columns are flags.
    Raises ConfigError for a role or a column that does not exist.
    """
    mistakes = [
        f"--columns: {plain(role)!r} is no role; there are {', '.join(BY_NAME)}{_meant(role)}"
        for role in asked
        if role not in BY_NAME
    ]
    missing = [column for column in (*asked.values(), *kept) if column not in columns]
    mistakes += [f"--columns, --keep: no column {plain(c)!r}; the file has {_listed(columns)}" for c in missing]
    if mistakes:
        raise ConfigError(mistakes)
    roles = dict(asked)
    free = [column for column in columns if column not in (*asked.values(), *kept)]
    for column in free:
        role = role_named(column)
        if role is not None:
            roles.setdefault(role, column)
    return roles, [column for column in free if column not in roles.values()]


def role_named(name: str) -> str | None:
    """The role that is called so, or is also called so; None for any other name."""
    return _BY_ALIAS.get(re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_"))


def _meant(word: str) -> str:
    """The role that `word` probably means: one that is also called so, else the one that holds such a metric."""
    of_metric = {role.metric: role.name for role in reversed(ROLES) if role.metric}
    near = role_named(word) or of_metric.get(metric_called(word)) or nearest(word, BY_NAME)
    return f" (did you mean {near}?)" if near else ""


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(plain(column, 60) for column in columns[:40])


def number(cell: object) -> Number | None:
    """A number; None for an empty cell. Raises ValueError for what is no number, or not finite.

    `1,071.3`, `90 tok/s`, `~1.9` and `2.0-2.4` are read. Any other unit stands in the name of the role (`ttft_s`).
    """
    if isinstance(cell, bool):
        raise ValueError(f"{cell} is no number")
    if isinstance(cell, int | float):
        if not abs(cell) < _MOST:
            raise ValueError(f"{plain(str(cell)[:50], 40)} is no number of this kind")
        return Number(float(cell))
    text = str(cell).strip()
    if text.lower() in _NOTHING:
        return None
    if found := _RANGE.fullmatch(text):
        low, high = (float(part.replace(",", "")) for part in found.groups())
        if low >= high:
            raise ValueError(f"{plain(text, 40)!r} is no range: its ends are in the wrong order")
        return Number(None, low, high)
    if found := _VALUE.fullmatch(text):
        value = float(found[2].replace(",", ""))
        if value < _MOST:
            return Number(value, about=bool(found[1]))
    raise ValueError(f"{plain(text, 40)!r} is no number")


def flag(cell: object) -> FlagValue | None:
    """A flag's value; None for an empty cell."""
    if isinstance(cell, bool):
        return cell
    if isinstance(cell, int | float) and abs(cell) < _MOST:
        return int(cell) if float(cell).is_integer() else cell
    text = plain(str(cell)[:1000])
    if not text or text.lower() in ("na", "n/a", "nan", "null"):
        return None
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if re.fullmatch(r"-?\d{1,15}", text):
        return int(text)
    if re.fullmatch(r"-?\d{1,15}\.\d{1,15}", text):
        return float(text)
    return text


def yes(cell: object) -> bool | None:
    """Whether a cell says yes; None for an empty one. Raises ValueError for what says neither."""
    if isinstance(cell, bool):
        return cell
    text = str(cell).strip().lower()
    if text in _NOTHING and text != "none":
        return None
    if text in ("0", "1"):
        return text == "1"
    if text in _WORDS:
        return _WORDS[text]
    raise ValueError(f"{plain(str(cell), 40)!r} says neither yes nor no")
