"""Single lines of a dying SGLang's log, each with the kind of failure that it alone shows."""

from __future__ import annotations

import pytest

from sweeper.engines.sglang.diagnosis import diagnose_log
from sweeper.errors import FailureKind

OOM, REFUSED, DIRTY = FailureKind.OUT_OF_MEMORY, FailureKind.UNSUPPORTED, FailureKind.HOST_DIRTY
CRASH, HANG = FailureKind.SERVER_CRASH, FailureKind.SERVER_HANG

# Wordings of the sources, of torch, NCCL and the kernel, one line each.
WORDINGS = [
    (OOM, "RuntimeError: CUDA error: out of memory"),
    (OOM, "RuntimeError: Decode out of memory. Try to lower your batch size."),
    (OOM, "RuntimeError: Prefill out of memory. Try to lower your batch size."),
    (OOM, "vm:1:2 [3] init.cc:99 NCCL WARN Cuda failure 2 'out of memory'"),
    (OOM, "Last error: Cuda failure 'out of memory'"),
    (OOM, "RuntimeError: [torch_memory_saver.cpp] CUresult error  result=2 func=cu_mem_create"),
    (OOM, "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    (OOM, "[1234.5] Out of memory: Killed process 603 (sglang::schedul) total-vm:1kB"),
    (OOM, "RuntimeError: [enforce fail at alloc_cpu.cpp:75] . DefaultCPUAllocator: can't allocate memory"),
    (REFUSED, "launch_server.py: error: ambiguous option: --cuda-graph could match --cuda-graph-bs-decode"),
    (REFUSED, "launch_server.py: error: argument --tp-size/--tp: invalid int value: 'x'"),
    (REFUSED, "sglang serve: error: argument --speculative-algorithm: invalid choice: 'X' (choose from EAGLE)"),
    (REFUSED, "ValueError: EAGLE is not supported in decode attention backend cutlass_mla"),
    (REFUSED, "ValueError: Currently FlashMLA only supports topk=1 for speculative decoding"),
    (REFUSED, "ValueError: Spec v2 currently only supports topk = 1 for speculative decoding."),
    (REFUSED, "ValueError: trtllm_mla backend can only be used with MLA models."),
    (REFUSED, "RuntimeError: selected index k out of range"),
    (REFUSED, "RuntimeError: Sizes of tensors must match except in dimension 1. Expected size 6 but got size 8"),
    (REFUSED, "RuntimeError: The size of tensor a (8640) must match the size of tensor b (5760)"),
    (REFUSED, "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x7168 and 21504x7168)"),
    (REFUSED, "ValueError: Cannot find the config file for awq"),
    (REFUSED, "OSError: /models/x is not a local folder and is not a valid model identifier listed on HF"),
    (REFUSED, "huggingface_hub.errors.GatedRepoError: 401 Client Error. (Request ID: Root=1-6)"),
    (REFUSED, "safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge"),
    (REFUSED, "ModuleNotFoundError: No module named 'sgl_kernel'"),
    (REFUSED, "RuntimeError: CUDA error: invalid device ordinal"),
    (REFUSED, "torch.distributed.DistBackendError: NCCL error: ncclInvalidUsage: Duplicate GPU detected"),
    (DIRTY, "zmq.error.ZMQError: Address already in use (addr='tcp://127.0.0.1:30233')"),
    (
        DIRTY,
        "ValueError: dist_init_port at 30233 is not available in 30 seconds. It is used by a process already.",
    ),
    (DIRTY, "OSError: [Errno 28] No space left on device: '/root/.cache/flashinfer'"),
    (DIRTY, "OSError: [Errno 122] Disk quota exceeded"),
    (DIRTY, "OSError: [Errno 116] Stale file handle: '/models/x'"),
    (DIRTY, "OSError: [Errno 5] Input/output error"),
    (DIRTY, "safetensors_rust.SafetensorError: Error while reading: Input/output error (os error 5)"),
    (DIRTY, "OSError: [Errno 30] Read-only file system: '/root/.cache/flashinfer'"),
    (DIRTY, "PermissionError: [Errno 13] Permission denied: '/root/.triton/cache/abc'"),
    (DIRTY, "PermissionError: [Errno 13] Permission denied: '/root/.cache/flashinfer/0.6.1/90a'"),
    (DIRTY, "PermissionError: [Errno 13] Permission denied: '/root/.cache'"),
    (REFUSED, "PermissionError: [Errno 13] Permission denied: '/models/triton-7b/config.json'"),
    (
        REFUSED,
        "PermissionError: [Errno 13] Permission denied: '/root/.cache/huggingface/hub/models--x/config.json'",
    ),
    (REFUSED, "FileNotFoundError: [Errno 2] No such file or directory: '/models/x/model.safetensors'"),
    (CRASH, "FileNotFoundError: [Errno 2] No such file or directory: '/root/.cache/flashinfer/x.lock'"),
    (CRASH, "FileNotFoundError: [Errno 2] No such file or directory: '/root/.triton/cache/abc/x.json'"),
    (DIRTY, "OSError: [Errno 24] Too many open files"),
    (DIRTY, "torch.AcceleratorError: CUDA error: CUDA-capable device(s) is/are busy or unavailable"),
    (DIRTY, "NVRM: Xid (PCI:0000:41:00): 79, pid=1, GPU has fallen off the bus."),
    (CRASH, "NVRM: Xid (PCI:0000:41:00): 43, pid=1234, name=sglang::schedul, Ch 00000008"),
    (CRASH, "ValueError: token_to_kv_pool_allocator memory leak detected! available_size=1"),
    (CRASH, "torch.distributed.DistBackendError: NCCL error in: x.cpp:1, unhandled cuda error"),
    (CRASH, "Subprocess detokenizer (pid=5) crashed with exit code -11. Triggering SIGQUIT for cleanup..."),
    (HANG, "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms"),
    (HANG, "torch.distributed.DistStoreError: Socket Timeout"),
    (HANG, "Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)"),
]


@pytest.mark.parametrize(("kind", "line"), WORDINGS)
def test_every_wording_has_its_class(kind: FailureKind, line: str) -> None:
    died = "[2026-11-29 18:27:03] Received sigquit from a child process."
    found = diagnose_log(f"{line}\n{died}", 137)
    assert found is not None
    assert found.kind is kind
    assert any(" ".join(line.split())[:60] in shown for shown in found.evidence)


@pytest.mark.parametrize(
    "line",
    [
        "[Errno 99] error while attempting to bind on address ('10.2.2.1', 58): cannot assign requested address",
        "zmq.error.ZMQError: Cannot assign requested address (addr='tcp://10.2.2.1:30233')",
    ],
)
def test_an_address_that_is_not_this_hosts_is_named_by_its_setting(line: str) -> None:
    found = diagnose_log(line, 1)
    assert found is not None
    assert (found.kind, "host.address" in found.message) == (DIRTY, True)
