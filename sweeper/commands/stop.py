"""`specsweep stop`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from launchers.clock import Clock, SystemClock
from sweeper import config
from sweeper.commands.as_json import print_json
from sweeper.commands.hosts import make_launcher, standing_on
from sweeper.errors import ConfigError, ExitCode, SpecsweepError, StorageUnusable
from sweeper.nights.on_finish import name_of
from sweeper.spec import StudyPlace
from sweeper.standing.glance import glance
from sweeper.standing.words import progress_text
from sweeper.stop_request import AtWork, StopRequest
from sweeper.storing.addresses import is_shared
from sweeper.storing.kept_run import COMPLETE, kept_runs
from sweeper.storing.storage import StudyStore
from sweeper.text import plain

_LOOK_S = 0.5


def stop(arguments: argparse.Namespace) -> ExitCode:
    """Ask the processes of a running sweep to end, and wait for that; else stop what sweeps left on the host.

    With --restore also start what they have stopped there. Raises SpecsweepError, LauncherError.
    """
    place = config.load_place(arguments.overrides, arguments.config_dir)
    store, problem = _store_of(place)
    request = StopRequest(place.study, store, now=arguments.now)
    asked = request.at_work()
    is_named = any(word.startswith("study.name=") for word in arguments.overrides)
    if problem is not None and is_named and not asked and not arguments.restore:
        raise problem
    if not _waited(request, place.study.name, SystemClock()):
        return ExitCode.INTERRUPTED
    host, told = "", [_ended(place, store or _store_of(place)[0])] if asked else []
    if not asked or arguments.restore:
        host, lines = _clear_host(arguments)
        told += lines or [f"nothing of a sweep runs on {host}"]
    if arguments.json:
        workers = [{"worker": each.worker, "host": each.host, "pid": each.pid or None} for each in asked]
        print_json({"study": place.study.name, "asked": workers, "now": arguments.now, "host": host, "done": told})
    else:
        sys.stdout.write("".join(f"{line}\n" for line in told))
    return ExitCode.OK


def _no_such(place: StudyPlace) -> ConfigError:
    none = f"there is no study {place.study.name!r} in {place.study.dir}; specsweep studies lists them"
    clear = "To clear the host of what sweeps have left there, give the settings of the run without study.name"
    return ConfigError([f"study.name: {none}. {clear}"])


def _store_of(place: StudyPlace) -> tuple[StudyStore | None, SpecsweepError | None]:
    """The study; of one in a file that cannot be opened, why: whoever works on it is asked to end all the same.

    Raises SpecsweepError when one in a database cannot be opened.
    """
    try:
        return StudyStore.of(place.study), None
    except (ConfigError, StorageUnusable) as error:
        if is_shared(place.study.storage):
            raise
        return None, error if isinstance(error, StorageUnusable) else _no_such(place)


def _waited(request: StopRequest, study: str, clock: Clock) -> bool:
    """Ask, and wait until nobody works on the study any more; False when a Ctrl-C ended the waiting."""
    seen: tuple[AtWork, ...] = ()
    try:
        while at_work := request.at_work():
            request.ask()
            for each in at_work:
                if each not in seen:
                    _say(_doing(study, each))
            seen = at_work
            clock.sleep(_LOOK_S)
    except KeyboardInterrupt:
        _say(f"no longer waiting: study {study} was asked to stop and ends when its launch does")
        return False
    return True


def _doing(study: str, worker: AtWork) -> str:
    who = f"pid {worker.pid} on {worker.host}" if worker.pid else f"worker {worker.worker}, elsewhere"
    return f"study {plain(study)}: waiting for {plain(who)}" + (f": {plain(worker.doing)}" if worker.doing else "")


def _say(line: str) -> None:
    """Progress goes to standard error: what a script reads is the answer alone."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _ended(place: StudyPlace, store: StudyStore | None) -> str:
    """Where the study stands, now that nobody works on it."""
    name = place.study.name
    if store is None:
        return f"study {name} has stopped"
    clock = SystemClock()
    text = progress_text(glance(store, Path(place.study.dir), clock.now()))
    ended = [run.ended for run in kept_runs(store)]
    if ended and all(how == COMPLETE for how in ended):
        return f"study {name} is complete: {text}"
    return f"study {name} has stopped: {text}. It goes on with: specsweep resume {name}"


def _clear_host(arguments: argparse.Namespace) -> tuple[str, list[str]]:
    """Stop what is left on the configured host; its name, and a line for each thing that was done there."""
    spec = config.load(arguments.overrides, arguments.config_dir).spec
    launcher = make_launcher(spec.host)
    standing = standing_on(launcher)
    if standing is None:
        raise ConfigError(["host.nodes: a server that spans several hosts is never left serving"])
    done = []
    with launcher.hold():
        for kept in standing.kept():
            launcher.stop(kept.handle, spec.limits.stop_grace_s)
            done.append(f"stopped {name_of(kept)}")
        done += [
            f"stopped server {each}, which was left" for each in launcher.stop_leftovers(spec.limits.stop_grace_s)
        ]
        for port in standing.pending():
            if not arguments.restore:
                done.append(f"the server on port {port}, which a sweep has stopped, is started again by --restore")
            elif (found := standing.restore(port, spec.limits.start_s)) is not None:
                done.append(f"the server on port {port} is {found.state}: {plain(found.text)}")
    return launcher.host, done
