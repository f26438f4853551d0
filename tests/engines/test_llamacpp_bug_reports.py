"""Public bug reports of llama.cpp, cut to the lines that count: each gets the class that it would have deserved.

The id of each is where it was reported; LC is ggml-org/llama.cpp.
"""

from __future__ import annotations

import pytest

from sweeper.engines.llamacpp import LlamaCpp
from sweeper.errors import FailureKind

OOM, REFUSED, CRASH = FailureKind.OUT_OF_MEMORY, FailureKind.UNSUPPORTED, FailureKind.SERVER_CRASH

ENGINE = LlamaCpp()
LISTENING = "I srv  llama_server: model loaded\nI srv  llama_server: listening on http://127.0.0.1:8080\n"
FITTING = (
    "E llama_init_from_model: failed to initialize the context: Gemma4Assistant requires ctx_other to be set"
    " (this warning is normal during memory fitting)\nE common_init_: failed to create context with model 'mtp'\n"
)
TOO_LARGE = (
    "E buffer_type_alloc_buffer: allocating 51748.72 MiB on device 1: cudaMalloc failed: out of memory\n"
    "E graph_reserve: failed to allocate compute buffers\n"
)
SMALLER = "W sched_reserve: compute buffer allocation failed, retrying without pipeline parallelism\n"

REPORTS: dict[str, tuple[FailureKind, str, str]] = {
    # where: (class, a word of the message, the log)
    "LostRuins/koboldcpp#2325": (REFUSED, "vocabulary", """
common_speculative_are_compatible: draft model vocab type must match target model to use speculation
"""),
    "LC#3812": (REFUSED, "vocabulary", """
main: error: draft model vocab must match target model to use speculation but token 0 content differs
"""),
    "Anbeeld/beellama.cpp#4": (REFUSED, "does not know its architecture", """
llama_model_load: error loading model: error loading model architecture: unknown model architecture: 'dflash'
srv    load_model: failed to load draft model, '/m/x.gguf'
"""),
    "Anbeeld/beellama.cpp#92": (REFUSED, "tensors", """
E llama_model_load: error loading model: missing tensor 'hidden_norm.weight'
E llama_model_load_from_file_impl: failed to load model
"""),
    "LC#10759": (REFUSED, "tensors", """
llama_model_load: error loading model: done_getting_tensors: wrong number of tensors; expected 255, got 254
llama_load_model_from_file: failed to load model
"""),
    "LC#6665": (REFUSED, "tensors", """
llama_model_load: error loading model: create_tensor: tensor 'blk.0.ffn_gate.0.weight' not found
main: error: unable to load model
"""),
    "ikawrakow/ik_llama.cpp#645": (REFUSED, "flash attention", """
llama_init_from_model: V cache quantization requires flash_attn
srv    load_model: failed to load draft model, '/m/x.gguf'
"""),
    "lmstudio-ai/lmstudio-bug-tracker#2153": (REFUSED, "its target", FITTING),
    "LC#27749": (CRASH, "call to the GPU", LISTENING + """
E CUDA error: an illegal memory access was encountered
E   current device: 0, in function ggml_backend_cuda_synchronize at /x/ggml-cuda.cu:2900
"""),
    "LC#13085": (OOM, "out of memory", LISTENING + """
/x/ggml/src/ggml-cuda/ggml-cuda.cu:75: CUDA error
CUDA error: out of memory
"""),
    "lmstudio-ai/lms#610": (REFUSED, "speculate", LISTENING + "E failed to process speculative batch\n"),
    "LC#27306": (CRASH, "call to the GPU", LISTENING + "E decode() failed: vk::Queue::submit: ErrorDeviceLost\n"),
    "LC#27458": (CRASH, "call to the GPU", LISTENING + "E ggml_vulkan: device lost on Vulkan0\n"),
    "LC#26648": (CRASH, "aborted itself", LISTENING + """
llama-server: /build/src/llama-sampler.cpp:1100: void llama_sampler_apply(): Assertion `found' failed.
"""),
    "LC#23500": (CRASH, "aborted itself", LISTENING + "/x/ggml/src/ggml.c:1700: GGML_ASSERT(obj_new) failed\n"),
    "a buffer that fits nowhere": (OOM, "out of memory", TOO_LARGE + SMALLER + TOO_LARGE),
}  # fmt: skip


@pytest.mark.parametrize("where", REPORTS)
def test_reported_failures_get_the_class_that_they_deserve(where: str) -> None:
    kind, said, log = REPORTS[where]
    found = ENGINE.diagnose(log, 1)
    assert found is not None
    assert found.kind is kind
    assert said in found.message


@pytest.mark.parametrize(
    "log",
    [
        FITTING + LISTENING,  # LC#24443
        FITTING,
        TOO_LARGE + SMALLER + LISTENING,  # LC#26297
        TOO_LARGE + SMALLER,
        "W load: failed to measure draft model memory: failed to load model\n" + LISTENING,
    ],
)
def test_what_a_server_gets_over_is_no_failure(log: str) -> None:
    assert ENGINE.diagnose(log, None) is None


@pytest.mark.parametrize("code", [139, -11])
def test_a_signal_is_named_however_the_exit_code_is_written(code: int) -> None:
    found = ENGINE.diagnose(LISTENING, code)
    assert found is not None
    assert "SIGSEGV" in found.message
