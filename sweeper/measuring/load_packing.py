"""Packs the lines of an answer as they arrive. Part of the client that runs on the host (load_client.py)."""

from __future__ import annotations

import zlib


class Packer:
    """Packs the lines of one answer as they arrive; nothing is lost but their exact times (to 1 us).

    Some servers repeat the whole text so far in each line, which makes hundreds of megabytes. So a line is split
    at its quotation marks, and of each part that differs from the same part of the line before, only what follows
    their common beginning is kept: `GAP,INDEX,SHARED,LENGTH:REST,INDEX,...;`. GAP: microseconds since that line.
    `GAP@INDEX,COUNT,...;` stands for a line with COUNT more parts: so many empty ones are first put behind part
    INDEX of the line before; or, with COUNT below 0, taken away there. Before the first line is an empty one.
    """

    def __init__(self) -> None:
        self._old = [b""]
        self._at_us = 0
        self._waiting: list[bytes] = []
        self._num_waiting = 0
        # 8 KiB of window: hundreds of these work at a time.
        self._zip = zlib.compressobj(6, zlib.DEFLATED, 13, 5)
        self.packed: list[bytes] = []

    def add(self, at_s: float, line: bytes) -> int:
        """Take one more line; by how many bytes the packed lines grew."""
        new, at_us = line.split(b'"'), round(at_s * 1e6)
        record = [b"%d" % (at_us - self._at_us)]
        count = len(new) - len(self._old)
        if count:
            place = min(first_difference(self._old, new), len(new) - 1)
            record.append(b"@%d,%d" % (place, count))
            self._old[place + 1 : place + 1 + max(0, -count)] = [b""] * max(0, count)
        for index, part in enumerate(new):
            if part != self._old[index]:
                shared = common_beginning(self._old[index], part)
                record.append(b",%d,%d,%d:%s" % (index, shared, len(part) - shared, part[shared:]))
        record.append(b";")
        self._old, self._at_us = new, at_us
        self._waiting += record
        self._num_waiting += sum(map(len, record))
        return self._pack() if self._num_waiting > 4096 else 0

    def end(self) -> int:
        """Take no more; by how many bytes the packed lines grew."""
        grown = self._pack()
        self.packed.append(self._zip.flush())
        return grown + len(self.packed[-1])

    def _pack(self) -> int:
        self.packed.append(self._zip.compress(b"".join(self._waiting)))
        self._waiting, self._num_waiting = [], 0
        return len(self.packed[-1])


def first_difference(old: list[bytes], new: list[bytes]) -> int:
    """The index of the first part that is another one."""
    shorter = min(len(old), len(new))
    return next((index for index in range(shorter) if old[index] != new[index]), shorter)


def common_beginning(old: bytes, new: bytes) -> int:
    """How many bytes both begin with."""
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
