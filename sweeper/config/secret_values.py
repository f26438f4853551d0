"""The secrets in a configuration, told to the one place that hides them."""

from __future__ import annotations

import os
from collections.abc import Mapping

from sweeper.known_secrets import KNOWN


def learn_secrets(data: Mapping[str, object]) -> None:
    """What it holds of secrets is shown nowhere from now on; nor what is in the variables that it names."""
    for name, value in data.items():
        if name not in ("workload", "more_workloads"):
            KNOWN.learn_tree(name, value)
    host = data.get("host")
    for group in (host.get("ssh") if isinstance(host, Mapping) else None, data.get("notify")):
        for name, variable in group.items() if isinstance(group, Mapping) else ():
            if name.endswith("_env"):
                KNOWN.learn([os.environ.get(str(variable), "")])
