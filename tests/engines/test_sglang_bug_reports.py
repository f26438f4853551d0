"""Public bug reports, cut to the lines that count: each gets the class that it would have deserved.

The id of each is where it was reported; SG is sgl-project/sglang.
"""

from __future__ import annotations

import pytest

from sweeper.engines.sglang.diagnosis import diagnose_log
from sweeper.errors import FailureKind

OOM, REFUSED, DIRTY = FailureKind.OUT_OF_MEMORY, FailureKind.UNSUPPORTED, FailureKind.HOST_DIRTY
CRASH, HANG, SLOW = FailureKind.SERVER_CRASH, FailureKind.SERVER_HANG, FailureKind.START_TIMEOUT

REPORTS: dict[str, tuple[FailureKind, str, str]] = {
    # where: (class, a word of the message, the log)
    "SG#15638": (CRASH, "outside its memory", """
IndexKernelUtils.cu:16: vectorized_gather_kernel: block: [64,0,0], thread: [224,0,0] Assertion `ind >=0` failed.
[2025-12-22 19:08:58] Scheduler hit an exception: Traceback (most recent call last):
  File "/x/sglang/python/sglang/srt/managers/scheduler.py", line 2677, in run_scheduler_process
torch.AcceleratorError: CUDA error: device-side assert triggered
"""),
    "SG#7139": (REFUSED, "vocabulary", """
indexSelectSmallIndex: block: [32,0,0], thread: [63,0,0] Assertion `srcIndex < srcSelectDimSize` failed.
[2025-06-13 09:59:00] Scheduler hit an exception: Traceback (most recent call last):
  File "/x/sglang/srt/managers/scheduler.py", line 664, in event_loop_normal
RuntimeError: CUDA error: device-side assert triggered
"""),
    "SG#24402": (CRASH, "outside its memory", """
[2026-05-05 02:22:14] INFO:     127.0.0.1:56304 - "POST /generate HTTP/1.1" 200 OK
[2026-05-05 02:22:14] Scheduler hit an exception: Traceback (most recent call last):
  File "/x/sglang/srt/managers/scheduler.py", line 3747, in dispatch_event_loop
torch.AcceleratorError: CUDA error: an illegal memory access was encountered
"""),
    "SG#5416": (DIRTY, "same memory free", """
[2025-04-15 04:23:49 TP1] Scheduler hit an exception: Traceback (most recent call last):
  File "/x/sglang/srt/model_executor/model_runner.py", line 380, in init_torch_distributed
    raise ValueError(
ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes.
"""),
    "SG#4503": (SLOW, "loading its weights", """
[2025-03-17 17:15:55 TP1] Scheduler hit an exception: Traceback (most recent call last):
  File "/x/sglang/srt/model_executor/model_runner.py", line 417, in load_model
    raise ValueError(
ValueError: TP rank 1 could finish the model loading, but there are other ranks that didn't finish loading. It is
"""),
    "SG#1693": (HANG, "waited for each other", """
terminate called after throwing an instance of 'c10::DistBackendError'
  what():  [PG 3 Rank 5] Process group watchdog thread terminated with exception:
[Rank 5] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9141, OpType=_ALLGATHER_BASE, NumelIn=19008)
"""),
    "SG#7783": (HANG, "watchdog", """
[2025-08-02 19:24:26] INFO:     172.16.19.148:37398 - "POST /v1/completions HTTP/1.1" 200 OK
[2025-08-02 19:24:30 TP3] Watchdog timeout (self.watchdog_timeout=300)
[2025-08-02 19:24:30 TP3] self.cur_batch.batch_size()=109, self.cur_batch.reqs=[Req(rid=185ef8)]
[2025-08-02 06:06:21 TP2] Pyspy failed to dump PID 171. Error: /bin/dash: 1: py-spy: not found
"""),
    "SG#12076": (HANG, "watchdog", """
sglang-1  |     _bootstrap (threading.py:1032)
sglang-1  |     _bootstrap_inner (threading.py:1075)
sglang-1  | [2025-10-29 11:25:58 TP3] Watchdog timeout (self.watchdog_timeout=300)
"""),
    "gpustack/gpustack#3831": (OOM, "raise mem_fraction_static", """
RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current value: self
"""),
    "SG#7691": (OOM, "raise mem_fraction_static", """
[2025-07-02 07:41:59 DP0 TP0] max_total_tokens=131072 is larger than the profiled value -561981. Use the
"""),
    "vllm-project/vllm#14537": (DIRTY, "/dev/shm", """
[2025-03-10 03:40:01 TP5] Scheduler hit an exception: Traceback (most recent call last):
DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:317, unhandled system error
ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.
Last error:
Error while creating shared memory segment /dev/shm/nccl-EoOvZr (size 7340384)
"""),
    "NVIDIA/nccl#1709": (REFUSED, "NCCL_ALGO", """
[rank238]:   File "/x/torch/distributed/distributed_c10d.py", line 3836, in all_gather_into_tensor
[rank238]: torch.distributed.DistBackendError: NCCL error in: /x/ProcessGroupNCCL.cpp:3353, internal error
[rank238]: ncclInternalError: Internal check failed.
[rank238]: Last error:
[rank238]: Error : no algorithm/protocol available for function AllGather with datatype ncclInt8.
"""),
    "THUDM/slime#1314": (CRASH, "just in time", """
(SGLangEngine pid=23902) [2026-01-04 01:42:55 TP1] Scheduler hit an exception: Traceback (most recent call last):
(SGLangEngine pid=23902)   File "/x/flashinfer/jit/cpp_ext.py", line 299, in run_ninja
(SGLangEngine pid=23902) subprocess.CalledProcessError: Command '['ninja', '-v']' returned non-zero exit status 1.
(SGLangEngine pid=23902) RuntimeError: Ninja build failed. Ninja output:
"""),
    "flashinfer-ai/flashinfer#4410": (REFUSED, "headers are missing", """
RuntimeError: Ninja build failed. Ninja output:
cutlass/util/reference/device/tensor_fill.h:59:10: fatal error: curand_kernel.h: No such file or directory
"""),
    "SG#8513": (REFUSED, "another backend", """
triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 147456, Limit: 101376

[2025-07-29 15:06:51] Received sigquit from a child process. It usually means the child failed.
"""),
    "SG#7249": (REFUSED, "another backend", """
[2025-06-16 10:00:00] Scheduler hit an exception: Traceback (most recent call last):
RuntimeError: RMSNorm failed with error code no kernel image is available for execution on the device
"""),
    "SG#4410": (REFUSED, "architecture", """
ValueError: The checkpoint has model type `gemma3` but Transformers does not recognize this architecture.
"""),
    "SG#2356": (REFUSED, "architecture", """
[2024-12-05 11:18:19 TP0] Scheduler hit an exception: Traceback (most recent call last):
ValueError: Model architectures ['Qwen2ForCausalLM'] are not supported for now. Supported: []
"""),
    "SG#15235": (CRASH, "killed from outside", """
[12-16 14:27:08] Rank 0 scheduler is dead. Please check if there are relevant logs.
[12-16 14:27:10] Exit code: -9
"""),
    "SG#3623": (CRASH, "403", """
[2025-02-17 11:56:43] Initialization failed. warmup error: Traceback (most recent call last):
  File "/x/sglang/srt/entrypoints/http_server.py", line 548, in _wait_and_warmup
    assert res.status_code == 200, f"{res=}, {res.text=}"
AssertionError: res=<Response [403]>, res.text='<html>'
"""),
    "wandb/openui#226": (DIRTY, "port", """
INFO (uvicorn.error):  Application startup complete.
ERROR (uvicorn.error):  [Errno 98] error while attempting to bind on address: address already in use
"""),
    "huggingface/text-generation-inference#1156": (DIRTY, "port", """
RuntimeError: The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).
"""),
    "guqiong96/Lsglang#7": (OOM, "while loading weights", """
[2026-04-16 01:01:30 TP1] Load weight begin. avail mem=46.80 GB
[2026-04-16 01:02:09 TP1] Failed to initialize lk_moe: CUDA out of memory. Tried to allocate 24.00 MiB. GPU 1
"""),
    "SG#10090": (CRASH, "Sizes of tensors", """
[2025-09-05 10:00:01 TP0] Decode batch, #running-req: 3, #token: 656, accept len: 2.92, cuda graph: True
[2025-09-05 10:00:08 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/x/sglang/srt/speculative/eagle_utils.py", line 210, in merge_batch
    self.hidden_states = torch.cat(
RuntimeError: Sizes of tensors must match except in dimension 1. Expected size 3 but got size 2 for tensor number 1
[2025-09-05 10:00:09] Received sigquit from a child process. It usually means the child failed.
"""),
    "SG#29516": (CRASH, "size of tensor a (96)", """
[2026-07-01 10:00:01 TP0] Decode batch, #running-req: 3, #token: 656, accept len: 2.92, cuda graph: True
[2026-07-01 18:00:08 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/x/sglang/srt/model_executor/cuda_graph_runner.py", line 10, in fill_from
RuntimeError: The size of tensor a (96) must match the size of tensor b (90) at non-singleton dimension 1
"""),
    "SG#1691": (HANG, "waited for each other", """
[rank6]:[F1019 01:14:03.35 ProcessGroupNCCL.cpp:1224] [PG 3 Rank 6] ProcessGroupNCCL's watchdog got stuck for 600 \
seconds without making progress in monitoring enqueued collectives. This typically indicates a NCCL/CUDA API hang
Fatal Python error: Aborted
"""),
    "SG#5883": (HANG, "waited for each other", """
[2025-04-29 00:00:00 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=16.66 GB
[2025-04-29 00:30:00 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/x/sglang/srt/managers/scheduler.py", line 2685, in run_scheduler_process
Exception: Capture cuda graph failed: [/x/gloo/transport/tcp/unbound_buffer.cc:133] Timed out waiting 1800000ms \
for send operation to complete
Possible solutions:
1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)
"""),
    "bytedance/HLLM#20": (HANG, "waited for each other", """
torch.distributed.DistBackendError: [3] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via \
c10d key-value store by key '0', but store->get('0') got error: Socket Timeout
[2026-01-01 00:00:09] Received sigquit from a child process. It usually means the child failed.
"""),
    "sgl-project/mini-sglang#146": (REFUSED, "attention_backend", """
[2026-01-01 00:00:08 TP0] Scheduler hit an exception: Traceback (most recent call last):
RuntimeError: Error in function 'TllmGenFmhaRunner' at fmhaRunner.cuh:30: Unsupported architecture
"""),
    "AUTOMATIC1111/stable-diffusion-webui#15020": (OOM, "GPU ran out", """
torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 114.00 MiB (GPU 0; 2.00 GiB total
"""),
}  # fmt: skip


@pytest.mark.parametrize("where", REPORTS)
def test_reported_failures_get_the_class_that_they_deserve(where: str) -> None:
    kind, said, log = REPORTS[where]
    found = diagnose_log(log, 137)
    assert found is not None
    assert found.kind is kind
    assert said in found.message


WARNINGS = """\
[2026-01-01 00:00:00 TP0] Setup Custom allreduce failed with CUDART error: peer access is not supported between
[2026-01-01 00:00:00 TP0] Custom allreduce is disabled because it's not supported on more than two PCIe-only GPUs.
[2026-01-01 00:00:00] DeepSeek MTP does not require setting speculative_draft_model_path.
[2026-01-01 00:00:00] No chat template found, defaulting to 'string' content format
[2026-01-01 00:00:00] awq quantization is not fully optimized yet. The speed can be slower than
[2026-01-01 00:00:00] Port 30001 is already in use, trying port 30002
[2026-01-01 00:00:00 TP0] KV pool holds 9 tokens. Lower --context-length, raise --mem-fraction-static, or free
[2026-01-01 00:00:00] speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 when topk == 1
[2026-01-01 00:00:00] Scheduler watchdog timeout (self.watchdog_timeout=20, self.soft=True)
[W101 00:00:00.1 NNPACK.cpp:62] Could not initialize NNPACK! Reason: Unsupported hardware.
UserWarning: Can't initialize NVML
UserWarning: CUDA initialization: Found no NVIDIA driver on your system.
vm:1:1 [0] NCCL INFO NET/Plugin: libnccl-net.so: cannot open shared object file: No such file or directory
[http_server] Error: The input is longer than the model's context length
2. if it is an OOM problem, set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)
"""


@pytest.mark.parametrize("exit_code", [None, 1, 137])
def test_warnings_that_many_servers_live_with_are_no_failure(exit_code: int | None) -> None:
    assert diagnose_log(WARNINGS, exit_code) is None
