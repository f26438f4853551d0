"""The words with which the real server fails: tracebacks, as far as a reader of the log can use them."""

from __future__ import annotations

from typing import NoReturn

RUN_SCHEDULER = (
    ("sglang/srt/managers/scheduler.py", 4325, "run_scheduler_process", "scheduler = Scheduler("),
    ("sglang/srt/managers/scheduler.py", 424, "__init__", "self.init_model_worker()"),
)
LOAD = (*RUN_SCHEDULER, ("sglang/srt/model_executor/model_runner.py", 1430, "load_model", "self.model = load("))
POOL = (
    *RUN_SCHEDULER,
    ("sglang/srt/managers/scheduler.py", 871, "init_model_worker", "self.init_memory_pools()"),
    (
        "sglang/srt/model_executor/model_runner_kv_cache_mixin.py",
        129,
        "_profile_available_bytes",
        "raise ValueError(",
    ),
)
CAPTURE = (
    *RUN_SCHEDULER,
    ("sglang/srt/managers/scheduler.py", 875, "init_model_worker", "self.init_all_cuda_graphs()"),
    ("sglang/srt/model_executor/model_runner.py", 943, "init_cuda_graphs", "self.model_runner.init_cuda_graphs("),
)
SERVING = (
    ("sglang/srt/managers/scheduler.py", 4335, "run_scheduler_process", "scheduler.run_event_loop()"),
    ("sglang/srt/managers/scheduler.py", 1290, "event_loop_overlap", "batch_result = self.run_batch(batch)"),
)
ARGUMENTS = (
    ("sglang/launch_server.py", 67, "<module>", "server_args = prepare_server_args(sys.argv[1:])"),
    ("sglang/srt/server_args.py", 7161, "prepare_server_args", "return ServerArgs.from_cli_args(raw_args)"),
    ("sglang/srt/server_args.py", 2772, "__post_init__", "handle_speculative_decoding(self)"),
)
CUDA_HINT = """
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below \
might be incorrect.
For debugging consider passing CUDA_LAUNCH_BLOCKING=1
Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.
"""
ILLEGAL_ACCESS = (
    "torch.AcceleratorError: CUDA error: an illegal memory access was encountered\n"
    "Search for `cudaErrorIllegalAddress' in https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html"
    f" for more information.{CUDA_HINT}"
)
NCCL = (
    "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:94, "
    "unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.28.9\n"
    "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error. \n"
    "Last error:\nsocketPollConnect: connect to 192.0.2.2<41417> returned Connection refused, exceeded retries"
)
MISSING_KERNEL = (
    "RuntimeError: Unknown function cutlass___call___flashinfernormkernelsrmsnormRMSNormKernel_object_at__"
    "FakeTensorBFloat16div15125121_FakeTensorBFloat165121_FakeTensorBFloat16div15125121___True_FakeStream\n"
)
SOLUTIONS = {
    "old": "Possible solutions:\n"
    "1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)\n"
    "2. set --cuda-graph-max-bs to a smaller value (e.g., 16)\n"
    "3. disable torch compile by not using --enable-torch-compile\n"
    "4. disable CUDA graph by --disable-cuda-graph. (Not recommended. Huge performance loss)\n"
    "Open an issue on GitHub https://github.com/sgl-project/sglang/issues/new/choose \n",
    "new": "Possible solutions:\n"
    "1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)\n"
    "2. set --cuda-graph-max-bs-decode to a smaller value (e.g., 16)\n"
    "3. disable torch compile by not using --enable-torch-compile\n"
    "4. disable CUDA graph by --cuda-graph-backend-decode=disabled. (Not recommended. Huge performance loss)\n"
    "Open an issue on GitHub https://github.com/sgl-project/sglang/issues/new/choose \n",
}


class ServerError(Exception):
    """Something the real server would raise: the frames of its traceback and the text of its last lines."""

    def __init__(self, frames: tuple[tuple[str, int, str, str], ...], cause: str) -> None:
        super().__init__(cause)
        self.frames = frames
        self.cause = cause

    def traceback(self) -> str:
        """As Python prints it."""
        lines = ["Traceback (most recent call last):"]
        for path, line, name, source in self.frames:
            lines += [f'  File "/env/site/{path}", line {line}, in {name}', f"    {source}"]
        return "\n".join([*lines, self.cause, ""])


def out_of_memory(gpu: int, wanted_gib: float, free_gib: float, others: list[tuple[int, float]]) -> str:
    """Torch's message; `others` are the processes that hold memory of the GPU, with GiB."""
    total = 95.59
    held = "".join(f"Process {pid} has {gib:.2f} GiB memory in use. " for pid, gib in others)
    mine = max(0.6, total - free_gib - sum(gib for _, gib in others))
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {wanted_gib:.2f} GiB. GPU {gpu} has a "
        f"total capacity of {total:.2f} GiB of which {free_gib:.2f} GiB is free. {held}Including non-PyTorch "
        f"memory, this process has {mine:.2f} GiB memory in use. Of the allocated memory 72.41 GiB is allocated "
        "by PyTorch, and 212.85 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is "
        "large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See "
        "documentation for Memory Management  "
        "(https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
    )


def refuse(cause: str) -> NoReturn:
    """The arguments are refused while they are resolved."""
    raise ServerError(ARGUMENTS, cause)
