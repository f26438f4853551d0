"""How GPUs reach one another: the matrices of `nvidia-smi topo` as data. What makes no sense is left out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from sweeper.text import without_codes

MAX_ROWS = 1024
_DEVICE = re.compile(r"(?:GPU|NIC|mlx)[\w:.-]{1,30}", re.IGNORECASE)
_GPU = re.compile(r"GPU(\d{1,4})")
_LINK = re.compile(r"NV\d{1,3}|PIX|PXB|PHB|NODE|SYS|SOC|OK|NS|CNS|GNS|TNS|DR|U")
_SELF = "X"

FAR: Mapping[str, str] = {
    "SYS": "from one NUMA node to another",
    "SOC": "from one processor to another",  # an older driver's word
}
"""Links that leave the processor. NODE and PHB do not: that is how GPUs without NVLink or a switch are joined."""

NO_PEER: Mapping[str, str] = {
    "NS": "not supported",
    "CNS": "the chipset does not",
    "GNS": "the GPU does not",
    "TNS": "not with this topology",
    "DR": "the driver's settings forbid it",
}
UNKNOWN_PEER = "U"


def links(lines: Sequence[str], gpus: Sequence[int]) -> Counter[str]:
    """How often each kind of link stands between two of these GPUs (empty: all).

    `NV18`, `PIX`, `PXB`, `PHB`, `NODE`, `SYS` of `topo -m`; `OK`, `NS`, ... of `topo -p2p r`. Each pair counts
    once, as the first of its two cells that could be read says.
    """
    pairs: dict[frozenset[int], str] = {}
    for index, cells in _rows(lines[:MAX_ROWS]):
        for other, cell in cells.items():
            if other != index and _LINK.fullmatch(cell) and (not gpus or {index, other} <= set(gpus)):
                pairs.setdefault(frozenset((index, other)), cell)
    return Counter(pairs.values())


def _rows(lines: Sequence[str]) -> Iterator[tuple[int, dict[int, str]]]:
    """The row of each GPU: its index, and its cells by the other GPU's index.

    The heading names the columns; without one they are in the order of the rows. What stands behind them (network
    cards, affinities of CPU and memory), rows of network cards, and the legends, are left out.
    """
    matrix = [words for line in lines if (words := without_codes(line).split())]
    heading = next((words for words in matrix if _is_heading(words)), None)
    rows = [
        (int(found[1]), words[1:]) for words in matrix if _is_row(words) and (found := _GPU.fullmatch(words[0]))
    ]
    columns = _columns(heading) if heading else [index for index, _ in rows]
    for index, cells in rows:
        whole = cells if len(cells) >= len(columns) else cells[:-1]  # of a line that was cut the last cell is half
        yield index, {column: cell for column, cell in zip(columns, whole, strict=False) if column is not None}


def _is_heading(words: Sequence[str]) -> bool:
    """Whether a line only names: GPU0 GPU1 ... CPU Affinity."""
    is_named = len(words) == 1 or words[1][0].isalpha()
    return bool(_GPU.fullmatch(words[0])) and is_named and not _is_row(words)


def _is_row(words: Sequence[str]) -> bool:
    """Whether a line is that of one GPU: its name, then links, one of them to itself."""
    return (
        bool(_GPU.fullmatch(words[0])) and len(words) > 1 and bool(words[1] == _SELF or _LINK.fullmatch(words[1]))
    )


def _columns(heading: Sequence[str]) -> list[int | None]:
    """The GPU of each column, None for another device; up to what is no device."""
    columns: list[int | None] = []
    for word in heading:
        if not _DEVICE.fullmatch(word):
            break
        found = _GPU.fullmatch(word)
        columns.append(int(found[1]) if found else None)
    return columns
