"""Log lines of a start that differ between versions."""

from __future__ import annotations

Version = tuple[int, int, int]
CUSTOM_ALL_REDUCE = (
    "Custom allreduce is disabled because it's not supported on more than two PCIe-only GPUs. "
    "To silence this warning, specify disable_custom_all_reduce=True explicitly."
)


def distributed_begins(version: Version) -> str:
    """When the ranks start to look for each other."""
    return "Init parallel begin." if version >= (0, 5, 23) else "Init torch distributed begin."


def distributed_ends(version: Version, elapsed_s: float, gib: float) -> list[str]:
    """When they have found each other."""
    if version >= (0, 5, 23):
        return [f"Init parallel ends. elapsed={elapsed_s:.2f} s", f"Memory baseline taken. mem usage={gib:.2f} GB"]
    elapsed = f"elapsed={elapsed_s:.2f} s, " if version >= (0, 5, 10) else ""
    return [f"Init torch distributed ends. {elapsed}mem usage={gib:.2f} GB"]


def draft_worker(version: Version) -> list[str]:
    """When the draft worker is built."""
    if version < (0, 5, 15):
        return []
    lines = [
        "SPECULATIVE_MOE_RUNNER_BACKEND is not initialized, using auto backend",
        "SPECULATIVE_MOE_A2A_BACKEND is not initialized, using none backend",
    ]
    if version >= (0, 5, 23):
        return [*lines, "Memory baseline taken. mem usage=0.00 GB"]
    return [*lines, distributed_begins(version), *distributed_ends(version, 0.0, 0.0)]


def pool(version: Version, tokens: int, gib: float, *, latent: bool) -> str:
    """One KV cache; `latent`: of an MLA model, which has one tensor instead of two."""
    size = f"KV size: {gib:.2f} GB" if latent else f"K size: {gib / 2:.2f} GB, V size: {gib / 2:.2f} GB"
    dtype = "dtype: torch.bfloat16, " if version >= (0, 5, 15) else ""
    return f"KV Cache is allocated. {dtype}#tokens: {tokens}, {size}"


def tree_cache(version: Version) -> list[str]:
    """The prefix cache, and in the newest version a summary of the start."""
    if version < (0, 5, 15):
        return []
    kind = "UnifiedRadixCache" if version >= (0, 5, 23) else "RadixCache"
    line = f"Tree cache initialized: source=default impl={kind} hybrid_swa=False hybrid_ssm=False "
    if version < (0, 5, 20):
        return [f"{line}hierarchical=False streaming_wrapped=False"]
    if version < (0, 5, 23):
        return [f"{line}hicache_attached=False streaming_wrapped=False"]
    return [f"{line}hicache_attached=False", "Engine startup timings (s): load_weight=0.97, scheduler_e2e=9.58"]


def deprecated(version: Version, text: str) -> tuple[str, bool]:
    """A warning about a flag, and whether it comes with a time in front: logging is set up earlier and earlier."""
    return (f"\033[1;33m{text}\033[0m", True) if version >= (0, 5, 23) else (text, False)
