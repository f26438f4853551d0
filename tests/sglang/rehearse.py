"""The Kimi night as a rehearsal: `make rehearse`, about three minutes.

A real sshd on the loopback address, a stand-in SGLang behind it with the published night's speeds planted in it (a
process tree, a log, endpoints, 8 GPUs that nvidia-smi shows), and the packaged preset, sweeping over SSH. It shows
what a night looks like and proves the plumbing; its speeds are planted and say nothing about SGLang, Kimi or GPUs.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from sweeper.errors import FailureKind
from sweeper.records import Purpose, TrialRecord
from sweeper.storing.storage import StudyStore
from tests.gpu_host.host import GpuHost, make_host
from tests.sglang.night import overrides, sshd_path
from tests.ssh.sshd import Sshd

NIGHT, WRONG = "kimi_rehearsal", "wrong_flag"
TIME_SCALE = "0.01"  # of the start-up alone; tokens come at the planted rates


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("rehearsal"), help="made anew")
    parser.add_argument("--trials", type=int, default=9)
    arguments = parser.parse_args()
    folder = arguments.folder.absolute()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    began = time.monotonic()
    host = make_host(folder / "gpu-host", time_scale=TIME_SCALE, wait_scale=TIME_SCALE)
    with Sshd(folder / "sshd", env={"PATH": sshd_path(host)}) as sshd:
        common = overrides(host, sshd, folder)
        say("First the flag that cost days: EAGLE with an EAGLE-3 draft whose config.json does not tell.")
        wrong_flag(common, host)
        say("Then the night itself; but first what a run would not like.")
        specsweep("doctor", *common)
        sweep([*common, f"study.name={NIGHT}", f"budget.trials={arguments.trials}"])
        specsweep("report", *common, f"study.name={NIGHT}")
    say(f"That took {time.monotonic() - began:.0f} s. The speeds were planted: they say nothing about real GPUs.")
    return check(folder)


def wrong_flag(common: list[str], host: GpuHost) -> None:
    """A sweep of one configuration: the server comes up, serves, and never keeps a draft token."""
    draft = Path(host.model("unlabelled-eagle3"))
    shutil.copytree(host.model("kimi-k2.5-eagle3"), draft)
    told = json.loads(draft.joinpath("config.json").read_text())
    del told["draft_vocab_size"]  # with the architecture's name, what tells an EAGLE-3 draft
    draft.joinpath("config.json").write_text(json.dumps({**told, "architectures": ["LlamaForCausalLM"]}))
    host.set_fault("accept_one", when={"--speculative-draft-model-path": str(draft)})
    space = [
        "space.speculative_algorithm=EAGLE",
        f"space.speculative_draft_model_path={draft}",
        "space.speculative_num_steps=3",
        "space.speculative_eagle_topk=1",
        "space.speculative_num_draft_tokens=4",
        "space.disable_cuda_graph=choice(false)",
        "~space.env",
        "~space.when",
    ]
    kept = [word for word in common if not word.startswith("space.speculative_draft")]
    sweep(
        [
            *kept,
            *space,
            f"study.name={WRONG}",
            "budget.trials=2",
            "budget.confirm_launches=0",
            "workload.max_tokens=64",
        ]
    )
    host.clear_faults()


def sweep(words: list[str]) -> None:
    """`specsweep run`, seen as it happens. Raises SystemExit when it does not end well."""
    specsweep("run", "--plain", *words)


def specsweep(*words: str) -> None:
    code = subprocess.run([sys.executable, "-m", "sweeper", *words], check=False, env=os.environ).returncode
    if code != 0:
        raise SystemExit(f"specsweep {words[0]} ended with code {code}")


def check(folder: Path) -> int:
    """What a rehearsal must show, said line by line; 1 when something is missing."""
    night, wrong = (trials_of(folder, name) for name in (NIGHT, WRONG))
    failures = [trial.failure.kind for trial in wrong if trial.failure is not None]
    launches = [launch for trial in (*night, *wrong) for launch in trial.launches]
    confirmed = [launch for launch in launches if launch.purpose is Purpose.CONFIRM]
    others = [trial for trial in night if not trial.is_baseline and trial.measured]
    gave_up = all(launch.estimated for trial in others for launch in trial.measured)
    verdict = StudyStore.open(f"sqlite:///{folder}/optuna.db", NIGHT, str(folder), create=False).fact("verdict")
    seen = {
        "the wrong flag is silent_bypass, not a score": failures == [FailureKind.SILENT_BYPASS],
        "no gain over the baseline": "no gain over the baseline"
        in str(verdict["text"] if verdict else "").lower(),
        "what came close to the baseline was measured afresh": len(confirmed) >= 6 or gave_up,
        "every measured launch is proved": all(launch.proof.complete for launch in launches if launch.ok),
    }
    for what, is_so in seen.items():
        say(f"{'yes' if is_so else 'NO '}  {what}")
    return 0 if all(seen.values()) else 1


def trials_of(folder: Path, name: str) -> tuple[TrialRecord, ...]:
    return StudyStore.open(f"sqlite:///{folder}/optuna.db", name, str(folder), create=False).trials()


def say(text: str) -> None:
    print(f"\n== {text}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
