"""vLLM's drafts: whether one fits the target and the method, from both config.json and from its name.

Sources: config/speculative.py of 0.32.0, and public bug reports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sweeper.engines.base import HostFacts
from sweeper.engines.vllm.model import Model, model_at
from sweeper.engines.vllm.table import METHOD, MODEL, WITHOUT_MODEL
from sweeper.spec import FlagValue

Flags = Mapping[str, FlagValue]

_NAMES = {"eagle-": "eagle", "eagle3": "eagle3", "dflash": "dflash", "dspark": "dspark"}
"""In the path or hub name of a draft, and what vLLM takes it for; in its order."""


def draft_violations(method: str, flags: Flags, facts: HostFacts) -> Iterator[str]:
    """What the configs of target and draft, read on the host, tell."""
    draft = model_at(flags.get(MODEL), facts)
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
    yield _cache(flags, draft)


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


def _cache(flags: Flags, draft: Model) -> str:
    """A cache laid out for MLA, which a draft without MLA takes over: no backend serves it (vllm#48380)."""
    kind = str(flags.get("kv_cache_dtype", ""))
    if draft.is_mla or not kind.endswith("_ds_mla") or "spec_kv_cache_dtype" in flags:
        return ""
    return (
        f"spec_kv_cache_dtype is missing: the draft takes kv_cache_dtype {kind} over, which only MLA models serve"
    )


def short_draft(method: str, flags: Flags, facts: HostFacts) -> str:
    """A draft that knows fewer positions than requests may have.

    Beyond them nothing is drafted, silently (gpu_model_runner.py, `_input_fits_in_drafter`), or the server dies
    of an illegal memory access (vllm#57941). eagle and eagle3 are stretched by 0.32.0 itself (vllm#48894).
    """
    draft = model_at(flags.get(MODEL), facts)
    if method in ("", "eagle", "eagle3", *WITHOUT_MODEL) or draft is None:
        return ""
    target = model_at(facts.model_path, facts)
    given = flags.get("max_model_len")
    longest = given if type(given) is int and given > 0 else target.context_length if target else None
    if draft.context_length is None or longest is None or draft.context_length >= longest:
        return ""
    return (
        f"{MODEL}: it knows {draft.context_length} positions and requests may have {longest}: beyond them it "
        f"drafts nothing, or the server dies; set max_model_len to {draft.context_length}"
    )
