"""SGLang's configurations as a whole: equal ones made equal, illegal ones told, simpler ones preferred."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sweeper.engines.base import HostFacts, Speculation
from sweeper.engines.sglang.backend_rules import BACKEND_RULES
from sweeper.engines.sglang.canonical import plain_flags, resolved
from sweeper.engines.sglang.case import Case, case_of
from sweeper.engines.sglang.dead import NO_NVLINK, dead_flags
from sweeper.engines.sglang.draft import DRAFT_RULES, draft_notice
from sweeper.engines.sglang.env import canonical_env, env_mistakes, env_violations, no_effect, plain_env
from sweeper.engines.sglang.flags import flag_mistakes
from sweeper.engines.sglang.host_rules import HOST_RULES
from sweeper.engines.sglang.option_rules import OPTION_RULES
from sweeper.engines.sglang.rules import RULES, Rule
from sweeper.engines.sglang.version import NEWEST
from sweeper.spec import FlagValue, ServerConfig

ALL_RULES: tuple[Rule, ...] = (*RULES, *OPTION_RULES, *BACKEND_RULES, *HOST_RULES, *DRAFT_RULES)

_CONSERVATIVENESS = 0.3
"""By which data-parallel attention multiplies schedule_conservativeness."""


_PARALLEL = ("tp_size", "pp_size")

_OVER_NVLINK = ("SXM", "HBM3", "H200", "B200", "B300")
"""In the names of GPUs that are sold on boards with NVLink between all of them."""


def gpu_link(config: ServerConfig, facts: HostFacts) -> str:
    """What connects the GPUs of a canonical configuration, as `Speculation.link` says."""
    case = case_of(config.flags, config.env, facts)
    if all(case.at_least(name) == 1 for name in _PARALLEL):
        return "none"
    if case.gpu in NO_NVLINK:
        return "pcie"
    known = bool(facts.gpu_names) and all(any(part in name for part in _OVER_NVLINK) for name in facts.gpu_names)
    return "nvlink" if known else ""


SPECULATION = Speculation(
    algorithm="speculative_algorithm",
    drafter=(
        "speculative_algorithm",
        "speculative_draft_model_path",
        "speculative_draft_model_revision",
        "speculative_draft_model_quantization",
        "speculative_token_map",
        "speculative_use_rejection_sampling",
        "speculative_use_block_verification",
        "speculative_accept_threshold_single",
        "speculative_accept_threshold_acc",
    ),
    num_steps="speculative_num_steps",
    topk="speculative_eagle_topk",
    draft_tokens="speculative_num_draft_tokens",
    algorithms=("EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "FROZEN_KV_MTP"),
    changing=("speculative_adaptive",),
    prefix="speculative_",
    no_graphs="disable_cuda_graph",
    link=gpu_link,
)
"""What is accepted depends on these alone; every other flag only costs or saves time (eagle_worker.py)."""


def canonical_config(config: ServerConfig, facts: HostFacts) -> ServerConfig:
    """The configuration as the server resolves it, without what changes nothing. Launching it means the same.

    Canonical of canonical is the same again. What the server refuses stays as it is: see `rule_violations`.
    """
    case = resolved_case(config, facts)
    env = canonical_env(config.env, case.flags, case.version)
    return ServerConfig(flags=dict(sorted(case.flags.items())), env=env)


def rule_violations(config: ServerConfig, facts: HostFacts) -> list[str]:
    """Why the server would refuse, crash on or silently get `config` wrong; empty when it is legal."""
    if mistakes := _single_mistakes(config):
        return mistakes
    case = resolved_case(config, facts)
    found = [line for rule in ALL_RULES if (line := rule(case))]
    return [*found, *_unknown_flags(case, facts), *env_violations(case.env)]


def without_effect(config: ServerConfig, facts: HostFacts) -> list[str]:
    """Flags and variables of `config` that change nothing on this host, one line each: the name, then why."""
    case = resolved_case(config, facts)
    asked = plain_flags(config.flags)
    # Some are dead as they were asked for, others only next to values that were filled in.
    dead = dead_flags(replace(case, flags=asked)) | dead_flags(replace(case, flags={**asked, **case.flags}))
    lines = [f"{name}: {reason}" for name, reason in dead.items() if name not in case.flags]
    env = plain_env(config.env)
    dead_env = {name: no_effect(name, env, case.flags, case.version) for name in config.env}
    lines += [f"{name}: {reason}" for name, reason in dead_env.items() if reason]
    topk = asked.get("speculative_eagle_topk")
    if case.algorithm == "NGRAM" and topk not in (None, case.number("speculative_eagle_topk")):
        lines.append("speculative_eagle_topk: NGRAM takes speculative_ngram_max_bfs_breadth for it")
    return [*lines, *([notice] if (notice := draft_notice(case)) else [])]


def reported_flags(config: ServerConfig, facts: HostFacts) -> dict[str, FlagValue]:
    """What the server should report for a canonical `config`: its flags, and those that it counts differently.

    Data-parallel attention divides the prefill's chunk and the scheduler's conservativeness (E23): launching
    the divided values would divide them again, so they are not part of the canonical configuration.
    """
    case = resolved_case(config, facts)
    flags = dict(case.flags)
    if case.dp_attention > 1:
        if (chunk := case.number("chunked_prefill_size")) is not None and chunk > 0:
            flags["chunked_prefill_size"] = chunk // case.dp_attention
        if isinstance(conservativeness := flags.get("schedule_conservativeness"), float):
            flags["schedule_conservativeness"] = conservativeness * _CONSERVATIVENESS
    return flags


def is_speculative(flags: Mapping[str, FlagValue]) -> bool:
    """Whether these flags ask for speculative decoding; `none`, in any case, asks for none."""
    return str(flags.get("speculative_algorithm") or "none").lower() not in ("none", "false")


def baseline_config(config: ServerConfig, facts: HostFacts) -> ServerConfig:
    """`config` without speculative decoding, canonical."""
    return canonical_config(config.without(frozenset({"speculative_algorithm"})), facts)


def simplicity(flags: Mapping[str, FlagValue]) -> tuple[float, ...]:
    """Sort key, the smallest the simplest: no speculation, NGRAM, a chain, a tree; then fewer of everything."""
    case = Case(flags=plain_flags(flags), env={}, version=NEWEST)
    topk = case.at_least("speculative_eagle_topk")
    kind = 0 if not case.algorithm else 1 if case.algorithm == "NGRAM" else 2 if topk <= 1 else 3
    numbers = [case.at_least(f"speculative_{name}", 0) for name in ("num_steps", "eagle_topk", "num_draft_tokens")]
    return (kind, *numbers, len(case.flags))


def resolved_case(config: ServerConfig, facts: HostFacts) -> Case:
    """The case as the server resolves it; its draft is looked up again, since a path may have been filled in."""
    asked = case_of(plain_flags(config.flags), config.env, facts)
    case = resolved(asked)
    if case.text("speculative_draft_model_path") == asked.text("speculative_draft_model_path"):
        return case
    return case_of(case.flags, case.env, facts)


def _single_mistakes(config: ServerConfig) -> list[str]:
    """Mistakes that show in single flags and variables."""
    plain = plain_flags(config.flags)
    flags = flag_mistakes({name: (value,) for name, value in plain.items()})
    return flags + env_mistakes({name: (value,) for name, value in config.env.items()})


def _unknown_flags(case: Case, facts: HostFacts) -> list[str]:
    """Flags that the host's own help does not list, when it was read."""
    unknown = sorted(case.flags.keys() - facts.known_flags) if facts.known_flags else []
    return [f"{name}: is not a flag of this version of SGLang" for name in unknown]
