"""CUDA graphs: which batch sizes are captured, the lines it prints, and what goes wrong while drafts first run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import failures, log
from .failures import CAPTURE, LOAD, ServerError
from .launch import Launch, hang
from .models import Model

if TYPE_CHECKING:
    from .startup import Startup

PREFILL = [
    *range(4, 32, 4),
    *range(32, 256, 16),
    *range(256, 512, 32),
    *range(512, 1024, 64),
    *range(1024, 4096, 256),
    *range(4096, 8193, 512),
]
DISABLED = (
    "Disable prefill CUDA graph because cuda_graph_config resolved prefill.backend='disabled' "
    "(e.g. via --cuda-graph-backend-prefill=disabled or auto-disable rules)."
)
TREE_BACKENDS = {
    "flashinfer",
    "triton",
    "fa3",
    "fa4",
    "aiter",
    "trtllm_mha",
    "trtllm_mla",
    "flashmla",
    "nsa",
    "dsa",
}


def sizes(launch: Launch) -> list[int]:
    """The batch sizes that decoding is captured for."""
    new = launch.version >= (0, 5, 15)
    names = ("cuda_graph_bs_decode", "cuda_graph_max_bs_decode") if new else ("cuda_graph_bs", "cuda_graph_max_bs")
    if launch.args[names[0]]:
        return sorted(launch.args[names[0]])
    running = launch.args["max_running_requests"] or 2048
    largest = launch.args[names[1]] or (256 if launch.args["tp_size"] < 4 else 512)
    if launch.args["speculative_algorithm"] is not None:
        steps = [*range(1, 9), *range(10, 33, 2), *range(40, 65, 4), *range(72, 257, 8), *range(272, 513, 16)]
    else:
        steps = [1, 2, 4, 8, 12, *range(16, 257, 8), *range(272, 513, 16)]
    return [size for size in steps if size <= min(largest, running)] or [1]


def check_draft_backend(launch: Launch, draft: Model) -> None:
    """Refusals that come only when the draft worker is built, after the target's weights are loaded."""
    args = launch.args
    backend = args["speculative_draft_attention_backend"] or args["attention_backend"]
    if backend == "trtllm_mla" and not draft.is_mla:
        raise ServerError(LOAD, "ValueError: trtllm_mla backend can only be used with MLA models.")
    if args["speculative_num_steps"] <= 1 and launch.version >= (0, 5, 23):
        return
    if backend not in TREE_BACKENDS:
        raise ServerError(LOAD, f"ValueError: EAGLE is not supported in decode attention backend {backend}")
    if args["speculative_eagle_topk"] > 1 and args["speculative_num_steps"] > 1:
        if backend == "flashinfer" and draft.is_mla:
            cause = "Currently Flashinfer MLA only supports topk=1 for speculative decoding"
            raise ServerError(LOAD, f"ValueError: {cause}")
        if backend in ("flashmla", "trtllm_mla"):
            raise ServerError(LOAD, "ValueError: Currently FlashMLA only supports topk=1 for speculative decoding")


def check_draft_weights(launch: Launch, draft: Model) -> None:
    """A drafter of another kind, or one whose sizes do not fit the target."""
    if launch.args["speculative_algorithm"] == "EAGLE3" and not draft.is_eagle3:
        cause = f"AttributeError: '{draft.architecture}' object has no attribute 'hot_token_id'"
        raise ServerError(CAPTURE, cause)


def mismatch(launch: Launch) -> str:
    """The words of a matrix that does not fit, when the drafter was made for another hidden size; else nothing."""
    draft = launch.draft
    if draft is None or launch.args["speculative_algorithm"] != "EAGLE3":
        return ""
    given, wanted = 3 * launch.target.hidden_size, draft.fused_size or 3 * draft.hidden_size
    if given == wanted:
        return ""
    tokens = 12
    sizes = f"({tokens}x{given} and {wanted}x{draft.hidden_size})"
    return f"RuntimeError: mat1 and mat2 shapes cannot be multiplied {sizes}"


def capture(start: Startup) -> None:
    """Capture what the configuration asks for. Raises ServerError."""
    launch = start.launch
    if launch.draft is not None:
        check_draft_weights(launch, launch.draft)
    _check_tree(launch)
    if not launch.graphs:
        for _ in range((2 if launch.draft else 1) if launch.version >= (0, 5, 15) else 0):
            log.say(DISABLED)
        return
    for name in _names(launch):
        _one(start, name)
    start.info |= {"graph_gib": 0.1 * len(_names(launch)), "max_graph_bs": max(sizes(launch))}


def _check_tree(launch: Launch) -> None:
    args = launch.args
    if launch.draft is None:
        return
    steps, topk, draft = (args[f"speculative_{name}"] for name in ("num_steps", "eagle_topk", "num_draft_tokens"))
    if draft is None:
        raise ServerError(CAPTURE, "TypeError: unsupported operand type(s) for -: 'NoneType' and 'int'")
    if draft - 1 > topk + (steps - 1) * topk**2:
        raise ServerError(CAPTURE, "RuntimeError: selected index k out of range")


def _names(launch: Launch) -> list[str]:
    speculative = launch.args["speculative_algorithm"] is not None
    backend = launch.args.get("speculative_draft_attention_backend") or launch.args["attention_backend"]
    if launch.version < (0, 5, 15):
        names = ["cuda graph"]
        if launch.draft is not None:
            names += ["draft cuda graph"] if launch.args["speculative_num_steps"] > 1 else []
            names += ["draft extend cuda graph"]
        return names
    names = [] if launch.args["disable_prefill_cuda_graph"] else ["target prefill CUDA graph"]
    names += ["target verify CUDA graph" if speculative else "target decode CUDA graph"]
    if launch.draft is not None:
        names += ["draft prefill CUDA graph"]
        names += ["draft decode CUDA graph"] if launch.args["speculative_num_steps"] > 1 else []
        names += ["draft extend CUDA graph"] if backend != "fa3" else []
    return names


def _one(start: Startup, name: str) -> None:
    launch = start.launch
    batches = sizes(launch)
    new, prefill = launch.version >= (0, 5, 15), "prefill" in name
    if new:
        per_bs = 1 if "decode" in name else launch.args["speculative_num_draft_tokens"]
        what = f"num_tokens={PREFILL}" if prefill else f"num_tokens_per_bs={per_bs}, bs={batches}"
        begin = f"backend={'breakable' if prefill else 'full'}, {what}, "
    else:
        begin = "This can take up to several minutes. "
    log.say(f"Capture {name} begin. {begin}avail mem={start.avail_gib:.2f} GB")
    _progress(start, PREFILL if prefill else batches, "num tokens (num_tokens" if prefill else "batches (bs")
    before = start.avail_gib
    _take_memory(start, name, batches)
    spent = start.timeline.spend(0.08)
    used = f"mem usage={before - start.avail_gib:.2f} GB, avail mem={start.avail_gib:.2f} GB."
    if new:
        log.say(f"Capture {name} end. elapsed={spent:.2f} s, {used}")
    else:
        log.say(f"Capture {name} end. Time elapsed: {spent:.2f} s. {used.replace('GB, avail', 'GB. avail')}")


def _progress(start: Startup, values: list[int], words: str) -> None:
    for at, value in enumerate(sorted(values, reverse=True)[:4]):
        if start.rank == 0:
            done = f"{100 * at // len(values):3d}%|{'█' * at}  | {at}/{len(values)} [00:00<00:01,  8.60it/s]"
            log.raw(f"\rCapturing {words}={value} avail_mem={start.avail_gib:.2f} GB): {done}")


def _take_memory(start: Startup, name: str, batches: list[int]) -> None:
    """Graphs need room outside the static fraction: too high a fraction fails here."""
    launch = start.launch
    if launch.fault.name == "hang_capture":
        hang()
    draft_tokens = launch.args["speculative_num_draft_tokens"] or 1
    mib = 120 if "prefill" in name else int(40 + 1.5 * len(batches) * (1 + draft_tokens / 8))
    asked = "decode" in name or "verify" in name or name == "cuda graph"
    if (start.fault("oom_capture") and asked) or mib > start.avail_gib * 1024 - 600:
        kind = "new" if launch.version >= (0, 5, 15) else "old"
        before = f"Exception: Capture cuda graph failed: CUDA out of memory.\n{failures.SOLUTIONS[kind]}\n"
        start.out_of_memory(max(0.5, mib / 1024), CAPTURE, before)
    if start.fault("crash_capture"):
        raise ServerError(CAPTURE, failures.MISSING_KERNEL)
    start.take(mib)
