"""How GPUs reach one another, from matrices in the format of `nvidia-smi topo`.

The machines are ours, on paper; the format is that of outputs which people published. Tabs, a heading that newer
drivers underline, " X " with blanks in `-m`, a blank before each row in `-p2p`; columns of affinity by driver.
DGX-1 with SOC and mlx5_0 rows (NVIDIA's Caffe guide), DGX-2 with 16 GPUs (NVIDIA/nccl-tests#78), DGX A100 with
rows and a legend of network cards (NVIDIA/nccl#1505), HGX with NV18 (vllm-project/vllm#29944), five cards on one
processor (aikitoria/open-gpu-kernel-modules#13), RTX 5090 with GNS and the state DR (noonghunna/club-3090#1229).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from sweeper.doctor.finding import Level
from sweeper.doctor.links import links
from tests.doctor.asking import gpu_context, said, text, told, worst

pytestmark = pytest.mark.compose

LEGEND = """
Legend:

  X    = Self
  SYS  = crosses PCIe and the link between NUMA nodes
  NODE = crosses PCIe and the link between host bridges of one NUMA node
  PHB  = crosses PCIe and a host bridge
  PXB  = crosses several PCIe bridges
  PIX  = crosses one PCIe bridge
  NV#  = crosses # NVLinks

NIC Legend:

  NIC0: mlx5_0
  NIC1: mlx5_1
"""
PEER_LEGEND = """
Legend:

  X    = Self
  OK   = Status Ok
  CNS  = Chipset not supported
  NS   = Not supported
  DR   = Disabled by regkey
  U    = Unknown
"""
UNDERLINED = ("\x1b[4m", "\x1b[0m")
Link = Callable[[int, int], str]


def matrix(
    gpus: Sequence[int],
    link: Link,
    *,
    others: Sequence[str] = (),
    behind: Sequence[str] = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID"),
    codes: tuple[str, str] = UNDERLINED,
) -> str:
    """What `topo -m` prints for GPUs between which `link` says what stands; `others`: network cards."""
    heading = "\t".join(["", *(f"GPU{index}" for index in gpus), *others, *behind])
    lines = [f"{codes[0]}{heading}{codes[1]}"]
    affinity = ("0-31,64-95", "0", "\tN/A")[: len(behind)]
    for row in gpus:
        cells = [" X " if row == column else link(row, column) for column in gpus]
        lines.append("\t".join([f"GPU{row}", *cells, *("NODE" for _ in others), *affinity]))
    for name in others:
        cells = [*("NODE" for _ in gpus), *(" X " if name == other else "PIX" for other in others)]
        lines.append("\t".join([name, *cells, *("" for _ in behind)]))
    return "\n".join([*lines, *LEGEND.splitlines()])


def peers(count: int, state: Link) -> str:
    """What `topo -p2p r` prints."""
    lines = ["\t".join([" ", *(f"GPU{index}" for index in range(count)), ""])]
    for row in range(count):
        cells = ["X" if row == column else state(row, column) for column in range(count)]
        lines.append("\t".join([f" GPU{row}", *cells, ""]))
    return "\n".join([*lines, *PEER_LEGEND.splitlines()])


def same_half(count: int) -> Callable[[int, int], bool]:
    return lambda row, column: (row < count // 2) == (column < count // 2)


NICS = [f"NIC{number}" for number in range(10)]
CARDS = [f"mlx5_{number}" for number in range(10)]
OLD, OLDER = ("CPU Affinity", "NUMA Affinity"), ("CPU Affinity",)
EIGHT = range(8)
MACHINES = {
    "DGX H100, NVLink, ten network cards": (matrix(EIGHT, lambda *_: "NV18", others=NICS), {"NV18": 28}),
    "A100 under driver 470": (
        matrix(EIGHT, lambda *_: "NV12", others=CARDS, behind=OLD, codes=("", "")),
        {"NV12": 28},
    ),
    "DGX-2, sixteen": (
        matrix(range(16), lambda *_: "NV6", others=CARDS, behind=OLDER, codes=("", "")),
        {"NV6": 120},
    ),
    "DGX-1, links to half of the others": (
        matrix(
            EIGHT,
            lambda a, b: "NV1" if same_half(8)(a, b) or abs(a - b) == 4 else "SOC",
            others=CARDS[:4],
            behind=OLDER,
        ),
        {"NV1": 16, "SOC": 12},
    ),
    "RTX PRO 6000, two sockets": (
        matrix(EIGHT, lambda a, b: "NODE" if same_half(8)(a, b) else "SYS", others=NICS[:2]),
        {"NODE": 12, "SYS": 16},
    ),
    "RTX PRO 6000, below two switches": (
        matrix(EIGHT, lambda a, b: ("PIX" if a // 2 == b // 2 else "PXB") if same_half(8)(a, b) else "NODE"),
        {"PIX": 4, "PXB": 8, "NODE": 16},
    ),
    "one EPYC, five cards": (
        matrix(range(5), lambda a, b: "PHB" if {a, b} == {3, 4} else "NODE"),
        {"NODE": 9, "PHB": 1},
    ),
    "a GPU that fell off the bus": (matrix((0, 1, 3), lambda *_: "PHB"), {"PHB": 3}),
    "one GPU": (matrix((0,), lambda *_: ""), {}),
}


@pytest.mark.parametrize(("printed", "kinds"), MACHINES.values(), ids=MACHINES)
def test_a_matrix_is_counted_by_pairs_of_gpus(printed: str, kinds: dict[str, int]) -> None:
    assert links(printed.splitlines(), ()) == Counter(kinds)


def test_only_the_chosen_gpus_count_and_go_by_their_own_numbers() -> None:
    printed, _ = MACHINES["RTX PRO 6000, two sockets"]
    assert links(printed.splitlines(), (0, 1, 2, 3)) == {"NODE": 6}
    assert links(printed.splitlines(), (3, 4)) == {"SYS": 1}
    lost = matrix((0, 1, 3), lambda a, b: "PIX" if 3 in (a, b) else "SYS").splitlines()
    assert links(lost, (1, 3)) == {"PIX": 1}
    assert links(lost, (1, 2)) == {}


@pytest.mark.parametrize("end", range(1, 60))
def test_what_was_cut_off_is_not_guessed(end: int) -> None:
    lines = matrix(EIGHT, lambda a, b: "NV18" if same_half(8)(a, b) else "SYS", others=NICS).splitlines()
    whole = links(lines, ())
    for cut in (lines[: 1 + end % 9], [line[: max(1, end)] for line in lines]):
        found = links(cut, ())
        assert found.keys() <= whole.keys()
        assert all(found[kind] <= count for kind, count in whole.items())


def test_half_a_matrix_is_enough_where_it_is_symmetric() -> None:
    printed = matrix(EIGHT, lambda *_: "NV18").splitlines()
    assert links(printed[:8], ()) == {"NV18": 28}, "the last row's links stand in the rows above, too"
    assert links(printed[1:], ()) == {"NV18": 28}, "without a heading columns are as rows"


@pytest.mark.parametrize(
    "printed",
    [
        "",
        "No devices were found",
        "Unable to determine the device handle for GPU0: 0000:C1:00.0: Unknown Error",
        "GPU0",
        "GPU0 = a joke\nGPU1 = another",
        "GPU0\tX\nGPU0\tX",
        "\tGPU0\tGPU1\nGPU0\t X \tN/A\nGPU1\tN/A\t X ",
        "\x1b[4m\x1b[0m",
    ],
)
def test_what_is_no_matrix_tells_nothing(printed: str) -> None:
    assert links(printed.splitlines(), ()) == {}


def topology(printed: str, access: str = "") -> dict[str, object]:
    return {"cards": told(topology=printed.splitlines(), peers=access.splitlines())}


def test_only_what_leaves_the_processor_is_warned_of() -> None:
    far, _ = MACHINES["RTX PRO 6000, two sockets"]
    ctx = gpu_context("engine.flags.tp_size=8", **topology(far))
    assert "some traffic goes from one NUMA node to another" in text("topology", ctx)
    assert "SYS (16 pairs), NODE (12 pairs)" in text("topology", ctx)
    for name in ("one EPYC, five cards", "DGX H100, NVLink, ten network cards"):
        assert worst("topology", gpu_context("engine.flags.tp_size=4", **topology(MACHINES[name][0]))) is Level.OK
    assert said("topology", gpu_context(**topology(far))) == []  # one GPU


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("OK", "ok: direct access between all of them"),
        ("CNS", "1 pair CNS (the chipset does not); all-reduces go through the host's memory | switch off ACS"),
        ("GNS", "1 pair GNS (the GPU does not); all-reduces go through the host's memory | measure with it"),
        ("TNS", "choose GPUs below one switch or processor"),
        ("DR", "NVreg_RegistryDwords"),
        ("NS", "(not supported)"),
        ("U", "warning: the driver does not say whether 1 pair of GPUs"),
    ],
)
def test_each_state_of_direct_access_has_its_own_remedy(state: str, words: str) -> None:
    printed = matrix(range(2), lambda *_: "PHB")
    ctx = gpu_context("engine.flags.tp_size=2", **topology(printed, peers(2, lambda *_: state)))
    assert words in text("topology", ctx)
