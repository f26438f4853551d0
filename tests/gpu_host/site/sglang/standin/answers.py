"""The JSON that the server answers with, per version."""

from __future__ import annotations

import datetime
import json
import time
from typing import Any

from . import graphs, settings
from .launch import Launch, Message

PHASE = {"tc_compiler": "eager", "full_prefill_max_req": None}


def reported_args(launch: Launch) -> Message:
    """The fields of ServerArgs with what the start filled in."""
    args = dict(launch.args)
    if launch.version < (0, 5, 15):
        args["cuda_graph_bs"] = graphs.sizes(launch)
        args["cuda_graph_max_bs"] = max(graphs.sizes(launch))
    else:
        on = launch.graphs
        decode = {
            "backend": "full" if on else "disabled",
            "max_bs": max(graphs.sizes(launch)),
            "bs": graphs.sizes(launch),
        }
        prefill = {
            "backend": "breakable" if on else "disabled",
            "max_bs": graphs.PREFILL[-1],
            "bs": graphs.PREFILL,
        }
        args["cuda_graph_config"] = {"decode": {**decode, **PHASE}, "prefill": {**prefill, **PHASE}}
    if args.get("random_seed") is None:
        args["random_seed"] = 20_000_000 + launch.number * 7919
    return args


def shown_args(launch: Launch) -> str:
    """How the log shows them: the repr of a dataclass."""
    parts = []
    for name, value in reported_args(launch).items():
        text = repr(value)
        if name == "cuda_graph_config":
            phases = (
                f"{phase}=PhaseConfig({', '.join(f'{k}={v!r}' for k, v in found.items())})"
                for phase, found in value.items()
            )
            text = f"CudaGraphConfig({', '.join(phases)})"
        parts.append(f"{name}={text}")
    return f"server_args=ServerArgs({', '.join(parts)})"


def server_info(launch: Launch, info: Message, stats: Message) -> Message:
    """The body of /server_info."""
    args = reported_args(launch)
    if launch.fault.name == "wrong_nonce":
        args["served_model_name"] = "an-earlier-launch"
    if launch.fault.name == "wrong_model":
        args["model_path"] = args["served_model_name"] = "/models/another"
    body = {
        **args,
        "status": "ready",
        "max_total_num_tokens": info["max_total_num_tokens"],
        "max_req_input_len": info["context_length"] - 6,
        "internal_states": [_internal(launch, args, info, stats)],
        "version": settings.version_text(),
        "kv_events": None,
    }
    if launch.version >= (0, 5, 23):
        body |= {"startup_time": 1.0, "frontend": "python", "launch_command": "python -m sglang.launch_server"}
    return body


def _internal(launch: Launch, args: Message, info: Message, stats: Message) -> Message:
    state = {
        **args,
        "context_length": info["context_length"],
        "disable_chunked_prefix_cache": True,
        "pp_max_micro_batch_size": info["max_running"],
    }
    if launch.version >= (0, 5, 15):
        backend = {"attention_backend": args["attention_backend"]}
        state |= {
            "_resolved_overrides": [["_attention_backend_default", backend]],
            "enable_grpc": False,
            "grpc_port": args["port"] + 10_000,
            "_quantization_explicitly_unset": False,
            "_cuda_graph_config_locked": [["decode", "max_bs"]] if args.get("cuda_graph_max_bs_decode") else [],
            "_declarations_materialized": True,
            "_mx_config_cache": {},
            "max_speculative_num_draft_tokens": args["speculative_num_draft_tokens"],
        }
    memory = {"weight": round(launch.target.weights_gib / args["tp_size"], 2), "kvcache": round(info["kv_gib"], 2)}
    memory |= {"token_capacity": info["max_total_num_tokens"], "graph": round(info.get("graph_gib", 0.0), 2)}
    state |= {
        "last_gen_throughput": stats["throughput"],
        "memory_usage": memory,
        "effective_max_running_requests_per_dp": info["max_running"],
    }
    if stats["average_length"] is not None:
        state["avg_spec_accept_length"] = stats["average_length"]
    return state


def model_info(launch: Launch) -> Message:
    """The body of /model_info."""
    target = launch.target
    wrong = launch.fault.name == "wrong_model"
    return {
        "model_path": "/models/another" if wrong else target.path,
        "tokenizer_path": target.path,
        "is_generation": True,
        "preferred_sampling_params": None,
        "weight_version": "default",
        "has_image_understanding": target.architecture == "KimiK25ForConditionalGeneration",
        "has_audio_understanding": False,
        "model_type": target.model_type,
        "architectures": [target.architecture],
    }


def models(launch: Launch, info: Message) -> Message:
    """The body of /v1/models."""
    name = launch.args["served_model_name"]
    card = {"id": name, "object": "model", "created": int(time.time()), "owned_by": "sglang", "root": name}
    return {"object": "list", "data": [{**card, "parent": None, "max_model_len": info["context_length"]}]}


def loads(launch: Launch, info: Message, stats: Message) -> Message:
    """The body of /v1/loads."""
    load: dict[str, Any] = {
        "dp_rank": 0,
        "num_running_reqs": stats["running"],
        "num_waiting_reqs": stats["queued"],
    }
    load |= {"num_waiting_uncached_tokens": 0, "num_used_tokens": 0, "num_total_tokens": 0}
    load |= {"max_total_num_tokens": info["max_total_num_tokens"], "max_running_requests": info["max_running"]}
    load |= {"token_usage": 0.0, "gen_throughput": round(stats["throughput"], 2)}
    load |= {"cache_hit_rate": 0.0, "utilization": 0.0}
    load["memory"] = {"weight_gb": round(launch.target.weights_gib / launch.args["tp_size"], 3)}
    load["memory"] |= {"kv_cache_gb": round(info["kv_gib"], 3), "graph_gb": round(info.get("graph_gib", 0.0), 3)}
    load["memory"]["token_capacity"] = info["max_total_num_tokens"]
    if stats["average_length"] is not None:
        rate = (stats["window_length"] - 1) / max(1, launch.args["speculative_num_draft_tokens"] - 1)
        load["speculative"] = {"accept_length": stats["average_length"], "accept_rate": rate}
    load["disaggregation"] = {"mode": "null"}
    load["queues"] = {"waiting": stats["queued"], "grammar": 0, "paused": 0, "retracted": 0}
    now = datetime.datetime.now(datetime.UTC).isoformat()
    return {"timestamp": now, "version": settings.version_text(), "loads": [load]}


def meta_info(launch: Launch, rid: str, meta: Message, began: float) -> Message:
    """`meta_info` of one chunk of /generate; `began`: seconds since the epoch."""
    cached = meta["cached"]
    body = {
        "id": rid,
        "finish_reason": meta.get("finish_reason"),
        "prompt_tokens": meta["prompt"],
        "weight_version": "default",
        "num_retractions": 0,
        "queue_time": 0.0,
        "reasoning_tokens": 0,
        "completion_tokens": meta["completion"],
        "cached_tokens": cached,
        "cached_tokens_details": {"device": cached, "host": 0} if cached else None,
        "dp_rank": None,
    }
    if "finish_reason" in meta:
        now = time.time()
        body["e2e_latency"] = now - began
        body |= _speculation(launch, meta)
        body |= {"request_received_ts": began, "api_server_dispatch_finish_ts": began + 0.001}
        body |= {
            "request_finished_ts": now,
            "decode_throughput": 27296360.07552313,
            "response_sent_to_client_ts": now,
        }
    return body


def _speculation(launch: Launch, meta: Message) -> Message:
    """The spec_ fields, by version; the counts are exact. Absent without verify steps."""
    drafts = (launch.args["speculative_num_draft_tokens"] or 1) - 1
    if not meta.get("verify") or drafts < 1 or launch.fault.name == "no_final_meta":
        return {}
    steps, correct, proposed = meta["verify"], meta["correct"], meta["verify"] * drafts
    body = {"spec_accept_rate": correct / proposed, "spec_accept_length": meta["completion"] / steps}
    version, histogram = launch.version, meta["histogram"]
    if version < (0, 5, 15):
        body |= {"spec_accept_token_num": correct, "spec_draft_token_num": proposed, "spec_verify_ct": steps}
        return body | ({"spec_accept_histogram": histogram} if version >= (0, 5, 10) else {})
    body |= {"spec_num_correct_drafts": correct, "spec_num_proposed_drafts": proposed, "spec_verify_ct": steps}
    if version < (0, 5, 23):
        body |= {"spec_accepted_drafts": correct, "spec_proposed_drafts": proposed}
        body |= {"spec_correct_drafts_histogram": histogram, "spec_accept_histogram": histogram}
    else:
        body["spec_correct_drafts_histogram"] = histogram
    return body


def dumps(body: Any) -> bytes:
    """JSON as the server writes it."""
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
