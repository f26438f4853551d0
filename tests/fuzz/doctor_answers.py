"""Whatever a host tells `doctor` of itself, its GPUs and its models: every check that reads it."""

from __future__ import annotations

from collections.abc import Callable

from launchers import looking
from launchers.gpus import GpuLook, GpuReading
from launchers.host import HostLauncher, HostSettings
from sweeper.doctor.examination import Report, report_of
from sweeper.doctor.finding import Finding, Place
from sweeper.doctor.table import CHECKS
from sweeper.nights.health import parse_health
from tests.doctor.asking import context
from tests.fakes import EPOCH, FakeClock
from tests.fuzz.reply_shell import ReplyShell

READ = (
    ("look", "tools", "state_dir", "lock", "servers", "limits", "memory", "processors"),
    ("cards", "persistence", "gpu_policy", "mig", "gpu_errors", "gpu_heat", "topology"),
    ("models", "weights", "gpu_fit", "page_cache"),
)
LOOK = (
    b"look\nstate readonly\nplace /home/x\ndisk 100 50\nlock held pid 7\nlimit Max open files  1024  1024 files\n"
    b"shm 65536 1\ncpus 0-7\ncpuset 0,2-3\nload 1.50 1 1\nmemory MemTotal:  24684092 kB\nceiling 8589934592\n"
    b"server 10 1 - pid 10 of alice: python -m sglang.launch_server --port 30000\nmissing flock\ninodes 0"
)
CARDS = (
    b"cards\npolicy 0, 580.95, Enabled, 700.00 W, 1980 MHz, 3201 MHz, Enabled, Disabled, Default\ncode policy 0\n"
    b"sample 0, GPU-0, 4, 0, 345, 1980, 3201, 37, 85.12, 700.00, 0x41\ncode sample 0\nremapped GPU-0, Yes, No\n"
    b"code remapped 0\ntopology GPU0\t X \tSYS\ntopology GPU1\tSYS\t X\npeers GPU0 X NS\npeers GPU1 NS X"
)
MODELS = (
    b"models\n0 kind folder\n0 file 5000 a.safetensors\n0 shard b.safetensors\n0 total 900000000\n0 disk nfs4\n"
    b"1 kind file\n1 file 12 m.gguf\n1 magic GGUF\n0 hidden x.bin\n0 dangling y.bin"
)
SEEDS = (LOOK, CARDS, MODELS)


def doctor_parser() -> Callable[[bytes], object]:
    """The checks that read the kind of answer that the first line names, each with what it then says."""

    def feed(content: bytes) -> Report:
        launcher = HostLauncher(ReplyShell(content), HostSettings("gpu", "/state"), FakeClock())
        kind = content.partition(b"\n")[0].decode("utf-8", "replace")
        names = next((names for word, *names in READ if word == kind), [])
        look = looking.look_at_host(launcher) if kind == "look" else looking.Told()
        cards = looking.look_at_cards(launcher, {}) if kind == "cards" else looking.Told()
        models = looking.look_at_models(launcher, ("/m", "/d")) if kind == "models" else ()
        ctx = context(
            "engine.flags.tp_size=2",
            look=look,
            cards=cards,
            weights=dict(zip(("/m", "/d"), models, strict=False)),
            model=("/m", ""),
            health=parse_health(content.decode("utf-8", "replace")),
            gpus=GpuLook(GpuReading(()), {}),
            way=None,
        )
        said = [(check.name, each) for check in CHECKS if check.name in names for each in check.look(ctx)]
        found = [
            Finding(place=Place.HOST, host="gpu", check=name, level=each.level, reason=each.reason, fix=each.fix)
            for name, each in said
        ]
        return report_of(found, "fuzz", EPOCH, 1.0)

    return feed
