"""What a host's last good end was told of, so that a start which adds nothing tells nobody the same again."""

from __future__ import annotations

import hashlib
from contextlib import suppress

from sweeper.deciding.verdict import Verdict
from sweeper.storing.losses import STORAGE_ERRORS
from sweeper.study import Study


class News:
    """A verdict, and the launches that it rests on, against what was told last on this host."""

    def __init__(self, study: Study, host: str, verdict: Verdict) -> None:
        self._store = study.store
        self._fact = f"told:{host}"
        num_launches = sum(len(trial.launches) for trial in study.trials())
        content = f"{num_launches} launches\n{verdict.text}"
        self._digest = hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()[:16]
        self.is_new = self._store.fact(self._fact) != self._digest

    def told(self) -> None:
        """Somebody has been told. Where the study cannot be reached any more, he is told once more."""
        with suppress(*STORAGE_ERRORS):
            self._store.set_fact(self._fact, self._digest)
