"""EAGLE or EAGLE3: whether the draft model fits the target and the algorithm, from both config.json.

Sources: models/llama_eagle3.py, models/kimi_k25_eagle3.py, speculative/eagle_worker*.py, configs/model_config.py.
All read, not run; in the form of rules.py, listed in DRAFT_RULES.
"""

from __future__ import annotations

from collections.abc import Mapping

from sweeper.engines.sglang.case import Case
from sweeper.engines.sglang.env import is_true
from sweeper.engines.sglang.model import Model
from sweeper.engines.sglang.rules import Rule

_FUSED_LAYERS = 3
"""An EAGLE3 draft's fusion layer takes this many hidden states of the target side by side."""

_SINCE: Mapping[str, tuple[int, int, int]] = {
    "KimiK25ForConditionalGeneration": (0, 5, 9),
    "Eagle3DeepseekV2ForCausalLM": (0, 5, 12),
}
"""Architecture to the first version that serves it; others are left to SGLang."""


def draft_can_be_read(case: Case) -> str:
    """A draft that is a local folder has a config.json that can be understood."""
    if case.draft is None or not case.draft.error:
        return ""
    return f"speculative_draft_model_path {_name(case)}: its config.json {case.draft.error}"


def target_can_be_read(case: Case) -> str:
    """So has a target that is a local folder."""
    if case.target is None or not case.target.error:
        return ""
    return f"{case.target_path[:200]}: its config.json {case.target.error}"


def architecture_is_served(case: Case) -> str:
    """Kimi-K2.5 is served from 0.5.9 on, MLA drafts for it from 0.5.12 on (#25673)."""
    for model in (case.target, case.draft):
        since = _SINCE.get(model.architecture) if model is not None else None
        if model is not None and since is not None and not case.version.since(*since):
            return f"{model.architecture}: SGLang serves it from {'.'.join(map(str, since))} on"
    return ""


def algorithm_fits_the_draft(case: Case) -> str:
    """The published night's mistake: EAGLE with an EAGLE3 draft. No error and no warning, in any version.

    The target then hands over its last hidden state only, the fusion layer is skipped and nothing drafted is ever
    accepted: accept length 1.00, slower than no speculation. The other way round crashes on shapes.
    """
    draft = case.draft
    if draft is None or draft.error or case.algorithm not in ("EAGLE", "EAGLE3", "STANDALONE"):
        return ""
    if draft.is_eagle3 and case.algorithm != "EAGLE3":
        return (
            f"speculative_algorithm {case.algorithm}: {_name(case)} is an EAGLE3 draft ({_evidence(draft)}); "
            f"it needs EAGLE3{_skipped(case) if case.algorithm == 'EAGLE' else ''}"
        )
    if not draft.is_eagle3 and case.algorithm == "EAGLE3":
        return (
            f"speculative_algorithm EAGLE3: {_name(case)} is no EAGLE3 draft "
            f"(architecture {draft.architecture or '?'}, no draft_vocab_size, no eagle_config)"
        )
    return ""


def hidden_sizes_fit(case: Case) -> str:
    """The draft works on the target's hidden states: an EAGLE3 draft's fusion layer takes three of them."""
    target, draft = case.target, case.draft
    if target is None or draft is None or target.hidden_size is None:
        return ""
    told = draft.target_hidden_size if case.algorithm == "EAGLE3" else None
    expected = told or draft.hidden_size
    if case.algorithm not in ("EAGLE", "EAGLE3") or expected is None or expected == target.hidden_size:
        return ""
    if case.algorithm == "EAGLE":
        return f"{_name(case)}: is made for hidden states of {expected}, the target has {target.hidden_size}"
    return (
        f"{_name(case)}: its fusion layer expects {_FUSED_LAYERS * expected} ({_FUSED_LAYERS} x {expected}), the "
        f"target hands over {_FUSED_LAYERS * target.hidden_size} ({_FUSED_LAYERS} x {target.hidden_size})"
    )


def vocabularies_fit(case: Case) -> str:
    """Draft and target share token numbers; a draft's own, smaller vocabulary is mapped into the target's."""
    target, draft = case.target, case.draft
    if target is None or draft is None or case.algorithm not in ("EAGLE", "EAGLE3", "STANDALONE"):
        return ""
    if None not in (target.vocab_size, draft.vocab_size) and target.vocab_size != draft.vocab_size:
        return f"{_name(case)}: has {draft.vocab_size} tokens, the target {target.vocab_size}"
    own, whole = draft.draft_vocab_size, draft.vocab_size or target.vocab_size
    if own is not None and whole is not None and own > whole:
        return f"{_name(case)}: drafts from {own} tokens, more than there are ({whole})"
    return ""


def draft_is_one_layer(case: Case) -> str:
    """One layer only, up to 0.5.11 ("EAGLE3 currently only supports 1 layer", llama_eagle3.py)."""
    draft = case.draft
    if (
        case.algorithm != "EAGLE3"
        or draft is None
        or draft.num_layers in (None, 1)
        or case.version.since(0, 5, 12)
    ):
        return ""
    return f"{_name(case)}: has {draft.num_layers} layers, up to 0.5.11 EAGLE3 takes one"


def draft_context_fits(case: Case) -> str:
    """E25: the draft runs with the target's context length; a shorter draft is refused once the target is loaded.

    model_config.py, _derive_context_length, unless SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN. Before that
    check, drafts made for 2,048 tokens indexed past their table (#10713, #10787; #18234).
    """
    target, draft = case.target, case.draft
    own = target.context_length if target is not None else None
    needed = case.number("context_length") or own
    if draft is None or draft.context_length is None or needed is None or needed <= draft.context_length:
        return ""
    allowed = is_true(case.env, "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN")
    if allowed or case.algorithm not in ("EAGLE", "EAGLE3", "STANDALONE", "DFLASH"):
        return ""
    return (
        f"context_length {needed}: {_name(case)} is made for {draft.context_length}; set context_length to that, "
        "or SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1 to risk drafts that are hardly accepted further on"
    )


def draft_notice(case: Case) -> str:
    """What cannot be checked before the launch; empty when everything can."""
    path = case.text("speculative_draft_model_path")
    if not case.algorithm or not path or case.draft is not None or path == case.target_path:
        return ""
    return f"speculative_draft_model_path: {path[:200]} is no folder of the host: only the launch shows if it fits"


def _name(case: Case) -> str:
    return case.text("speculative_draft_model_path").rstrip("/").rpartition("/")[2][:100]


def _evidence(draft: Model) -> str:
    if "Eagle3" in draft.architecture:
        return draft.architecture
    return f"draft_vocab_size {draft.draft_vocab_size}" if draft.draft_vocab_size is not None else "eagle_config"


def _skipped(case: Case) -> str:
    """The figures of the skipped fusion layer, where they are known."""
    size = case.target.hidden_size if case.target is not None else None
    figures = f": the target hands over {size}, its fusion layer expects {_FUSED_LAYERS * size}" if size else ""
    return f", else SGLang skips its fusion layer without a word and accepts nothing{figures}"


DRAFT_RULES: tuple[Rule, ...] = (
    target_can_be_read,
    draft_can_be_read,
    architecture_is_served,
    algorithm_fits_the_draft,
    hidden_sizes_fit,
    vocabularies_fit,
    draft_is_one_layer,
    draft_context_fits,
)
