"""What vLLM refuses: drafts, models and settings that cannot work, and would fail again.

Sources as in diagnosis.py. A refusal that is not listed is recognised by the type of its exception.
"""

from __future__ import annotations

from collections.abc import Sequence

from sweeper.engines.signs import BLOCKS, NCCL_REFUSES, SHAPES, Sign, raised, sign
from sweeper.errors import FailureKind

_VALIDATION = r"^\s*Value error, .{0,1000}?"
"""Before what pydantic has a validator say, a line below the name of the model that was refused."""


def _refused(pattern: str) -> str:
    return rf"(?:{raised(pattern)})|(?:{_VALIDATION}(?:{pattern}))"


REFUSALS: Sequence[Sign] = (
    sign(
        FailureKind.UNSUPPORTED,
        "the draft model does not suit the target: its vocabulary is another",
        _refused(r"[Vv]ocab.{0,60}(?:same|match|draft)|draft.{0,80} vocab|same vocabulary"),
    ),
    sign(
        FailureKind.UNSUPPORTED,
        "tensor shapes do not fit: the draft model does not suit the target, or the weights cannot be divided over"
        " these GPUs",
        raised(SHAPES),
        r"There is no module or parameter named",
    ),
    sign(
        FailureKind.UNSUPPORTED,
        "this version does not know the architecture of the model or the draft (an EAGLE-3 draft needs eagle3)",
        r"Model architectures .{0,300}not supported|does not recognize this architecture|no vLLM implementation",
        _refused(r"trust_remote_code|contains custom code|[Uu]nrecognized model in|[Uu]nrecognized configuration"),
    ),
    sign(
        FailureKind.UNSUPPORTED,
        "the server refused the speculative settings",
        _refused(
            r"prompt_lookup|num_speculative_tokens|[Ss]peculative|draft_tensor_parallel_size"
            r"|synthetic_acceptance|[Aa]sync scheduling"
        ),
        r"validation errors? for SpeculativeConfig",
    ),
    sign(
        FailureKind.UNSUPPORTED,
        "a model file cannot be read: check the path, the access rights and that the files are complete",
        r"Repo id must be|HFValidationError|is not a local folder|not a valid model identifier|[Gg]ated ?[Rr]epo",
        r"\b40[134] Client Error|RepositoryNotFoundError|LocalEntryNotFoundError|RevisionNotFoundError",
        _refused(r"Invalid repository ID or local directory|Cannot find any (?:model )?weights|[Nn]o config"),
        r"SafetensorError|HeaderTooLarge|header too large|MetadataIncompleteBuffer|InvalidHeader",
        raised(
            r"couldn't connect to 'https://huggingface|does not appear to have|[Cc]annot find the requested files"
        ),
    ),
    sign(
        FailureKind.UNSUPPORTED,
        "the model cannot be divided over so many GPUs",
        _refused(r"must be divisible by tensor parallel|attention heads .{0,60}divisible|World size .{0,60}GPUs"),
        r"invalid device ordinal|cudaErrorInvalidDevice\b",
    ),
    sign(
        FailureKind.UNSUPPORTED,
        "max_model_len is longer than the model's own context",
        _refused(r"User-specified max_model_len .{0,100}is greater than"),
    ),
    BLOCKS,
    sign(
        FailureKind.UNSUPPORTED,
        "the quantization or its kernels do not fit this model or GPU",
        _refused(r"[Qq]uantization|[Qq]uantized|quant_method"),
    ),
    sign(
        FailureKind.UNSUPPORTED,
        "this attention backend does not serve this model, cache or GPU: choose another attention_backend or"
        " kv_cache_dtype (spec_attention_backend, spec_kv_cache_dtype for a draft, which else takes the target's)",
        _refused(
            r"attention backend|Selected backend|No valid attention backend|CUDAGraphMode\.\w+ is not supported"
        ),
    ),
    NCCL_REFUSES,
    sign(
        FailureKind.UNSUPPORTED,
        "a Python package of the host is missing or does not fit this version",
        r"^(?:\w+\.)*(?:ModuleNotFoundError|ImportError)\b",
    ),
    sign(
        FailureKind.UNSUPPORTED,
        "the server refused its settings",
        r"^(?:\w+\.)*ValidationError: |validation errors? for \w+Config\b",
    ),
)
