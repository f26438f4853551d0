"""The server's program and the models: there, whole, made for each other, and not too large."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from sweeper.doctor.context import Context
from sweeper.doctor.finding import Check, Place, Said, ok, setting, warning
from sweeper.facts import missing_files, unknown_flags
from sweeper.fitting import context_mistakes, tight_contexts
from sweeper.text import plain


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
)
