"""Every parser of text that comes from outside: what it is fed, and the errors that it is documented to raise.

What a parser understood must also be fit to be kept: it is written into a record, as a launch would.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from launchers.errors import HostLost, LauncherError
from launchers.gpu_sample import QUERIES, read_sample
from launchers.gpus import holders, read_gpus
from launchers.host import HostLauncher, HostSettings
from launchers.masking import hide_shapes, shaped_secrets
from launchers.replies import parse_reply
from launchers.slurm import read_looks
from sweeper.engines.base import Engine, StreamedResponse
from sweeper.engines.environ import parse_environ
from sweeper.engines.llamacpp import LlamaCpp
from sweeper.engines.sglang import SGLang
from sweeper.engines.sglang.model import read_model
from sweeper.engines.vllm import Vllm
from sweeper.errors import FailureKind
from sweeper.measuring.load_wire import read_answer, unpacked
from sweeper.probing.commands import Messages, read_times
from sweeper.prompts.files import read_prompts
from sweeper.provenance import gpu_build
from sweeper.records import Failure
from sweeper.secrets import sealed
from sweeper.serving.launch_log import LaunchLog
from sweeper.spec import ServerConfig
from sweeper.storing.saved_launch import SavedLaunch, read_saved
from sweeper.text import plain
from sweeper.text_marks import marks
from tests.fakes import FakeClock, launch
from tests.fuzz import seeds
from tests.fuzz.reply_shell import ReplyShell
from tests.fuzz.stored import stored_parser, stored_seeds

MESSAGES = Messages(num_ranks=8, hidden_size=7168, num_layers=61, tokens=(1, 4))
CONFIG = ServerConfig(flags={"speculative_algorithm": "EAGLE3", "spec_type": "ngram-simple"})


@dataclass(frozen=True)
class Parser:
    """`feed` takes any bytes; it returns, or raises one of `raises`, and nothing else."""

    name: str
    feed: Callable[[bytes], object]
    seeds: Sequence[bytes]
    raises: tuple[type[Exception], ...] = ()


def text_of(content: bytes) -> str:
    return content.decode("utf-8", "replace")


def log_parser(engine: Engine) -> Callable[[bytes], object]:
    """All that a server's log is read for; a failure that it shows is written down."""

    def feed(content: bytes) -> None:
        log = LaunchLog()
        log.append(content)
        text = log.text()
        engine.readiness(text)
        plain(engine.progress(text))
        engine.fatal_sign(text)
        engine.running_mistakes(CONFIG, text)
        code = (None, 1, 139)[len(content) % 3]
        if (found := engine.diagnose(text, code)) is not None:
            keep(found.message, (*found.evidence, *log.last_lines()))

    return feed


def keep(message: str, evidence: Sequence[str], **update: object) -> None:
    """Write it down in a record, without secrets, and read that again."""
    failure = Failure(kind=FailureKind.SERVER_CRASH, message=message[:2000], evidence=tuple(evidence))
    sealed(launch(1.0).model_copy(update={"failure": failure, **update}))


def info_parser(engine: Engine) -> Callable[[bytes], object]:
    """What a server reports of itself, as http.get_json hands it on."""

    def feed(content: bytes) -> None:
        try:
            info = json.loads(content)
        except (ValueError, RecursionError):
            return
        if isinstance(info, dict):
            effective = engine.effective(info)
            keep("", (), effective=effective, surprises=tuple(f"{k}: {v!r}" for k, v in effective.items()))
            identity = engine.identity(info)
            keep(identity.nonce, (identity.model_path,))

    return feed


def stream_parser(engine: Engine) -> Callable[[bytes], object]:
    def feed(content: bytes) -> None:
        lines = tuple((float(number), line) for number, line in enumerate(content.split(b"\n")))
        answer = engine.parse(StreamedResponse(lines, float(len(lines))))
        keep(answer.finish_reason, (answer.accept_source,), outputs={"p#0": marks(answer.text)})

    return feed


def host_parser(content: bytes) -> None:
    """The launcher over a shell that frames `content` properly: the reply to its own verb and to another."""
    shell = ReplyShell(content)
    launcher = HostLauncher(shell, HostSettings("gpu", "/state", gpu_wait_s=0.0), FakeClock())
    for ask in shell.calls(launcher):
        with suppress(LauncherError):
            ask()


def reply_parser(content: bytes) -> None:
    reply = parse_reply(content, "n0")
    reply.text()
    reply.fields(r"(\d+)")


def gpu_parser(content: bytes) -> None:
    look = read_gpus(text_of(content))
    keep("; ".join(look.problems)[:2000], holders(look, 1024))
    read_gpus(text_of(content), (0, 3))


def sample_parser(content: bytes) -> None:
    for query in QUERIES:
        sample = read_sample(text_of(content), query, "s-1", (0, 1), 1024)
        keep("", sample.problems, argv=tuple(holder.description for holder in sample.holders))


def prompts_parser(folder: Path) -> Callable[[bytes], object]:
    file = folder / "prompts.jsonl"

    def feed(content: bytes) -> None:
        file.write_bytes(content)
        for prompt in read_prompts(file).prompts:
            keep(prompt.id, (prompt.prompt_class,))

    return feed


def template_parser(content: bytes) -> None:
    """What SGLang's own Python tells of prompts under the chat template; other servers apply it themselves."""
    SGLang().parse_template(text_of(content))


def launch_parser(content: bytes) -> None:
    """A launch as the database keeps it; one that cannot be read is told, and says nothing to a sampler."""
    saved = read_saved(text_of(content))
    saved.excerpt()
    if isinstance(saved, SavedLaunch):
        sealed(saved.record)


def plain_parser(content: bytes) -> None:
    text = content.decode("utf-8", "backslashreplace")
    shown = plain(text)
    assert len(shown) <= 300
    assert not {"\x1b", "\r", "\n", "\0", "\u202e", "\u2066", "\x9b"} & set(shown)
    hidden = hide_shapes(text)
    assert hide_shapes(hidden) == hidden
    list(shaped_secrets(text))


def parsers(folder: Path) -> tuple[Parser, ...]:
    """All of them; files are written into `folder`."""
    made = [
        Parser("supervisor: frame of a reply", reply_parser, seeds.frames(), (HostLost,)),
        Parser("supervisor: replies of every verb", host_parser, seeds.replies()),
        Parser("nvidia-smi: memory and processes", gpu_parser, seeds.gpu_answers(), (HostLost,)),
        Parser("nvidia-smi: samples", sample_parser, seeds.samples(), (HostLost,)),
        Parser("nvidia-smi: driver and policy", lambda c: gpu_build(text_of(c), (0,)), seeds.policies()),
        Parser("load client: answer", lambda c: read_answer(c, 1), seeds.load_answers(), (ValueError,)),
        Parser("load client: packed lines", unpacked, seeds.packed_lines(), (ValueError,)),
        Parser("load client: lines", lambda c: unpacked(seeds.deflated(c)), seeds.records(), (ValueError,)),
        Parser("environment of a server", parse_environ, seeds.environs()),
        Parser("sglang: chat template", template_parser, seeds.token_ids(), (ValueError,)),
        Parser("NCCL timings", lambda c: read_times(text_of(c), MESSAGES), seeds.timings()),
        Parser("config.json of a model", lambda c: read_model(text_of(c)), seeds.model_configs()),
        Parser("squeue: jobs", lambda c: read_looks(text_of(c), ("12_0", "12_1")), seeds.squeue_answers()),
        Parser("prompt file", prompts_parser(folder), seeds.prompt_files(), (ValueError,)),
        Parser("stored study", stored_parser(folder), stored_seeds()),
        Parser("stored launch, read in bulk", launch_parser, seeds.stored_launches()),
        Parser("text for a screen", plain_parser, seeds.log_lines()),
    ]  # fmt: skip
    for engine in (LlamaCpp(), SGLang(), Vllm()):
        made += engine_parsers(engine)
    return tuple(made)


def engine_parsers(engine: Engine) -> list[Parser]:
    name, saved = engine.name, seeds.of_engine(engine.name)
    return [
        Parser(f"{name}: log", log_parser(engine), saved.logs),
        Parser(f"{name}: metrics page", lambda c: engine.counters(text_of(c)), saved.metrics),
        Parser(f"{name}: server info", info_parser(engine), saved.infos, (ValueError,)),
        Parser(f"{name}: generation", stream_parser(engine), saved.streams, (ValueError,)),
        Parser(f"{name}: version", lambda c: engine.parse_version(text_of(c)), saved.versions, (ValueError,)),
        Parser(f"{name}: build", lambda c: engine.parse_build(text_of(c)), saved.builds),
        Parser(f"{name}: help", lambda c: engine.known_flags(text_of(c)), saved.helps),
    ]
