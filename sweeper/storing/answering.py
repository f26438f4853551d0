"""A connection to PostgreSQL on which no answer is waited for without end.

Keepalives find out that the other machine is gone. They do not where something stands in between and still
acknowledges (a load balancer, a tunnel, a container's proxy) while the server behind it is gone or frozen.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import psycopg

from launchers.clock import Clock, SystemClock

ANSWER_S = 150.0
"""Longer than the server works on any statement (its statement_timeout, and some more)."""


class AnsweredConnection(psycopg.Connection[Any]):
    """Gives the connection up when a statement has had no answer for so long: a lost one, as others are lost."""

    answer_s = ANSWER_S
    clock: Clock = SystemClock()

    def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  (the driver's own generators)
        """What `gen` comes to. Raises OperationalError, the connection closed, when it waits too long."""
        try:
            return super().wait(_limited(gen, self.answer_s, self.clock), *args, **kwargs)
        except NoAnswer:
            self.pgconn.finish()
            raise


class NoAnswer(psycopg.OperationalError):
    """The server did not answer in time."""


def _limited(gen: Generator[Any, Any, Any], limit_s: float, clock: Clock) -> Generator[Any, Any, Any]:
    """The same generator, which the driver resumes several times a second while nothing comes."""
    began_s = clock.monotonic_s()
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and clock.monotonic_s() - began_s > limit_s:
                raise NoAnswer(f"no answer for {limit_s:g} s; the connection is given up")
            wanted = gen.send(ready)
    except StopIteration as end:
        return end.value
