"""The five questions of `specsweep init`: what each means, what is taken without an answer, what is right."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sweeper.errors import ConfigError
from sweeper.prompts.files import read_prompts
from sweeper.text import plain

THIS_MACHINE = "local"
PACKAGED_MODEL = "packaged"
NGRAM = "ngram"
PACKAGED_SETS = ("chat", "copy_edit", "copy_edit_long", "single_stream")

_DESTINATION = re.compile(r"([\w.-]+@)?[\w][\w.-]*", re.ASCII)
_SETTING = re.compile(r"[^\x00-\x1f\x7f]{1,1000}")


@dataclass(frozen=True)
class Answers:
    """What was answered. `drafters`: paths on the host, or `ngram` alone; `prompts`: a packaged set or a file."""

    host: str
    engine: str
    model: str
    drafters: tuple[str, ...]
    prompts: str


@dataclass(frozen=True)
class Question:
    """One question: `flag` gives the answer on the command line. `default` may depend on the answers before."""

    name: str
    flag: str
    text: str
    explanation: str
    default: Callable[[Mapping[str, str]], str]
    mistake: Callable[[str, Mapping[str, str]], str]


def _engine_default(told: Mapping[str, str]) -> str:
    return "llamacpp" if told["host"] == THIS_MACHINE else "sglang"


def _model_default(told: Mapping[str, str]) -> str:
    if told["engine"] != "llamacpp":
        return "/models/target"
    return PACKAGED_MODEL if told["host"] == THIS_MACHINE else "/models/target.gguf"


def _drafter_default(told: Mapping[str, str]) -> str:
    return NGRAM if told["engine"] == "llamacpp" else "/models/target-eagle3"


def _prompts_default(told: Mapping[str, str]) -> str:
    return "copy_edit" if told["model"] == PACKAGED_MODEL else "single_stream"


def _host_mistake(text: str, _: Mapping[str, str]) -> str:
    right = "should be local, or where ssh goes: gpu1, me@gpu1.example.org, a Host of ~/.ssh/config"
    return "" if _DESTINATION.fullmatch(text) else right


def _engine_mistake(text: str, _: Mapping[str, str]) -> str:
    return "" if text in ENGINES else f"should be one of {', '.join(ENGINES)}"


def _model_mistake(text: str, told: Mapping[str, str]) -> str:
    if text != PACKAGED_MODEL:
        return _path_mistake(text)
    if told["engine"] == "llamacpp" and told["host"] == THIS_MACHINE:
        return ""
    return "the packaged model is for llamacpp on this machine (local); give the path of another on the host"


def _drafters_mistake(text: str, told: Mapping[str, str]) -> str:
    paths = drafters_in(text)
    if not paths:
        return "should be at least one path"
    if NGRAM in paths:
        if told["engine"] not in NGRAM_ENGINES:
            return f"{NGRAM} is for {' and '.join(NGRAM_ENGINES)}; give the paths of draft models on the host"
        return "" if paths == (NGRAM,) else f"{NGRAM} needs no model beside it: give {NGRAM}, or paths"
    return next(filter(None, map(_path_mistake, paths)), "")


def _prompts_mistake(text: str, _: Mapping[str, str]) -> str:
    if text in PACKAGED_SETS:
        return ""
    try:
        path = Path(text).expanduser()
        if not path.is_file():
            return f"is no file here; give a file of prompts, or one of {', '.join(PACKAGED_SETS)}"
        read_prompts(path)
    except (ValueError, RuntimeError) as error:  # RuntimeError: ~ of a user who is none
        return str(error)
    return ""


def _path_mistake(text: str) -> str:
    if not _SETTING.fullmatch(text) or "${" in text or "???" in text:
        return "should be a path on the host, or a name of the Hugging Face hub, without ${ and line breaks"
    return ""


def drafters_in(text: str) -> tuple[str, ...]:
    """The paths in an answer, which commas separate; each once."""
    return tuple(dict.fromkeys(filter(None, map(str.strip, text.split(",")))))


ENGINES = ("sglang", "vllm", "llamacpp")
"""Those with files to begin with (files.py)."""

NGRAM_ENGINES = ("vllm", "llamacpp")
"""Those whose files have a space that needs no draft model."""

QUESTIONS: Sequence[Question] = (
    Question(
        "host",
        "--host",
        "Where does the server run?",
        "local: this machine. Else where ssh goes: a host name, USER@HOST, or a Host of your ~/.ssh/config.",
        lambda _: THIS_MACHINE,
        _host_mistake,
    ),
    Question(
        "engine",
        "--engine",
        "Which server?",
        "sglang, vllm: with EAGLE-3 on GPUs. llamacpp: llama.cpp, also without a GPU.",
        _engine_default,
        _engine_mistake,
    ),
    Question(
        "model",
        "--model",
        "Which model?",
        "Its path on that host (a folder, or a GGUF file for llama.cpp). packaged: SmolLM2-135M, to try it all.",
        _model_default,
        _model_mistake,
    ),
    Question(
        "drafters",
        "--drafter",
        "Which drafters?",
        "Paths on that host of draft models made for this model; several, separated by commas, are compared. "
        "ngram (vllm, llamacpp): no draft model, text is looked up.",
        _drafter_default,
        _drafters_mistake,
    ),
    Question(
        "prompts",
        "--prompts",
        "Which prompts?",
        "A file of what you serve (JSONL, ShareGPT, MT-bench), or a packaged set: chat, copy_edit, single_stream.",
        _prompts_default,
        _prompts_mistake,
    ),
)


Ask = Callable[[Question, str, Mapping[str, str]], str]
"""Gives what was answered to a question, with its default and the answers before it; it is right then."""


def answers_of(given: Mapping[str, str], ask: Ask | None) -> Answers:
    """The answers: as `given`, else asked for, else the defaults.

    Raises ConfigError with every mistake in what was given.
    """
    told: dict[str, str] = {}
    mistakes: list[str] = []
    for question in QUESTIONS:
        default = question.default(told)
        if question.name not in given:
            told[question.name] = default if ask is None else ask(question, default, told)
            continue
        text = given[question.name]
        if reason := question.mistake(text, told):
            mistakes.append(f"{question.flag}: {plain(text, 80)!r} {reason}")
            text = default
        told[question.name] = text
    if mistakes:
        raise ConfigError(mistakes)
    return Answers(
        host=told["host"],
        engine=told["engine"],
        model=told["model"],
        drafters=drafters_in(told["drafters"]),
        prompts=told["prompts"],
    )
