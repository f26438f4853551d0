"""What proves a restart: idle GPUs before and after, a real decode, and a way to the host that may break."""

from __future__ import annotations

from dataclasses import replace

import pytest

from launchers.errors import HostDirty, HostLost
from launchers.gpus import Gpu, GpuReading
from sweeper.engines.llamacpp import LlamaCpp
from sweeper.errors import FailureKind, TrialError
from sweeper.serving.launch_trace import LaunchTrace
from sweeper.serving.server import running_server
from tests.server import fake_llama as fake
from tests.server.fake_launcher import STOPPED, FakeLauncher
from tests.server.fake_llama import FakeLlama
from tests.server.serving import SPEC, failure, rig, serve

pytestmark = pytest.mark.host
GHOST = HostDirty("GPU 3 holds 70000 MiB", ("pid 7: somebody's training",))


def reading(*used_mib: int) -> GpuReading:
    return GpuReading(tuple(Gpu(i, "RTX", f"GPU-{i}", used, 97887) for i, used in enumerate(used_mib)))


def test_a_clean_launch_is_proved_from_end_to_end(launcher: FakeLauncher, trace: LaunchTrace) -> None:
    launcher.gpus = [reading(4, 4), reading(4, 9)]
    serve(launcher, trace)
    proof = trace.proof
    assert proof.complete
    assert (proof.gpu_mib_before, proof.gpu_mib_after) == ((4, 4), (4, 9))
    assert (proof.nonce, proof.model_path) == (fake.NONCE, fake.MODEL)
    assert proof.stop_signals == STOPPED.signals
    assert proof.num_probe_tokens
    assert launcher.calls[0] == "settle", "before anything is started"


def test_a_gpu_that_is_not_idle_is_the_hosts_fault_and_nothing_is_started(
    launcher: FakeLauncher, trace: LaunchTrace
) -> None:
    launcher.gpus = [GHOST]
    error = failure(launcher, trace)
    assert error.kind is FailureKind.HOST_DIRTY
    assert error.evidence == ("pid 7: somebody's training",)
    assert "start" not in launcher.calls


@pytest.mark.parametrize("trouble", [GHOST, HostLost("no answer")])
def test_memory_that_stays_held_after_a_stop_spoils_the_proof_not_the_measurement(
    launcher: FakeLauncher, trace: LaunchTrace, trouble: Exception
) -> None:
    launcher.gpus = [reading(4), trouble]
    serve(launcher, trace)
    assert trace.stop == STOPPED
    assert trace.proof.not_clean_after == str(trouble)
    assert not trace.proof.complete


def test_a_healthy_server_that_never_decodes_is_a_hang(
    launcher: FakeLauncher, trace: LaunchTrace, llama: FakeLlama
) -> None:
    llama.answers["/v1/chat/completions"] = fake.hang
    hasty = replace(rig(launcher), probe_timeout_s=0.3)
    with (
        pytest.raises(TrialError, match="its first generation failed") as caught,
        running_server(SPEC, hasty, trace, lambda _: None),
    ):
        pytest.fail("it never decoded")
    assert caught.value.kind is FailureKind.SERVER_HANG
    assert trace.stop == STOPPED


def test_a_first_generation_that_makes_no_sense_is_no_start(
    launcher: FakeLauncher, trace: LaunchTrace, llama: FakeLlama
) -> None:
    llama.answers["/v1/chat/completions"] = fake.raw(b"<html>welcome</html>")
    assert failure(launcher, trace).kind is FailureKind.BENCHMARK_FAILED


class Doomed(LlamaCpp):
    """An engine whose server may live on although a line of its log says that it is lost."""

    def fatal_sign(self, log: str) -> str:
        return next((line for line in log.splitlines() if "scheduler is dead" in line), "")


def test_a_server_that_lives_on_but_is_lost_is_not_waited_for(launcher: FakeLauncher, trace: LaunchTrace) -> None:
    launcher.log = b"loading model\nRank 3 scheduler is dead\n"
    with pytest.raises(TrialError, match="Rank 3 scheduler is dead") as caught:
        serve(launcher, trace, engine=Doomed())
    assert caught.value.kind is FailureKind.SERVER_CRASH
    assert trace.stop == STOPPED


def test_a_benchmark_that_failed_on_a_lost_server_is_the_servers_failure(
    launcher: FakeLauncher, trace: LaunchTrace
) -> None:
    def benchmark() -> None:
        with running_server(SPEC, rig(launcher, engine=Doomed()), trace, lambda _: None):
            launcher.log = b"Rank 3 scheduler is dead\n"
            trace.log.num_read = 0
            raise TrialError(FailureKind.BENCHMARK_FAILED, "no answer")

    with pytest.raises(TrialError, match="Rank 3 scheduler is dead") as caught:
        benchmark()
    assert caught.value.kind is FailureKind.SERVER_CRASH


@pytest.mark.parametrize(("breaks", "lives", "expected"), [(1, None, True), (0, None, False), (1, 0, False)])
def test_only_a_way_that_broke_to_a_server_that_lives_is_mended(
    launcher: FakeLauncher, trace: LaunchTrace, breaks: int, lives: int | None, expected: bool
) -> None:
    with running_server(SPEC, rig(launcher), trace, lambda _: None) as target:
        launcher.breaks, launcher.lives = breaks, lives
        assert target.mended() is expected
        assert target.mended() is False, "nothing broke since"
        launcher.lives = None
