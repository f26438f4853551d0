"""The settings of NCCL, timed once per study between the baseline and the search.

It tells the search where to look first, and which settings hang; no verdict knows of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from launchers.base import LaunchSpec
from launchers.errors import HostDirty, HostLost, StartFailed
from sweeper.engines.all_reduces import AllReduces
from sweeper.engines.base import Placement
from sweeper.facts import all_values
from sweeper.measuring.host_load import python_of
from sweeper.probing.commands import FIND, Messages, nccl_tests_argv, read_times, script_argv
from sweeper.probing.findings import Findings, Timing, findings_of, restart_s
from sweeper.probing.settings import Setting, messages_of, settings_of
from sweeper.probing.timing import Ending, run_bounded
from sweeper.rig import Rig
from sweeper.samplers.physics.all_reduce import TOKENS
from sweeper.serving.server import new_nonce
from sweeper.spec import ServerConfig
from sweeper.study import Study

BROKEN_AFTER = 2
"""So many failures at the very beginning are the probe's own: the first setting is the baseline's, which works."""

MAX_TRIES = 3
"""How often a host that is lost or not clean puts it off; then the search goes on without."""

_FIND_TIMEOUT_S = 60.0
_NOISY = ("NCCL_DEBUG", "NCCL_DEBUG_FILE", "NCCL_DEBUG_SUBSYS")
"""What is left out of the environment: it only prints, over the times."""


@dataclass(frozen=True)
class Plan:
    """What is timed with what. `program`: nccl-tests' program on the host; empty: the script."""

    program: str
    messages: Messages
    settings: tuple[Setting, ...]
    used: AllReduces

    @property
    def findings(self) -> Findings:
        """Before anything is timed."""
        return Findings(
            program=self.program or "torch",
            num_ranks=self.messages.num_ranks,
            hidden_size=self.messages.hidden_size,
            num_layers=self.messages.num_layers,
            num_settings=len(self.settings),
        )


class NcclProbe:
    """Times what is due. What it gives up, only another process tries again."""

    def __init__(self, rig: Rig, study: Study) -> None:
        self._rig = rig
        self._study = study
        self._tries_left = MAX_TRIES if rig.spec.probe.nccl else 0

    def run_if_due(self) -> None:
        """Time the settings that the study does not know yet, once the baseline has been measured.

        A host that is lost or not clean puts it off: the next launch finds the same, and the sweep deals with it.
        Ends early when a person asks the sweep to. Raises StopFailed, SweepInterrupted.
        """
        if not self._tries_left or not self._is_due():
            return
        try:
            self._run()
            self._tries_left = 0
        except (HostDirty, HostLost) as error:
            self._tries_left -= 1
            later = "tried again before the next launch" if self._tries_left else "left out"
            self._say(f"interrupted, {later}: {error}")

    def _is_due(self) -> bool:
        progress = self._study.progress(self._rig.spec.budget)
        return progress.baseline_value is not None and progress.trials_done < progress.trials_total

    def _run(self) -> None:
        try:
            plan = self._plan()
        except ValueError as error:
            self._say(f"left out: {error}")
            return
        findings = self._begun(plan)
        if findings.is_whole:
            return
        ranks, limit_s = plan.messages.num_ranks, self._rig.spec.probe.timeout_s
        left = len(plan.settings) - len(findings.timings)
        self._say(f"timing {left} settings on {ranks} GPUs with {findings.program}, at most {limit_s:g} s each")
        self._settle()
        for setting in plan.settings[len(findings.timings) :]:
            if self._rig.interrupts.finish_requested:
                return
            findings = self._time_next(setting, plan, findings)
            if findings.given_up:
                self._say(f"given up, the search goes on without it: {findings.given_up}")
                return
        self._tell(findings)

    def _plan(self) -> Plan:
        """What there is to time. Raises ValueError with why nothing is."""
        rig, spec = self._rig, self._rig.spec
        used = rig.engine.all_reduces(all_values(spec), rig.facts)
        if used is None:
            raise ValueError(f"{rig.engine.name} does not use NCCL")
        messages = messages_of(used, len(spec.host.gpus or rig.facts.gpu_names), TOKENS)
        settings = settings_of(spec.space, rig.baseline, self._canonical)
        if len(settings) < 2:
            raise ValueError("no two settings of NCCL in the space differ and are legal")
        found = rig.launcher.run(("/bin/sh", "-c", FIND), _FIND_TIMEOUT_S, spec.engine.env)
        program = found.stdout.decode("utf-8", "replace").strip() if found.exit_code == 0 else ""
        return Plan(program, messages, settings, used)

    def _canonical(self, config: ServerConfig) -> ServerConfig | None:
        """None for an illegal one."""
        engine, facts = self._rig.engine, self._rig.facts
        made = engine.canonical(config, facts)
        return None if engine.violations(made, facts) else made

    def _begun(self, plan: Plan) -> Findings:
        """What an earlier process found, if that is of the same kind; else nothing yet."""
        known = findings_of(self._study.store)
        names = [setting.text for setting in plan.settings]
        if known is None or known.given_up or not known.same_as(plan.findings):
            return plan.findings
        return known if [t.name for t in known.timings] == names[: len(known.timings)] else plan.findings

    def _time_next(self, setting: Setting, plan: Plan, findings: Findings) -> Findings:
        """The findings with one more setting, kept in the study. Raises HostDirty, HostLost, StopFailed."""
        done = len(findings.timings)
        self._rig.view.phase(f"probing NCCL setting {done + 1} of {len(plan.settings)}")
        if done and findings.timings[-1].failure:
            self._settle()
        findings = findings.plus(self._timed(setting, plan))
        if len(findings.timings) == BROKEN_AFTER and all(timing.failure for timing in findings.timings):
            findings = findings.model_copy(update={"given_up": findings.timings[0].failure})
        findings.keep(self._study.store)
        return findings

    def _settle(self) -> None:
        """Wait for idle GPUs: beside somebody else's work, or a ghost's, times mean nothing. Raises HostDirty."""
        if self._rig.watch_gpus:
            self._rig.launcher.settle()

    def _timed(self, setting: Setting, plan: Plan) -> Timing:
        rig, limit_s = self._rig, self._rig.spec.probe.timeout_s
        began_s = rig.clock.monotonic_s()
        try:
            ending = run_bounded(self._launch_spec(setting, plan), rig.server, limit_s)
        except StartFailed as error:
            ending = Ending(str(error), None, hung=False, took_s=0.0)
        times = {} if ending.failure else read_times(ending.output, plan.messages)
        return Timing(
            name=setting.text,
            values=setting.values,
            microseconds=tuple(times.items()),
            failure=ending.failure or ("" if times else "it printed no times"),
            took_s=rig.clock.monotonic_s() - began_s,
            is_default=setting.is_default,
        )

    def _launch_spec(self, setting: Setting, plan: Plan) -> LaunchSpec:
        """The program in the environment that a server of this setting would have."""
        rig, spec, host = self._rig, self._rig.spec, self._rig.spec.host
        placement = Placement(spec.engine.command, rig.facts.model_path, rig.launcher.free_port(), new_nonce())
        if plan.program:
            argv = nccl_tests_argv(plan.program, plan.messages)
        else:
            python = python_of(spec.engine.command)
            argv = script_argv(python, plan.messages, placement.port, spec.probe.timeout_s)
        visible = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, host.gpus))} if host.gpus else {}
        env = {**visible, **plan.used.env, **rig.baseline.env, **setting.env}
        config = ServerConfig(env={name: value for name, value in env.items() if name not in _NOISY})
        made = rig.engine.launch_spec(config, placement)
        return replace(made, argv=argv, unset_env=(*made.unset_env, *_NOISY))

    def _tell(self, findings: Findings) -> None:
        restart = restart_s(self._study.trials())
        failed = [f"{timing.name} {timing.failure}" for timing in findings.failed]
        words = f"; not proposed: {'; '.join(failed)}" if failed else "; all of them work"
        self._say(findings.cost_text(restart) + words)

    def _say(self, text: str) -> None:
        self._rig.view.notice(f"probe.nccl: {text}")
