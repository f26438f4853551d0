"""The page at /metrics: the families that the imitated version has, most of them 0."""

from __future__ import annotations

import json
from pathlib import Path

from .launch import Launch, Message
from .options import FILES

UNSEEN_AT_0 = ("sglang:spec_verify_calls_total", "sglang:cached_tokens_total")
"""Counters that appear with their first count."""
Row = tuple[str, str, str, str, str]


def families(version: tuple[int, int, int]) -> list[Row]:
    """(name, type, labels, versions, help) of the families of `version`; read from a page and the name lists."""
    rows: list[Row] = json.loads((Path(__file__).parents[1] / "metrics.json").read_text())
    return [row for row in rows if FILES[version] in row[3].split()]


def values(launch: Launch, info: Message, stats: Message) -> dict[str, float]:
    """What is not 0."""
    drafts = launch.args["speculative_num_draft_tokens"] or 0
    total, speculative = stats["total"], launch.args["speculative_algorithm"] is not None
    length = stats["window_length"]
    rate = (length - 1) / max(1, drafts - 1) if launch.version >= (0, 5, 15) else length / max(1, drafts)
    return {
        "sglang:max_total_num_tokens": info["max_total_num_tokens"],
        "sglang:page_size": launch.args["page_size"],
        "sglang:context_len": info["context_length"],
        "sglang:num_running_reqs": stats["running"],
        "sglang:num_queue_reqs": stats["queued"],
        "sglang:gen_throughput": stats["throughput"],
        "sglang:spec_accept_length": length,
        "sglang:spec_accept_rate": rate if length else 0.0,
        "sglang:spec_num_steps": launch.args["speculative_num_steps"] or 0,
        "sglang:spec_num_draft_tokens": drafts if speculative else 0,
        "sglang:spec_verify_calls_total": total["verify"],
        "sglang:cached_tokens_total": total["cached"],
        "sglang:prompt_tokens_total": total["prompt"],
        "sglang:generation_tokens_total": total["generated"],
        "sglang:num_requests_total": total["requests"],
        "sglang:is_cuda_graph": float(stats["graphs"]),
    }


def page(launch: Launch, info: Message, stats: Message) -> bytes:
    """The page as Prometheus reads it."""
    model = f'engine_type="unified",model_name="{launch.args["served_model_name"]}"'
    labels = {"plain": "", "model": model, "rank": f'{model},moe_ep_rank="0",pp_rank="0",tp_rank="0"'}
    known, lines = values(launch, info, stats), []
    for name, kind, where, _, words in families(launch.version):
        if name in UNSEEN_AT_0 and not known[name]:
            continue
        lines += [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]
        given = labels[where]
        if name == "sglang:cuda_graph_passes_total":
            graphs, passes = stats["graphs"], stats["passes"]
            lines.append(
                f'{name}{{{given},mode="decode_{"cuda_graph" if graphs else "none"}"}} {passes["decode"]}.0'
            )
            lines.append(
                f'{name}{{{given},mode="prefill_{"cuda_graph" if graphs else "none"}"}} {passes["prefill"]}.0'
            )
        elif kind == "histogram":
            lines.append(f'{name}_bucket{{{given},le="+Inf"}} {stats["total"]["requests"]}.0')
            lines += [f"{name}_sum{{{given}}} 0.0", f"{name}_count{{{given}}} {stats['total']['requests']}.0"]
        else:
            lines.append(f"{name}{f'{{{given}}}' if given else ''} {float(known.get(name, 0))}")
    return ("\n".join(lines) + "\n").encode()
