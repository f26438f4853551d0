"""Public bug reports of vLLM, cut to the lines that count: each gets the class that it would have deserved.

The id of each is where it was reported; VL is vllm-project/vllm.
"""

from __future__ import annotations

import pytest

from sweeper.engines.vllm import Vllm
from sweeper.errors import FailureKind

OOM, REFUSED, DIRTY = FailureKind.OUT_OF_MEMORY, FailureKind.UNSUPPORTED, FailureKind.HOST_DIRTY
CRASH, HANG = FailureKind.SERVER_CRASH, FailureKind.SERVER_HANG

ENGINE = Vllm()
SERVED = "INFO:     Application startup complete.\n"
WAITS = (
    "(EngineCore_DP{} pid=145{}) INFO 05-28 14:4{}:28 [shm_broadcast.py:681] No available shared memory broadcast"
    " block found in 60 seconds. This typically happens when some processes are hanging or compile.\n"
)
WAITING = "".join(WAITS.format(rank, rank, minute) for minute in range(4, 8) for rank in (0, 1))

REPORTS: dict[str, tuple[FailureKind, str, str]] = {
    # where: (class, a word of the message, the log)
    "VL#48848": (REFUSED, "shapes do not fit", """
(EngineCore pid=12) ERROR 11-30 14:10:32 [core.py:1203] EngineCore failed to start.
(EngineCore pid=12) ERROR 11-30 14:10:32 [core.py:1203] torch._dynamo.exc.TorchRuntimeError: Dynamo failed to run \
FX node with fake tensors: got RuntimeError('a and b must have same reduction dim, but got [s72, 7680] X [5376]')
"""),
    "VL#13673": (CRASH, "outside its memory", f"""
{SERVED}ERROR 02-21 06:30:25 core.py:291] EngineCore hit an exception: Traceback (most recent call last):
ERROR 02-21 06:30:25 core.py:291] RuntimeError: CUDA error: an illegal memory access was encountered
"""),
    "VL#7047": (CRASH, "IndexError: index 0", f"""
{SERVED}ERROR 08-01 21:27:03 async_llm_engine.py:56]   File "/x/spec_decode/ngram_worker.py", line 66, in output
ERROR 08-01 21:27:03 async_llm_engine.py:56] IndexError: index 0 is out of bounds for dimension 0 with size 0
"""),
    "VL#48380": (REFUSED, "spec_kv_cache_dtype", """
(EngineCore pid=12) ERROR 07-12 14:10:32 [core.py:1203] ValueError: No valid attention backend found for cuda \
with AttentionSelectorConfig(head_size=64, kv_cache_dtype=fp8_ds_mla, use_mla=False). Reasons: {FLASH_ATTN: [...]}.
"""),
    "VL#41027": (REFUSED, "refused to start: AssertionError", """
(EngineCore pid=445)     raise RuntimeError(
(EngineCore pid=445) RuntimeError: Worker failed with error 'AssertionError: ', please check the stack trace above
"""),
    "VL#54178": (REFUSED, "divided over so many GPUs", """
(Worker_TP0 pid=9356) ERROR 08-28 21:54:09 [multiproc_executor.py:597] WorkerProc failed to start.
(Worker_TP0 pid=9356) ERROR 08-28 21:54:09 [multiproc_executor.py:597] ValueError: The output_size of gate's and \
up's weight = 80 is not divisible by weight quantization block_n = 128.
"""),
    "gpustack/gpustack#1254": (DIRTY, "driver", """
ERROR 02-20 16:43:12 engine.py:389] RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some \
cuda functions? Error 804: forward compatibility was attempted on non supported HW
"""),
    "VL#5785": (CRASH, "a worker died", """
(raylet) Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with an error code 2
"""),
    "VL#15295": (CRASH, "a worker died", """
ERROR 03-21 10:00:00 multiproc_worker_utils.py:124] Worker VllmWorkerProcess pid 1234 died, exit code: -15
"""),
    "VL#29559": (REFUSED, "shapes do not fit", """
(EngineCore_DP0 pid=3771592) RuntimeError: The expanded size of the tensor (256) must match the existing size
"""),
    "VL#19775": (REFUSED, "speculative settings", """
ERROR 06-17 20:30:38 [core.py:515] NotImplementedError: Speculative decoding with draft model is not supported yet.
"""),
    "VL#44185": (HANG, "waits for its workers", SERVED + WAITING),
    "intel/intel-xpu-backend-for-triton#7166": (REFUSED, "speculative settings", """
(APIServer pid=1) pydantic_core._pydantic_core.ValidationError: 1 validation error for VllmConfig
(APIServer pid=1)   Value error, Model Runner V2 does not yet support: ngram/ngram_gpu speculative decoding [type=
"""),
    "pytorch/pytorch#175666": (DIRTY, "held by something else", """
(EngineCore_DP0 pid=6940) ValueError: Free memory on device cuda:0 (19.77/22.05 GiB) on startup is less than \
desired GPU memory utilization (0.9, 19.84 GiB).
"""),
    "VL#8731": (OOM, "ran out of memory", """
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 72.00 MiB. GPU 0 has a total capacity of 39.56 GiB
"""),
}  # fmt: skip


@pytest.mark.parametrize("where", REPORTS)
def test_reported_failures_get_the_class_that_they_deserve(where: str) -> None:
    kind, said, log = REPORTS[where]
    found = ENGINE.diagnose(log, 1)
    assert found is not None
    assert found.kind is kind
    assert said in found.message


def test_waiting_for_workers_is_no_hang_while_they_may_compile_or_when_service_went_on() -> None:
    assert ENGINE.diagnose(WAITING, None) is None
    went_on = "(APIServer pid=1) INFO 05-28 15:00:00 [loggers.py:271] Engine 000: Running: 1 reqs"
    assert ENGINE.diagnose(f"{SERVED}{WAITING}{went_on}\n", None) is None
