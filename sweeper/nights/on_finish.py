"""How the host is left: nothing runs, the best is served, or the server that was there before runs again.

Before the first launch whatever stands in the way is stopped, and said: a server that an earlier sweep left
serving, and the one of somebody else that `host.replace_server` names. Nothing is stopped for a sweep that has
nothing to launch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any

from launchers.errors import HostDirty
from launchers.masking import masked_words
from launchers.standing import KeptServer, Standing
from sweeper.deciding.verdict import Verdict
from sweeper.errors import SweepAborted, TrialError
from sweeper.naming import difference_text
from sweeper.rig import Rig
from sweeper.serving.launch_trace import LaunchTrace
from sweeper.serving.server import left_running, new_nonce
from sweeper.study import Study
from sweeper.text import plain

_MAX_NAME = 60
LEFT = "left_on"
"""The study's fact about how a host was left."""


class Leaving:
    """Makes room on one host before the first launch, and leaves it as asked. `standing` is None for a group."""

    def __init__(self, rig: Rig, study: Study, standing: Standing | None) -> None:
        self._rig = rig
        self._study = study
        self._standing = standing
        self._has_room = False

    def make_room(self) -> None:
        """Stop what stands in the way of a first launch. Raises SweepAborted where that is not possible."""
        if self._has_room or self._standing is None:
            return
        self._stop_kept(self._standing)
        self._replace(self._standing)
        self._has_room = True

    def leave(self, verdict: Verdict) -> str:
        """Leave the host as asked; in words what was left there, empty for nothing.

        Raises HostLost, StopFailed, SweepInterrupted.
        """
        if self._standing is None:
            return ""
        ways: dict[str, Callable[[Standing], str]] = {
            "stop": self._say_pending,
            "serve_best": lambda standing: self._serve(standing, verdict),
            "restore": self._restore,
        }
        text = ways[self._rig.spec.on_finish](self._standing)
        self._study.store.set_fact(f"{LEFT}:{self._rig.launcher.host}", text)
        return text

    def leave_unfinished(self) -> str:
        """The sweep ended early: only what was there before is put back, where that was asked for."""
        if self._standing is None:
            return ""
        return (
            self._restore(self._standing)
            if self._rig.spec.on_finish == "restore"
            else self._say_pending(self._standing)
        )

    def _stop_kept(self, standing: Standing) -> None:
        for kept in standing.kept():
            self._rig.view.notice(f"stopping {name_of(kept)}, which an earlier sweep left serving")
            self._rig.launcher.stop(kept.handle, self._rig.spec.limits.stop_grace_s)

    def _replace(self, standing: Standing) -> None:
        port = self._rig.spec.host.replace_server
        if port is None:
            return
        try:
            argv = standing.replace(port, self._rig.spec.limits.stop_grace_s)
        except HostDirty as error:
            raise SweepAborted(f"stopped: {error}\nNothing measured is lost.") from error
        if argv is not None:
            shown = plain(" ".join(masked_words(argv.split())), 400)
            self._rig.view.notice(f"stopped the server on port {port} of {standing.host}: {shown}")

    def _say_pending(self, standing: Standing) -> str:
        """Nobody asked for it, but it should not be forgotten."""
        ports = ", ".join(map(str, standing.pending()))
        return (
            f"The server that ran on port {ports} is still stopped: specsweep stop --restore starts it."
            if ports
            else ""
        )

    def _restore(self, standing: Standing) -> str:
        lines = [self._restored(standing, port) for port in standing.pending()]
        return "\n".join(filter(None, lines))

    def _restored(self, standing: Standing, port: int) -> str:
        where = f"the server on port {port} of {standing.host}"
        self._rig.view.notice(f"starting {where} again")
        try:
            found = standing.restore(port, self._rig.spec.limits.start_s)
        except HostDirty as error:
            return f"{where[0].upper()}{where[1:]} was not started again: {plain(str(error))}"
        if found is None:
            return ""
        words = {
            "up": f"runs again; its output goes to {plain(found.text)}.",
            "starting": f"was started again and does not listen yet; its output goes to {plain(found.text)}.",
            "dead": f"was started again and ended at once: {plain(found.text)}. "
            "What is known of it is kept: specsweep stop --restore tries again.",
        }
        return f"{where[0].upper()}{where[1:]} {words[found.state]}"

    def _serve(self, standing: Standing, verdict: Verdict) -> str:
        """Start what the verdict advises, and leave it running."""
        if verdict.advised is None:
            return "Nothing is served: not even the baseline has been measured."
        trial = next(trial for trial in self._study.trials() if trial.number == verdict.advised)
        name = "the baseline" if trial.is_baseline else difference_text(trial.canonical, self._study.baseline)
        port = self._rig.spec.on_finish_port or self._rig.spec.host.port_low
        if (kept := next(iter(standing.kept()), None)) is not None:
            if note_of(kept).get("key") == trial.key and kept.handle.port == port:
                return f"{name_of(kept)} is still served on port {port} of {standing.host}."
            self._stop_kept(standing)
        nonce = f"{self._study.name[:_MAX_NAME]}-{new_nonce()}"
        spec, trace = self._rig.placing.launch_spec(trial.canonical, port, nonce), LaunchTrace()
        self._rig.view.notice(f"serving trial {trial.number}, {name}, on port {port}")
        try:
            left_running(spec, self._rig.server, trace, self._rig.view.phase)
        except TrialError as error:
            return f"Trial {trial.number}, {name}, could not be served: {error.kind}: {plain(str(error))}"
        note = {"study": self._study.name, "trial": trial.number, "key": trial.key, "name": plain(name)}
        with self._rig.interrupts.shielded():
            standing.keep(trace.started, json.dumps(note))
        command = plain(" ".join(masked_words(spec.argv)), 2000)
        place = self._rig.spec.host.address or "127.0.0.1"
        log = PurePosixPath(trace.started.log_path)
        pending, where = self._say_pending(standing), f"at {place}:{port} of {standing.host}"
        return "\n".join(
            [
                *([pending] if pending else []),
                f"Trial {trial.number}, {name}, is served {where}, as the model {nonce}:",
                f"  {command}",
                f"  its log: {plain(str(log))}",
                "specsweep stop, with the settings of this run, ends it; so does the next sweep on this host.",
            ]
        )


def note_of(kept: KeptServer) -> Mapping[str, Any]:
    """What was said of a server when it was left; empty where that cannot be read."""
    try:
        note = json.loads(kept.note)
    except (ValueError, RecursionError):
        return {}
    return note if isinstance(note, dict) else {}


def name_of(kept: KeptServer) -> str:
    """`trial 5 of study night, ngram n3, on port 30000`; the server's id where its note cannot be read."""
    note = note_of(kept)
    try:
        told = f"trial {int(note['trial'])} of study {note['study']}, {note['name']}"
    except (ValueError, KeyError, TypeError):
        told = f"server {kept.handle.server_id}"
    return f"{plain(told)}, on port {kept.handle.port}"
