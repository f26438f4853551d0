"""What SGLang refuses: drafts and models that cannot work, and would fail again.

Sources as in signs.py. A refusal that is not listed is recognised by its exception: tracebacks.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from sweeper.engines.signs import KERNEL_CACHE, RAISED, Sign, raised, sign
from sweeper.errors import FailureKind

_CANNOT_READ = "a model file cannot be read: check the path, the access rights and that the files are complete"

REFUSALS: Sequence[Sign] = (
    sign(
        FailureKind.UNSUPPORTED,
        "a token lies outside an embedding table: the draft's vocabulary is not the target's",
        r"srcIndex < srcSelectDimSize",
        raised(r"draft.{0,60} vocab|vocab.{0,60} draft"),
    ),
    sign(
        FailureKind.UNSUPPORTED,
        "the draft asks for more nodes than its tree has: lower speculative_num_draft_tokens",
        r"selected index k out of range",
    ),
    sign(
        FailureKind.UNSUPPORTED,
        "tensor shapes do not fit: the draft model does not belong to this target, or the tree does not suit the"
        " backend",
        r"Sizes of tensors must match|The size of tensor a \(\d+\) must match|shapes cannot be multiplied",
        raised(r"size mismatch|shape mismatch|expanded size of the tensor|is invalid for input of size"),
        raised(r"Attempted to load weight"),
    ),
    sign(
        FailureKind.UNSUPPORTED,
        "this model cannot be the draft: name a draft that was trained for the target, and its algorithm",
        raised(r"has no attribute '(?:hot_token_id|set_embed|get_embed|set_eagle3|capture_aux|draft)\w*'"),
        r"set_eagle3_layers_to_capture|EAGLE3 currently only supports|currently only supports 1 layer",
    ),
    sign(
        FailureKind.UNSUPPORTED,
        "the server does not speculate this way with this backend or algorithm",
        r"Unknown speculative algorithm|EAGLE is not supported in|only supports? topk ?=+ ?1",
        r"trtllm_mla backend (?:can only|requires)",
        raised(r"[Ss]peculative (?:decoding|sampling|algorithm|draft)|speculative_|[Ss]pec v2|eagle_topk"),
    ),
    sign(
        FailureKind.UNSUPPORTED,
        "the quantization does not fit: give the draft its own (speculative_draft_model_quantization unquant)",
        raised(r"Cannot find the config file for|[Qq]uantization|[Qq]uantized"),
        raised(r"not divisible by .{0,60}(?:group|block|tile)"),
    ),
    sign(
        FailureKind.UNSUPPORTED,
        "this version does not know the model's architecture, or will not run its code (trust_remote_code)",
        r"[Mm]odel architectures .*not supported|does not recognize this architecture|[Uu]nsupported archit",
        raised(r"trust_remote_code|contains custom code|[Uu]nrecognized model in|[Uu]nrecognized configuration"),
    ),
    sign(
        FailureKind.UNSUPPORTED,
        _CANNOT_READ,
        r"Repo id must be|HFValidationError|is not a local folder|not a valid model identifier|[Gg]ated ?[Rr]epo",
        r"\b40[134] Client Error|RepositoryNotFoundError|LocalEntryNotFoundError|RevisionNotFoundError",
        raised(r"couldn't connect to 'https://huggingface|does not appear to have|[Nn]o file named"),
        raised(r"Cannot find any (?:model )?weights|Can't load (?:the )?(?:model|config|configuration)\b"),
        r"SafetensorError|HeaderTooLarge|header too large|MetadataIncompleteBuffer|InvalidHeader",
        rf"{RAISED}(?:FileNotFoundError|NotADirectoryError|PermissionError|UnpicklingError)\b(?!: {KERNEL_CACHE})",
    ),
    sign(
        FailureKind.UNSUPPORTED,
        "the tokenizer or the chat template cannot be used",
        raised(r"[Cc]hat template|[Tt]okenizer|untagged enum ModelWrapper"),
        rf"{RAISED}(?:TemplateSyntaxError|TemplateError|TemplateNotFound)\b",
    ),
    sign(
        FailureKind.UNSUPPORTED,
        "a Python module of the server is missing or does not fit its version",
        rf"{RAISED}(?:ModuleNotFoundError|ImportError)\b",
    ),
    sign(
        FailureKind.UNSUPPORTED,
        "NCCL cannot do what its variables ask for (NCCL_ALGO, NCCL_PROTO, ...) on these GPUs",
        r"no algorithm/protocol available|ncclInvalidUsage|ncclInvalidArgument|Duplicate GPU detected",
    ),
    sign(
        FailureKind.UNSUPPORTED,
        "there are fewer GPUs than the configuration asks for",
        r"invalid device ordinal|cudaErrorInvalidDevice\b",
    ),
)
