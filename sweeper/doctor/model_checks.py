"""The server's program and the models: there, whole, made for each other, and not too large."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from launchers.looking import Told
from sweeper.doctor.context import Context
from sweeper.doctor.finding import Check, Place, Said, error, ok, setting, warning
from sweeper.doctor.host_checks import memory_of
from sweeper.facts import missing_files, unknown_flags
from sweeper.fitting import context_mistakes, tight_contexts
from sweeper.text import plain

_GIB = 1024.0**3
_MIB = 1024.0**2
_LEAST_WEIGHTS = 1024
"""A shard of fewer bytes is a pointer of git-lfs, or a download that was cut short."""

_SHARE_OF_INDEX = 0.98  # of the size that the index tells; the rest may be counted otherwise
_ROOM = 0.9  # of a GPU's memory: beyond it there is hardly any left for the cache of keys and values
_UNFINISHED = (".incomplete", ".aria2")
_FILE = re.compile(r"(\d{1,18}) (.{1,300})")
_NUMBER = re.compile(r"\d{1,18}")


def engine_answers(ctx: Context) -> Iterator[Said]:
    """The server's program runs, and is a version whose rules are known."""
    build = ", ".join(f"{name} {plain(text, 60)}" for name, text in sorted(ctx.build.items()))
    yield ok(f"{ctx.engine.name} {plain(ctx.version, 80)}" + (f"; {plain(build, 300)}" if build else ""))


def flags_are_known(ctx: Context) -> Iterator[Said]:
    """The server has each flag that it will be given."""
    if not ctx.known_flags:
        yield warning(
            "the server's own help cannot be had: a misspelt flag shows in its first launch only",
            "check that `--help` of engine.command works on the host",
        )
        return
    wrong = unknown_flags(ctx.spec, ctx.known_flags)
    yield from (setting(line, "spell it as the server's --help does, or take it out") for line in wrong)
    if not wrong:
        yield ok(f"the server has all of them ({len(ctx.known_flags)} in its help)")


def model_is_there(ctx: Context) -> Iterator[Said]:
    """The model's path can be read on the host."""
    if argv := ctx.spec.model.prepare:
        yield ok(f"made at the start by `{plain(' '.join(argv), 160)}` (not run here)")
    else:
        yield ok(f"{plain(ctx.model[0], 200)}")


def drafts_are_there(ctx: Context) -> Iterator[Said]:
    """So can each draft, and the small files that the engine's rules read."""
    names = {path: str(where) for path, where in ctx.drafts.items() if isinstance(where, ValueError)}
    yield from (
        setting(f"{plain(path, 160)}: {plain(why)}", "correct the path, or download it on the host")
        for path, why in names.items()
    )
    lines = missing_files(ctx.spec, ctx.files, ctx.commands)
    lines = [line for line in lines if not any(path in line for path in names)]
    yield from (setting(plain(line, 400), "correct the path, or complete the folder") for line in lines)
    if ctx.drafts and not names and not lines:
        yield ok(", ".join(plain(path, 100) for path in ctx.drafts))


def models_are_described(ctx: Context) -> Iterator[Said]:
    """What each config.json says: architecture, vocabulary, layers, context, type."""
    for path, text in ctx.files.items():
        if text is None:
            continue
        folder = plain(path.rpartition("/")[0].rpartition("/")[2], 80)
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            yield setting(f"{plain(path, 200)} is not JSON", "download the model anew")
            continue
        yield ok(f"{folder}: {_described(found)}")


def weights_are_whole(ctx: Context) -> Iterator[Said]:
    """Every shard that the index names is there, as large as it should be."""
    for path, told in ctx.weights.items():
        yield from _weights(plain(path, 160), told)


def _weights(path: str, told: Told) -> Iterator[Said]:
    fix = "download it anew; `huggingface-cli download` goes on where it was cut short"
    kinds = told.all("kind")
    if "closed" in kinds:
        yield setting(f"{path} may not be read by this user", "on the host: chmod -R a+rX on it")
        return
    sizes = {found[2]: int(found[1]) for line in told.all("file") if (found := _FILE.fullmatch(line))}
    hidden = [plain(name, 60) for name in told.all("hidden")]
    missing = sorted((set(told.all("shard")) - sizes.keys()) | set(told.all("dangling")))
    small = sorted(
        n
        for n, size in sizes.items()
        if size < _LEAST_WEIGHTS and n != "config.json" and not n.endswith(_UNFINISHED)
    )
    unfinished = [name for name in sizes if name.endswith(_UNFINISHED)]
    weights = {n: size for n, size in sizes.items() if n != "config.json" and n not in unfinished}
    mistakes = [
        (hidden, "cannot be read by this user", "on the host: chmod a+r on it"),
        (missing, "of its index not there", fix),
        (
            small,
            "smaller than any weights: pointers of git-lfs, or cut short",
            "git lfs pull, or download it anew",
        ),
    ]
    for names, what, how in mistakes:
        if names:
            yield error(f"{path}: {len(names)} file{'s' if len(names) > 1 else ''} {what}: {_some(names)}", how)
    total = int(told.first("total")) if _NUMBER.fullmatch(told.first("total")) else 0
    size = sum(weights.values())
    if any(names for names, *_ in mistakes):
        return
    if not weights:
        named = bool(told.all("total"))
        said = f"{path}: no file of weights"
        yield (
            warning(f"{said} is there, and its index names none", fix) if named else error(f"{said} is there", fix)
        )
    elif told.all("shard") and size < _SHARE_OF_INDEX * total:
        yield error(f"{path}: {size / _GIB:.1f} GiB of weights, its index says {total / _GIB:.1f}", fix)
    elif unfinished:
        yield warning(f"{path}: a download is unfinished: {_some(unfinished)}", fix)
    else:
        yield ok(f"{path}: {len(weights)} files, {size / _GIB:.1f} GiB")


def rules_allow_it(ctx: Context) -> Iterator[Said]:
    """The engine's rules: EAGLE or EAGLE3, vocabularies, hidden sizes, contexts, trees, backends, this GPU."""
    candidates = ctx.candidates
    candidates.require_any(ctx.engine.is_speculative)
    baseline = ctx.engine.violations(ctx.engine.baseline(ctx.base, ctx.facts), ctx.facts)
    yield from (setting(f"the baseline: {plain(line, 500)}", "change engine.flags") for line in baseline)
    for line in candidates.never_legal():
        yield warning(plain(line, 400), "take the value out of the space, or change what forbids it")
    count = candidates.enumerated
    if not baseline:
        yield ok(
            "more configurations than are listed"
            if count is None
            else f"{len(count)} legal, distinct configurations"
        )


def all_has_effect(ctx: Context) -> Iterator[Said]:
    """Flags and variables that change nothing here, and what is not known of this version."""
    notes = list(ctx.notes_on(ctx.spec, ctx.engine, ctx.facts))
    yield from (warning(plain(note, 400)) for note in notes)
    if not notes:
        yield ok("every flag and variable of the settings has an effect")


def contexts_suffice(ctx: Context) -> Iterator[Said]:
    """Prompts and answers fit into what a request may have."""
    wrong = context_mistakes(ctx.spec, ctx.engine, ctx.facts)
    yield from (setting(line, "a smaller max_tokens, or a larger context in engine.flags") for line in wrong)
    tight = tight_contexts(ctx.spec, ctx.engine, ctx.facts)
    yield from (warning(line, "a smaller max_tokens, or shorter prompts") for line in tight)
    limit = ctx.engine.context_tokens(ctx.spec.engine.flags, ctx.facts)
    if not wrong and not tight:
        yield ok("the server does not tell its context" if limit is None else f"all fit into {limit:,} tokens")


def gpus_hold_it(ctx: Context) -> Iterator[Said]:
    """Weights of the model and its largest draft, shared by the GPUs, against the memory of one."""
    look = ctx.gpus if ctx.uses_gpus else None
    if look is None or not look.reading.gpus or not ctx.num_gpus:
        return
    nodes = 1 + len(ctx.spec.host.nodes)
    model, draft = _sizes(ctx)
    each, room = (
        (model + draft) / (ctx.num_gpus * nodes),
        _MIB * min(g.memory_total_mib for g in look.reading.gpus),
    )
    text = f"{each / _GIB:.1f} GiB of weights on each of {ctx.num_gpus * nodes} GPUs of {room / _GIB:.1f} GiB"
    if each > room:
        yield error(text, "more GPUs (tp_size), or weights of lower precision")
    elif each > _ROOM * room:
        yield warning(
            f"{text}: little is left for keys and values", "more GPUs (tp_size), or weights of lower precision"
        )
    elif each:
        yield ok(text)


def memory_holds_it(ctx: Context) -> Iterator[Said]:
    """The page cache: weights that fit into it are read from the disk once, else at each restart."""
    memory, (model, draft) = memory_of(ctx.look), _sizes(ctx)
    room = memory.get("ceiling", memory.get("MemTotal", 0.0))
    if not model or not room:
        return
    text = f"{(model + draft) / _GIB:.1f} GiB of weights, {room / _GIB:.1f} GiB of memory"
    if model + draft > room:
        yield warning(
            f"{text}: each restart reads them from the disk",
            f"a larger limits.start_s than {ctx.spec.limits.start_s:g} if the disk is slow; a faster disk",
        )
    else:
        yield ok(f"{text}: after the first start they come from the page cache")
    slow = sorted(
        {plain(told.first("disk"), 20) for told in ctx.weights.values()} & {"nfs", "nfs4", "cifs", "fuse", "9p"}
    )
    if slow:
        yield warning(
            f"weights lie on {', '.join(slow)}: starts depend on the network", "copy them to a local disk"
        )


def _sizes(ctx: Context) -> tuple[float, float]:
    """Bytes of the model and of the largest draft."""
    sizes = {path: _size(told) for path, told in ctx.weights.items()}
    model = sizes.get(ctx.model[0], 0.0)
    return model, max((size for path, size in sizes.items() if path != ctx.model[0]), default=0.0)


def _size(told: Told) -> float:
    """As large as its files or, where these are not weights, as its index says."""
    files = [found for line in told.all("file") if (found := _FILE.fullmatch(line))]
    total = told.first("total")
    told_bytes = float(total) if _NUMBER.fullmatch(total) else 0.0
    return max(told_bytes, sum(float(f[1]) for f in files if f[2] != "config.json"))


def _described(config: object) -> str:
    """The few fields of a config.json that a person compares."""
    if not isinstance(config, dict):
        return "not a JSON object"
    nested = config.get("text_config")
    inner: Mapping[str, object] = {**config, **nested} if isinstance(nested, dict) else config
    names = config.get("architectures")
    words = [str(names[0])] if isinstance(names, list) and names else []
    for key, name in (
        ("hidden_size", "hidden"),
        ("vocab_size", "vocabulary"),
        ("draft_vocab_size", "draft vocabulary"),
        ("max_position_embeddings", "context"),
    ):
        if isinstance(value := inner.get(key), int):
            words.append(f"{name} {value}")
    if isinstance(kind := inner.get("dtype") or inner.get("torch_dtype"), str):
        words.append(kind)
    quantized = inner.get("quantization_config")
    if isinstance(quantized, dict) and isinstance(method := quantized.get("quant_method"), str):
        words.append(f"quantized: {method}")
    return plain(", ".join(words), 300)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(plain(name, 80) for name in names[:3]) + more


MODEL_CHECKS: tuple[Check[Context], ...] = (
    Check(
        "engine",
        Place.HOST,
        "does the server's program run; its version and what it is built of",
        engine_answers,
        ("session",),
    ),
    Check(
        "flags", Place.HOST, "does the server have each flag that it will be given", flags_are_known, ("engine",)
    ),
    Check("model", Place.MODEL, "is the model there and readable", model_is_there, ("session",)),
    Check(
        "drafts", Place.MODEL, "are the drafts, and the files that the rules read", drafts_are_there, ("model",)
    ),
    Check("model_config", Place.MODEL, "what each config.json says", models_are_described, ("model",)),
    Check("weights", Place.MODEL, "are all shards there and whole", weights_are_whole, ("model",)),
    Check(
        "rules",
        Place.MODEL,
        "EAGLE or EAGLE3, vocabulary, hidden size, trees, backends: the engine's rules on this host",
        rules_allow_it,
        ("engine", "drafts"),
    ),
    Check(
        "effect",
        Place.MODEL,
        "do flags and variables have an effect; is this version known",
        all_has_effect,
        ("rules",),
    ),
    Check(
        "context",
        Place.MODEL,
        "do prompts and answers fit into the context",
        contexts_suffice,
        ("engine", "model"),
    ),
    Check("gpu_fit", Place.MODEL, "do the weights fit into the GPUs", gpus_hold_it, ("gpus", "model")),
    Check(
        "page_cache", Place.MODEL, "do the weights stay in memory between restarts", memory_holds_it, ("model",)
    ),
)
