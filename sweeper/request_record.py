"""What is kept of one request, and what all records have in common."""

from __future__ import annotations

from pydantic import AwareDatetime, BaseModel, ConfigDict, computed_field


class Record(BaseModel):
    """Base: immutable, and refuses fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class RequestResult(Record):
    """One measured (or warm-up) request. A value that was not measured is absent (None).

    Times in milliseconds from the moment the connection stands; `ttft_ms` ends with the first chunk that
    holds text. `repeat` counts the passes over the prompts from 0; warm-ups have -1. `num_tries`: above 1
    when the way to the host broke meanwhile. `num_verify_steps` counts the
    decode steps in which drafts were verified; `accept_histogram[n]` those of them that accepted n drafts.
    `itl_p99_ms`: 99th percentile of the gaps between chunks that hold text. `server_e2e_ms` and
    `server_decode_ms` are the server's own figures. `started_ms`: when it was sent, since its pass began.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)  # computed ones are written, too

    prompt_id: str
    prompt_class: str
    repeat: int
    num_tries: int = 1
    sent_at: AwareDatetime
    e2e_latency_ms: float
    started_ms: float = 0.0
    ttft_ms: float | None = None
    itl_p99_ms: float | None = None
    num_prompt_tokens: int | None = None
    num_output_tokens: int
    num_drafted_tokens: int | None = None
    num_accepted_tokens: int | None = None
    num_verify_steps: int | None = None
    server_decode_ms: float | None = None
    server_e2e_ms: float | None = None
    accept_histogram: tuple[int, ...] = ()
    accept_source: str = ""
    finish_reason: str = ""
    output_sha256: str = ""
    output_text: str = ""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def output_throughput(self) -> float:
        """Output tokens per second, end to end."""
        return self.num_output_tokens * 1000 / self.e2e_latency_ms

    @computed_field  # type: ignore[prop-decorator]
    @property
    def tpot_ms(self) -> float | None:
        """Milliseconds per output token after the first; None when there is only one, or no TTFT."""
        if self.ttft_ms is None or self.num_output_tokens < 2 or self.e2e_latency_ms <= self.ttft_ms:
            return None
        return (self.e2e_latency_ms - self.ttft_ms) / (self.num_output_tokens - 1)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def decode_throughput(self) -> float | None:
        """Output tokens per second after the first one."""
        return None if self.tpot_ms is None else 1000 / self.tpot_ms
