"""What failures of a host, its memory and its GPUs look like in a Python server's log, and what to do about each.

Wordings come from the sources of torch, NCCL, argparse, uvicorn, zmq and SGLang, from captures of real servers and
from public bug reports. They are as general as they can be without matching what healthy logs say.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sweeper.errors import FailureKind


@dataclass(frozen=True)
class Sign:
    """Lines that match `pattern` show a failure of this kind.

    `fatal_only`: such a line counts only in the log of a server that has died; some servers survive it.
    """

    kind: FailureKind
    message: str
    pattern: re.Pattern[str]
    fatal_only: bool


RAISED = r"^(?:\w+\.)*"
"""Before an exception's name: its own line, as opposed to text that mentions it."""


def sign(kind: FailureKind, message: str, *patterns: str) -> Sign:
    """A sign that counts when the server has died."""
    return Sign(kind, message, re.compile("|".join(patterns)), fatal_only=True)


def certain(kind: FailureKind, message: str, *patterns: str) -> Sign:
    """A sign that counts by itself: no server lives on after such a line."""
    return Sign(kind, message, re.compile("|".join(patterns)), fatal_only=False)


def raised(pattern: str) -> str:
    """`pattern` in the message of an exception: words that warnings use too."""
    return rf"{RAISED}\w*(?:Error|Exception): .{{0,1000}}?(?:{pattern})"


SHAPES = (
    r"Sizes of tensors must match|[Tt]he size of tensor a \(\d+\) must match|shapes cannot be multiplied"
    r"|size mismatch|shape mismatch|expanded size of the tensor|is invalid for input of size"
    r"|must have same reduction dim|exceeds dimension size|Attempted to load weight"
)
"""What torch, and the loaders of weights, say of tensors that do not fit together."""

KERNEL_CACHE = (
    r"[^\n]{0,600}/(?:\.cache(?:'|/(?:flashinfer|triton|torch|tvm|deep_gemm|sglang|vllm|outlines|nvidia)\b)"
    r"|\.triton\b|\.deep_gemm\b|\.nv/|torchinductor_|ComputeCache|[\w.-]{1,60}/(?:triton|inductor)_?cache\b)"
)
"""In an exception's message: a path where compiled kernels are kept, as opposed to a model's file."""

GPU_MEMORY = certain(
    FailureKind.OUT_OF_MEMORY,
    "the GPU ran out of memory",
    r"\b(?:CUDA|HIP|NPU|XPU) out of memory",
    r"\[(?:CUDA|HIP)\]: out of memory",
    r"CUDA error: out of memory|cudaErrorMemoryAllocation|hipErrorOutOfMemory|CUDA_ERROR_OUT_OF_MEMORY",
    r"[Cc]uda failure (?:\d+ )?'out of memory'",
    rf"{RAISED}OutOfMemoryError\b",
    r"CUBLAS_STATUS_ALLOC_FAILED|CUresult error +result=2\b",
)

HOST_MEMORY = sign(
    FailureKind.OUT_OF_MEMORY,
    "the host ran out of memory (RAM): load with fewer threads, or with a smaller hierarchical cache",
    r"Out of memory: Killed process|oom[-_]kill:|[Mm]emory cgroup out of memory|OOMKilled",
    rf"std::bad_alloc|Cannot allocate memory|DefaultCPUAllocator: |{RAISED}MemoryError\b|Errno 12\b",
)

HOST: Sequence[Sign] = (
    certain(
        FailureKind.HOST_DIRTY,
        "a port that the server needs is taken: a left-over server or another program holds it",
        r"[Aa]ddress (?:is )?already in use|EADDRINUSE|\bAddress in use\b",
        r"Port is already in use\. |bootstrap_port \d+ is already in use",
        r"is used by a process already| at \d+ is not available in \d+ seconds",
    ),
    certain(
        FailureKind.HOST_DIRTY,
        "the server cannot listen there: host.address is not an address of this host",
        r"attempting to bind [^\n]*?[Cc]annot assign requested address",
        r"ZMQError: Cannot assign requested address|failed to bind [^\n]*?errno: 99\b",
    ),
    sign(
        FailureKind.HOST_DIRTY,
        "the host's file system failed (a stale mount, a broken disk, or read-only): see its mounts and dmesg",
        raised(r"Stale file handle|Input/output error|Remote I/O error|Read-only file system"),
        raised(r"Errno (?:5|30|116|121)\]|os error (?:5|30|116|121)\)"),
    ),
    sign(
        FailureKind.HOST_DIRTY,
        "a folder of the host where compiled kernels are kept cannot be used: give the server's user access to it",
        rf"{RAISED}PermissionError: {KERNEL_CACHE}",
    ),
    sign(
        FailureKind.HOST_DIRTY,
        "GPU memory is held by something else: the GPUs do not have the same memory free",
        raised(r"memory capacity is unbalanced"),
    ),
    sign(
        FailureKind.HOST_DIRTY,
        "/dev/shm of the host is full or too small: free it, or give the container more (--shm-size)",
        r"shared memory segment .*nccl|failed to extend /dev/shm|unable to open shared memory object",
        r"(?:No space left|[Bb]us error|Errno 28).*(?:/dev/shm|shared memory|/psm_|/torch_)",
        r"out of shared memory\. .*(?:shm|limit)|insufficient shared memory",
        r"unable to (?:write to|mmap|allocate|resize) .*(?:/dev/shm|/torch_|shared memory)",
    ),
    sign(
        FailureKind.HOST_DIRTY,
        "a disk of the host is full, or a quota used up: free space",
        r"No space left on device|Disk quota exceeded|Errno 28\b|Errno 122\b",
    ),
    sign(
        FailureKind.HOST_DIRTY,
        "a limit of the host was reached: raise `ulimit -n` (files) or `ulimit -u` (processes)",
        r"Too many open files|Errno 24\b|can't start new thread|pthread_create failed",
        r"System unable to allocate necessary resources for OMP thread",
    ),
    sign(
        FailureKind.HOST_DIRTY,
        "a GPU or its driver is not usable: see nvidia-smi and dmesg",
        r"CUDA-capable device\(s\) is/are busy|no CUDA-capable device|system not yet initialized",
        r"driver version is insufficient|[Dd]river/library version mismatch|unsupported display driver",
        # gpustack#1254: Error 804, in words.
        r"forward compatibility was attempted on non supported",
        raised(r"Found no NVIDIA driver|No CUDA GPUs are available|libcuda\.so\.\d: cannot open"),
        r"uncorrectable (?:ECC|NVLink)|GPU is lost|fallen off the bus|Unable to determine the device handle",
        r"\bXid\b[^\n]*?: (?:48|63|64|74|79|94|95|119|120)\b",
        rf"{RAISED}NVMLError\w*\b",
    ),
)

COMMAND_LINE: Sequence[Sign] = (
    certain(
        FailureKind.UNSUPPORTED,
        "the server refused its command line",
        # argparse; not a compiler's "error: argument of type ..."
        r"^[\w./ -]{0,100}: error: (?:unrecognized arguments|ambiguous option|argument -|the following arguments)",
        r"^[\w./ -]{0,100}: error: argument \w+: invalid",
    ),
)

KERNELS: Sequence[Sign] = (
    sign(
        FailureKind.UNSUPPORTED,
        "the attention backend has no kernel for this GPU: choose another attention_backend",
        r"[Ff]mha\w*\.\w{1,5}:\d+: Unsupported architecture",
    ),
    sign(
        FailureKind.UNSUPPORTED,
        "the GPU cannot run a kernel that this configuration needs: choose another backend",
        r"no kernel image is available|cudaErrorNoKernelImageForDevice|invalid device function",
        r"device kernel image is invalid",
        r"unsupported toolchain|OutOfResources|out of resource: |PTXASError|PTX codegen error",
        r"(?:nvcc|ptxas) (?:fatal|error) *:|Unsupported gpu architecture",
        rf"{RAISED}CompilationError\b",
        raised(r"requires? .{0,30}(?:SM ?>?=?\d|sm_?\d|[Cc]ompute [Cc]apability|Hopper|Blackwell)"),
        raised(r"only supports? .{0,40}(?:Ampere|Hopper|Blackwell|Turing|Volta)\b"),
        raised(
            r"(?:only|not) (?:be )?supported on .{0,60}(?:SM ?\d|sm_?\d|Hopper|Blackwell|Ampere|GPU|CUDA|device)"
        ),
    ),
    sign(
        FailureKind.UNSUPPORTED,
        "a kernel cannot be built on this host: its compiler or headers are missing",
        r"[Cc]ould not find nvcc|nvcc: (?:command )?not found|No such file or directory: '[^']*(?:nvcc|ninja)'",
        raised(r"CUDA_HOME|[Nn]inja is required|Failed to find C compiler"),
        r"fatal error: \S+\.(?:h|hpp|cuh): No such file",
    ),
)

GPU_FAULTS: Sequence[Sign] = (
    certain(
        FailureKind.SERVER_CRASH,
        "the model's probabilities were not numbers (NaN, inf): a fault of a kernel, a quantization or the draft",
        # torch.multinomial, on the CPU and as an assertion on the GPU (TensorCompare.cu); sglang#35324.
        r"probability tensor contains either `?'?(?:inf|nan)|\bNaN in the logits\b",
    ),
    sign(
        FailureKind.SERVER_CRASH,
        "a kernel could not be compiled or loaded just in time: a library of the host is missing or does not"
        " fit, or its kernel cache is broken",
        r"[Nn]inja build failed|ninja: build stopped|Command '\['ninja'|JIT session error",
        rf"{RAISED}RuntimeError: Unknown function \w*cutlass",
        rf"{RAISED}(?:FileNotFound|FileExists|NotADirectory)Error: {KERNEL_CACHE}",
    ),
    certain(
        FailureKind.SERVER_CRASH,
        "a GPU kernel read or wrote outside its memory",
        r"illegal memory access|cudaErrorIllegalAddress|misaligned address|unspecified launch failure",
        r"device-side assert triggered|block: \[\d+,\d+,\d+\], thread: .* Assertion|Memory access fault by GPU",
        r"illegal instruction was encountered|\bXid\b[^\n]*?: \d+\b",
    ),
)

NETWORK = sign(
    FailureKind.HOST_DIRTY,
    "the server's processes or nodes cannot reach each other: see the network between them, GLOO_SOCKET_IFNAME and"
    " NCCL_SOCKET_IFNAME",
    # gloo/transport/tcp/pair.cc, ProcessGroupGloo.cpp, NCCL's bootstrap.cc; sglang#3226, pytorch#15592.
    r"connectFullMesh failed|connect \[[^\]\s]{1,80}\]:\d+: (?:Connection (?:refused|timed out)|No route to host)",
    r"client socket has failed to connect",
    r"unsupported gloo device|Unable to find (?:interface|address) for|[Nn]o socket interface found",
)
"""A rank that dies of something leaves the others without an answer, too: causes stand before it."""

RDMA = sign(
    FailureKind.HOST_DIRTY,
    "NVSHMEM could not be set up: see the host's RDMA devices (/dev/infiniband) and that the server may use them",
    # nvshmem/src/host/init/init.cu, transport.cpp; sglang#6017, sglang#7888.
    r"nvshmem setup connections failed|nvshmem initialization failed|NVSHMEM API called before NVSHMEM init",
)

NATIVE_FAULT = certain(
    FailureKind.SERVER_CRASH,
    "native code of the server crashed (a segmentation fault or its like)",
    r"Fatal Python error: (?:Segmentation fault|Bus error|Illegal instruction|Floating[ -]point)",
    r"Segfault encountered",
)
"""Without a cause: what stands above it tells more."""

NCCL_REFUSES = sign(
    FailureKind.UNSUPPORTED,
    "NCCL cannot do what its variables ask for (NCCL_ALGO, NCCL_PROTO, ...) on these GPUs",
    r"no algorithm/protocol available|ncclInvalidUsage|ncclInvalidArgument|Duplicate GPU detected",
    r"NCCL error: invalid (?:usage|argument)",
)

BLOCKS = sign(
    FailureKind.UNSUPPORTED,
    "the model's quantized weights cannot be divided over so many GPUs: its blocks must stay whole",
    # fp8.py of SGLang and of vLLM; sglang#4791, sglang#10641, vllm#54178.
    raised(r"not divisible by .{0,60}(?:group|block|tile)"),
)

CALLS: Sequence[Sign] = (
    sign(
        FailureKind.UNSUPPORTED,
        "an operation of this configuration cannot be captured in a CUDA graph: switch CUDA graphs off, or what it"
        " belongs to",
        # CUDA's error 900; what follows a failure in mid-capture has other words. sglang#32105.
        r"not permitted when stream is capturing|cudaErrorStreamCaptureUnsupported",
    ),
    sign(
        FailureKind.SERVER_CRASH,
        "the GPUs could not talk to each other (NCCL failed)",
        r"\bnccl(?:UnhandledCuda|System|Internal|Remote)Error\b|NCCL error",
    ),
    sign(
        FailureKind.SERVER_CRASH,
        "a CUDA call failed",
        r"CUDA error: |CUBLAS_STATUS_\w+|CUDNN_STATUS_\w+|cudaError[A-Z]\w+|CUDA driver error",
    ),
)
