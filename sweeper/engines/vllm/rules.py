"""vLLM's configurations: equal ones made equal, illegal ones told, simpler ones preferred.

Sources: config/speculative.py (SpeculativeConfig.__post_init__, _verify_args), config/vllm.py of 0.32.0; what the
server refuses was seen on a CPU (docs/vllm.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sweeper.engines.base import HostFacts, Speculation
from sweeper.engines.vllm.flags import flag_mistakes
from sweeper.engines.vllm.model import Model, model_at
from sweeper.engines.vllm.table import (
    DEFAULTS,
    ENTRIES,
    GRAPH_FLAGS,
    METHOD,
    METHODS,
    MODEL,
    OWN_LENGTH,
    REAL,
    TOKENS,
    WHOLE,
    WITH_MODEL,
    WITHOUT_MODEL,
)
from sweeper.spec import FlagValue, ServerConfig

Flags = Mapping[str, FlagValue]

LOOKUP_MIN, LOOKUP_MAX, DRAFT_TP = (
    "spec_prompt_lookup_min",
    "spec_prompt_lookup_max",
    "spec_draft_tensor_parallel_size",
)
SAMPLING, SYNTHETIC_LENGTH = "spec_rejection_sample_method", "spec_synthetic_acceptance_length"
_LOOKUP = 5
"""Both lengths of n-grams that are looked up, where neither is given."""

_NAMES = {"eagle-": "eagle", "eagle3": "eagle3", "dflash": "dflash", "dspark": "dspark"}
"""In the path or hub name of a draft, and what vLLM takes it for; in its order."""

_WITH_MODEL = ("eagle", "eagle3", "mtp", "draft_model", "medusa", "mlp_speculator", "dflash", "dspark")

_BY_METHOD = {
    # What the name of an entry begins with, and the methods that read it.
    "spec_prompt_lookup_": ("ngram", "ngram_gpu"),
    "spec_suffix_": ("suffix",),
    "spec_draft_sample_method": _WITH_MODEL,
    "spec_draft_tensor_parallel_size": _WITH_MODEL,
    "spec_use_heterogeneous_vocab": ("draft_model",),
    "spec_enable_adaptive_verification": ("dspark",),
}

SPECULATION = Speculation(
    algorithm=METHOD,
    drafter=(METHOD, MODEL, SAMPLING, "spec_draft_sample_method", "spec_quantization", "spec_kv_cache_dtype"),
    num_steps=TOKENS,
    topk="",
    draft_tokens="",
    algorithms=("EAGLE", "EAGLE3", "MTP", "DRAFT_MODEL"),
    changing=("spec_enable_adaptive_verification",),
    prefix="spec_",
    no_graphs="enforce_eager",
)
"""vLLM drafts chains only: no branches, and as many draft tokens as steps."""


def method_of(flags: Flags) -> str:
    """The method; empty without speculation. The names that MTP has for single models mean `mtp`."""
    value = flags.get(METHOD)
    name = value if isinstance(value, str) and value.lower() not in ("none", "false", "") else ""
    return "mtp" if name.endswith("_mtp") else name


def canonical_flags(flags: Flags) -> dict[str, FlagValue]:
    """`flags` with equal things spelt equally, without what changes nothing; applied again it changes nothing."""
    method = method_of(flags)
    kept = {name: _plain(name, value) for name, value in flags.items() if value is not False and name != METHOD}
    if method:
        kept = {METHOD: method, **_with_lookup(kept, method)}
    dead = dead_flags(kept)
    kept = {name: value for name, value in kept.items() if name not in dead and value != DEFAULTS.get(name)}
    if DRAFT_TP in kept and kept[DRAFT_TP] == kept.get("tensor_parallel_size", 1):
        del kept[DRAFT_TP]
    return dict(sorted(kept.items()))


def dead_flags(flags: Flags) -> dict[str, str]:
    """Flags that change nothing, each with the reason."""
    method = method_of(flags)
    found = {}
    for name in flags:
        readers = next((readers for start, readers in _BY_METHOD.items() if name.startswith(start)), None)
        if name.startswith("spec_") and name != METHOD and not method:
            found[name] = "there is no speculation without spec_method"
        elif name == MODEL and method in WITHOUT_MODEL:
            found[name] = f"{method} drafts without a model"
        elif readers is not None and method in METHODS and method not in readers:
            found[name] = f"{method} does not read it"
        elif name == SYNTHETIC_LENGTH and flags.get(SAMPLING) != "synthetic":
            found[name] = f"only {SAMPLING} synthetic reads it"
        elif name in GRAPH_FLAGS and flags.get("enforce_eager") is True:
            found[name] = "enforce_eager captures no CUDA graphs"
    return found


def _with_lookup(flags: Flags, method: str) -> dict[str, FlagValue]:
    """With both lengths of looked-up n-grams, as vLLM fills them in."""
    if method not in ("ngram", "ngram_gpu"):
        return dict(flags)
    low, high = flags.get(LOOKUP_MIN), flags.get(LOOKUP_MAX)
    given = low if low is not None else high if high is not None else _LOOKUP
    return {**flags, LOOKUP_MIN: given, LOOKUP_MAX: high if high is not None else given}


def _plain(name: str, value: FlagValue) -> FlagValue:
    """Numbers in their flag's own type: 4.0 is 4."""
    if isinstance(value, bool | str):
        return value
    if name in REAL:
        return float(value) + 0.0
    return int(value) if float(value).is_integer() else value


def speculative_config(flags: Flags) -> dict[str, FlagValue]:
    """What --speculative-config is given: the entries under vLLM's own names; empty without speculation."""
    if not method_of(flags):
        return {}
    return {
        ENTRIES.get(name, name.removeprefix("spec_")): value
        for name, value in flags.items()
        if name.startswith("spec_") and value is not False
    }


def violations(config: ServerConfig, facts: HostFacts) -> list[str]:
    """Why the server would refuse or crash on `config`; empty when it is legal."""
    if mistakes := flag_mistakes({name: (value,) for name, value in config.flags.items()}):
        return mistakes
    flags = canonical_flags(config.flags)
    found = [*_drafting(flags), *_draft_model(flags, facts), *_parallel(flags, facts), *_unknown(flags, facts)]
    return [line for line in found if line]


def _drafting(flags: Flags) -> Iterator[str]:
    method = method_of(flags)
    if not method:
        return
    if method in WITH_MODEL and not flags.get(MODEL):
        yield f"{METHOD} {method} needs {MODEL}: a folder on the host or a name of the hub"
    if TOKENS not in flags and method in METHODS and method not in OWN_LENGTH:
        yield f"{METHOD} {method} needs {TOKENS}: how many tokens are drafted per step"
    low, high = flags.get(LOOKUP_MIN), flags.get(LOOKUP_MAX)
    if isinstance(low, int) and isinstance(high, int) and low > high:
        yield f"{LOOKUP_MIN}={low} > {LOOKUP_MAX}={high}: vLLM refuses to start"
    ranks, draft_ranks = flags.get("tensor_parallel_size", 1), flags.get(DRAFT_TP)
    if draft_ranks is not None and draft_ranks not in (1, ranks):
        yield f"{DRAFT_TP}={draft_ranks} must be 1 or tensor_parallel_size={ranks}"
    length, tokens = flags.get(SYNTHETIC_LENGTH), flags.get(TOKENS)
    if flags.get(SAMPLING) == "synthetic" and length is None:
        yield f"{SAMPLING} synthetic needs {SYNTHETIC_LENGTH}"
    if isinstance(length, float) and isinstance(tokens, int) and length > tokens + 1:
        yield f"{SYNTHETIC_LENGTH}={length:g} > {TOKENS}+1={tokens + 1}: no step keeps more"
    if flags.get("async_scheduling") is True and method in ("ngram", "suffix"):
        yield f"async_scheduling is not to be had with {METHOD} {method}"


def _draft_model(flags: Flags, facts: HostFacts) -> Iterator[str]:
    """What the configs of target and draft, read on the host, tell."""
    method, draft = method_of(flags), model_at(flags.get(MODEL), facts)
    if (taken := _taken_for(method, flags.get(MODEL))) not in ("", method):
        yield f"{METHOD} {method}: by the draft's name vLLM silently takes {taken}; write that, or rename it"
        return
    if draft is None or not draft.architecture:
        return
    if method == "eagle" and draft.is_eagle3:
        yield f"{METHOD} eagle with an EAGLE-3 draft ({draft.architecture}): vLLM has no such model; use eagle3"
    if method == "draft_model":
        if draft.is_eagle3:
            yield f"{METHOD} draft_model with an EAGLE-3 draft ({draft.architecture}); use eagle3"
        yield _vocabulary(flags, model_at(facts.model_path, facts), draft)


def _taken_for(method: str, draft: FlagValue | None) -> str:
    """The method that vLLM reads from the name of a draft (speculative.py, `Automatically detect the method`)."""
    if method in ("", *_NAMES.values(), *WITHOUT_MODEL) or not isinstance(draft, str):
        return ""
    return next((taken for part, taken in _NAMES.items() if part in draft.lower()), "")


def _vocabulary(flags: Flags, target: Model | None, draft: Model) -> str:
    sizes = (target.vocab_size if target else None, draft.vocab_size)
    if None in sizes or sizes[0] == sizes[1] or flags.get("spec_use_heterogeneous_vocab") is True:
        return ""
    return (
        f"{MODEL} has {sizes[1]} tokens in its vocabulary and the target {sizes[0]}: a draft model needs the same"
    )


def _parallel(flags: Flags, facts: HostFacts) -> Iterator[str]:
    ranks = _count(flags, "tensor_parallel_size")
    needed = ranks * _count(flags, "pipeline_parallel_size") * _count(flags, "data_parallel_size")
    if facts.gpu_names and needed > len(facts.gpu_names):
        yield f"needs {needed} GPUs (tensor, pipeline and data parallel), and the host has {len(facts.gpu_names)}"
    target = model_at(facts.model_path, facts)
    if target and target.num_heads and target.num_heads % ranks:
        yield f"tensor_parallel_size={ranks} must divide the model's {target.num_heads} attention heads"


def _unknown(flags: Flags, facts: HostFacts) -> Iterator[str]:
    """Flags that the host's own help does not list, when it was read."""
    for name in flags if facts.known_flags else ():
        if name not in facts.known_flags:
            yield f"{name}: is not a flag of this version of vLLM"


def _count(flags: Flags, name: str) -> int:
    value = flags.get(name, 1)
    return value if type(value) is int and value > 0 else 1


def world_size(flags: Flags) -> int:
    """GPUs that a server with these flags runs on."""
    return (
        _count(flags, "tensor_parallel_size")
        * _count(flags, "pipeline_parallel_size")
        * _count(flags, "data_parallel_size")
    )


def without_effect(config: ServerConfig) -> list[str]:
    """Flags that change nothing, and a method that no table has, one line each: the name, then why."""
    asked = {name: value for name, value in config.flags.items() if value is not False}
    lines = [f"{name}: {reason}" for name, reason in dead_flags(asked).items()]
    method = method_of(asked)
    if method and method not in METHODS:
        lines.append(f"{METHOD}: {method} is not a method of vLLM 0.32.0; nothing is known of its rules")
    return lines


def simplicity(flags: Flags) -> tuple[float, ...]:
    """Sort key, the smallest the simplest: no speculation, no draft model; fewer draft tokens, fewer flags."""
    plain, method = canonical_flags(flags), method_of(flags)
    kind = 0 if not method else 1 if method in WITHOUT_MODEL else 2 if MODEL not in plain else 3
    tokens = plain.get(TOKENS, 0)
    number = float(tokens) if method and isinstance(tokens, int | float) else 0.0
    return (kind, number, len(plain))


def takes_whole_numbers(flag: str) -> bool:
    """Whether the table says so."""
    return flag in WHOLE
