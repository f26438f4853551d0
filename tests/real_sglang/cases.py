"""The configurations of the real SGLang that are captured, and started again by the tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sweeper.spec import FlagValue
from tests.real_sglang.environment import RealSglang

CHAT = (
    "<|im_start|>user\nRepeat this text exactly: The cat sat on the mat by the door. The dog sat on the log by "
    "the door. The cat sat on the mat by the door.<|im_end|>\n<|im_start|>assistant\n"
)
CODE = "import os\nimport sys\n\nclass Config:\n    def __init__(self"


@dataclass(frozen=True)
class Case:
    """One configuration: flags beside those that every start gets, of SmolLM2 or of the tiny EAGLE-3 pair.

    `serves`: it gets ready and answers; else it ends by itself.
    """

    name: str
    flags: Mapping[str, FlagValue] = field(default_factory=dict)
    tiny: bool = False
    draft: str = ""
    serves: bool = True

    @property
    def prompt(self) -> str:
        """Text that the model goes on with for a while, and that speculation is good at."""
        return CODE if self.tiny else CHAT


def _speculative(algorithm: str, num_steps: int, topk: int, num_draft_tokens: int) -> dict[str, FlagValue]:
    return {
        "speculative_algorithm": algorithm,
        "speculative_num_steps": num_steps,
        "speculative_eagle_topk": topk,
        "speculative_num_draft_tokens": num_draft_tokens,
    }


def _ngram(num_draft_tokens: int, breadth: int) -> dict[str, FlagValue]:
    return {
        "speculative_algorithm": "NGRAM",
        "speculative_num_draft_tokens": num_draft_tokens,
        "speculative_ngram_max_bfs_breadth": breadth,
    }


SERVING = (
    Case("baseline"),
    Case("baseline_with_warmup", {"skip_server_warmup": False}),
    Case("ngram_chain", _ngram(4, breadth=1)),
    Case("ngram_tree", _ngram(8, breadth=4)),
    Case("standalone", _speculative("STANDALONE", 3, 1, 4), draft="standalone"),
    Case("tiny_baseline", tiny=True),
    Case("eagle3_chain", _speculative("EAGLE3", 3, 1, 4), tiny=True, draft="eagle3"),
    Case("eagle3_tree", _speculative("EAGLE3", 5, 4, 8), tiny=True, draft="eagle3"),
    Case("eagle3_draft_tokens_rewritten", _speculative("EAGLE3", 3, 1, 8), tiny=True, draft="eagle3"),
    Case("eagle3_wrong_flag", _speculative("EAGLE", 3, 1, 4), tiny=True, draft="eagle3"),
)
FAILING = (
    Case("fail_unknown_flag", {"speculative_no_such_flag": 1}, serves=False),
    Case("fail_unknown_algorithm", _speculative("EAGLE9", 3, 1, 4), serves=False),
    Case(
        "fail_steps_without_topk",
        {"speculative_algorithm": "STANDALONE", "speculative_num_steps": 3},
        draft="standalone",
        serves=False,
    ),
    Case(
        "fail_topk_without_steps",
        {"speculative_algorithm": "STANDALONE", "speculative_eagle_topk": 1},
        draft="standalone",
        serves=False,
    ),
    Case("fail_ready_then_tree_too_large", _speculative("EAGLE3", 2, 2, 12), tiny=True, draft="eagle3"),
    Case("fail_eagle3_with_plain_draft", _speculative("EAGLE3", 3, 1, 4), draft="standalone", serves=False),
    Case("fail_eagle3_without_draft", _speculative("EAGLE3", 3, 1, 4), serves=False),
    Case("fail_no_such_model", {"model_path": "/no/such/model"}, serves=False),
)


def flags_of(case: Case, real: RealSglang) -> dict[str, FlagValue]:
    """Every flag of a start but the port; paths are the installed ones."""
    target = real.tiny_target if case.tiny else real.target
    flags = {**real.flags, "model_path": str(target), "host": "127.0.0.1", **case.flags}
    if case.draft:
        draft = real.tiny_draft if case.draft == "eagle3" else real.draft_standalone
        flags["speculative_draft_model_path"] = str(draft)
    return flags
