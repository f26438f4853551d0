"""`specsweep stop`."""

from __future__ import annotations

import argparse
import sys

from sweeper import config
from sweeper.commands.hosts import make_launcher, standing_on
from sweeper.errors import ConfigError, ExitCode
from sweeper.on_finish import name_of
from sweeper.text import plain


def stop(arguments: argparse.Namespace) -> ExitCode:
    """Stop what sweeps have left on the host; with --restore start what they have stopped there.

    Raises SpecsweepError, LauncherError.
    """
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
    sys.stdout.write("".join(f"{line}\n" for line in done) or f"nothing of a sweep runs on {launcher.host}\n")
    return ExitCode.OK
