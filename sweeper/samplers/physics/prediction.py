"""What every model of throughput answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from sweeper.samplers.physics.batch import Batch, FloatArray


@dataclass(frozen=True)
class Prediction:
    """Expected logarithms and their variances, [n] each.

    throughput in tokens per second; accept_length, and step time in milliseconds, where the model knows them.
    """

    throughput: FloatArray
    throughput_variance: FloatArray
    accept: tuple[FloatArray, FloatArray] | None = None
    time: tuple[FloatArray, FloatArray] | None = None


class Model(Protocol):
    """Predicts configurations. `noise`: variance of one measured log throughput around the truth."""

    @property
    def noise(self) -> float:
        """Variance of one measured log throughput around the truth."""
        ...

    def predict(self, batch: Batch) -> Prediction:
        """What is expected of configurations."""
        ...

    def lead(self, batch: Batch, other: Batch) -> tuple[FloatArray, FloatArray]:
        """How much faster each configuration is expected to be than one other, and the variance: [n] each.

        On the logarithm. What is unknown of both alike does not count: twins lead each other by nothing.
        """
        ...

    def lessons(self, asked: Batch, trials: Batch) -> tuple[FloatArray, ...]:
        """What a trial would teach, [asked, trials] for each thing that it measures.

        The standard deviation by which measuring a trial moves the expected log throughput of what is asked.
        """
        ...
