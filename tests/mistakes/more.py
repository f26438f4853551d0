"""More mistakes, in the traps of shells, YAML and files; the page of mistakes does without them (table.py)."""

from __future__ import annotations

from tests.mistakes.table import COMMANDS, FILES, HOSTS, QUOTING, SETTINGS, STUDIES, STUDY, YAML, Mistake

PLAN = ("plan", "--config-dir", "my", "workload=mine")
PRESET = ("plan", "--config-dir", "my", "preset=mine")
HERE = ("plan",)
OWN = "specsweep.yaml"
GLOBAL = "# @package _global_\n"
SSH = ("plan", "preset=sglang_any", "model.path=/m", "space.speculative_draft_model_path=/d")
NIGHT = ("study.name=night", "study.dir=kept")
KEPT = {"kept/optuna.db": STUDY}


def _mine(text: str | bytes) -> dict[str, str | bytes]:
    return {"my/workload/mine.yaml": text}


def _preset(text: str) -> dict[str, str | bytes]:
    return {"my/preset/mine.yaml": text}


MORE: tuple[Mistake, ...] = (
    Mistake(COMMANDS, "help as a command", ("help",), ("there is no command 'help'", "--help")),
    Mistake(COMMANDS, "an option of no command", ("--verison",), ("unknown option '--verison'", "--version")),
    Mistake(COMMANDS, "a group spelt as an option", ("plan", "--preset=x"), ("'--preset=x'", "settings have no dashes: preset=VALUE")),
    Mistake(COMMANDS, "an empty folder", ("plan", "--config-dir="), ("--config-dir: is empty",)),
    Mistake(COMMANDS, "a schema where nothing can be written", ("schema", "--write", "/proc/x"), ("--write: /proc/x/schema cannot be written", "name another place")),
    Mistake(COMMANDS, "a folder to begin with that is none", ("init", "/dev/null", "--yes"), ("DIR: /dev/null is no folder", "specsweep init DIR")),
    Mistake(COMMANDS, "an option and a setting at once", ("plan", "--trials", "99", "budget.trials=x"), ("--trials: 99", "budget.trials: 'x'")),
    Mistake(SETTINGS, "a path with two points", ("plan", "budget..trials=5"), ("'budget..trials' is not a name",)),
    Mistake(SETTINGS, "a path with a slash", ("plan", "budget/trials=5"), ("written with points: budget.trials=VALUE",)),
    Mistake(SETTINGS, "a time of day as a number", ("plan", "budget.until=7"), ("budget.until: 7", "07:00")),
    Mistake(SETTINGS, "a drafter misspelt", ("plan", "space.spec_type=choice(ngram-simpel)"), ("did you mean ngram-simple?",)),
    Mistake(QUOTING, "typographic quotation marks", ("plan", "study.name=\u201cnight\u201d"), ("is a typographic quotation mark",)),
    Mistake(QUOTING, "quotation marks in quotation marks", ("plan", "'budget.trials=5'"), ("leave one pair away",)),
    Mistake(QUOTING, "square brackets of a choice", ("plan", "space.threads=choice[1,2]"), ("choice takes round brackets",)),
    Mistake(QUOTING, "a comma at the end", ("plan", "budget.trials=5,"), ("leave the ',' at its end away",)),
    Mistake(QUOTING, "a reference that is not closed", ("plan", "study.name=${oc.env:X"), ("a bracket is open",)),
    Mistake(QUOTING, "a list without its brackets", ("plan", "host.gpus=0,1"), ("a list is written 'host.gpus=[0,1]'",)),
    Mistake(SETTINGS, "a word where a section without files belongs", ("plan", "notify=mail"), ("notify: 'mail' should be a mapping", "events, timeout_s, tries\n")),
    Mistake(COMMANDS, "a value for an option that has none", ("resume", "--plain=yes"), ("--plain: takes no value; 'yes' is one",)),
    Mistake(YAML, "a blank that is none", PLAN, ("my/workload/mine.yaml:1:", "U+00A0"), _mine("max_tokens:\u00a064\n")),
    Mistake(YAML, "a quotation mark that is not closed", PLAN, ("my/workload/mine.yaml:1:", "never closed"), _mine('prompts_file: "chat\nrepeats: 2\n')),
    Mistake(YAML, "two documents", PLAN, ("my/workload/mine.yaml:2:", "remove ---"), _mine("repeats: 2\n---\nrepeats: 3\n")),
    Mistake(YAML, "a value that begins with a sign", PLAN, ("my/workload/mine.yaml:1:", "stands in quotes"), _mine("prompts_file: @chat\n")),
    Mistake(YAML, "a character that is none", PLAN, ("my/workload/mine.yaml", "U+0000", "remove it"), _mine("prompts_file: ch\0at\n")),
    Mistake(YAML, "a file saved as UTF-16", PLAN, ("my/workload/mine.yaml", "save it as UTF-8"), _mine("repeats: 2\n".encode("utf-16"))),
    Mistake(YAML, "a byte order mark and carriage returns", PLAN, ("workload.max_token: unknown name",), _mine(b"\xef\xbb\xbfmax_token: 64\r\nprompts_file: chat\r\n")),
    Mistake(YAML, "a file that ends in .yml", PLAN, ("workload: 'mine' is no option", "rename it to mine.yaml"), {"my/workload/mine.yml": "repeats: 2\n"}),
    Mistake(YAML, "a file beside its folder", PLAN, ("move it to my/workload/mine.yaml",), {"my/mine.yaml": "repeats: 2\n"}),
    Mistake(YAML, "a folder too high", PLAN, ("say --config-dir my/conf",), {"my/conf/workload/mine.yaml": "repeats: 2\n"}),
    Mistake(YAML, "defaults in a circle", PLAN, ("in a circle",), _mine("defaults: [mine]\n")),
    Mistake(YAML, "a preset that only names a group", PRESET, ("- override /GROUP: OPTION",), _preset(GLOBAL + "defaults:\n  - workload: chat\n")),
    Mistake(YAML, "points in a preset", PRESET, ("budget: {trials: ...}",), _preset(GLOBAL + "budget.trials: 3\n")),
    Mistake(YAML, "an option where a mapping belongs", PRESET, ("workload: 'chat'", "workload=chat"), _preset(GLOBAL + "workload: chat\n")),
    Mistake(YAML, "a root of one's own", ("plan", "--config-dir", "my"), ("my/config.yaml: takes the place of the packaged one", "make it a preset"), {"my/config.yaml": "budget: {trials: 3}\n"}),
    Mistake(YAML, "config-dir in the own file", HERE, (f"{OWN}: 'config-dir' is written config_dir",), {OWN: "config-dir: my\n"}),
    Mistake(YAML, "an own file and an override at once", ("plan", "-m"), (f"{OWN}: config_dir: 'nosuch'", "-m: specsweep sweeps by itself"), {OWN: "config_dir: nosuch\n"}),
    Mistake(YAML, "a folder called as the own file", HERE, (f"{OWN}: cannot be read",), {f"{OWN}/x": "a"}),
    Mistake(FILES, "results that never end", ("import", "/dev/zero", "study.name=x"), ("/dev/zero: is no file",)),
    Mistake(FILES, "results that are nowhere, without a name", ("import", "none.csv"), ("none.csv: cannot be read", "study.name: give")),
    Mistake(FILES, "a name of prompts without end", PLAN, ("workload.prompts_file: 'xxx", "too long"), _mine(f"prompts_file: {'x' * 5000}\n")),
    Mistake(STUDIES, "a database without a file", ("plan", "study.storage=sqlite:///"), ("names no file; write sqlite:///PATH",)),
    Mistake(STUDIES, "a question, and no study", ("predict", "num_steps=x"), ("study.storage:", "num_steps: 'x' should be a whole number")),
    Mistake(STUDIES, "a comparison, and no study", ("report", "--with", "other"), ("study.storage:", "--with other: is looked for there, too")),
    Mistake(STUDIES, "a comparison with itself", ("report", *NIGHT, "--with", "night"), ("--with night: is the study itself",), KEPT),
    Mistake(STUDIES, "a comparison with an address", ("report", *NIGHT, "--with", "http://x"), ("write NAME, DIR:NAME or URL:NAME",), KEPT),
    Mistake(STUDIES, "a report where nothing can be written", ("report", *NIGHT, "--output", "/proc/x.md"), ("--output: /proc/x.md cannot be written",), KEPT),
    Mistake(STUDIES, "a study as a word", ("status", "night"), ("'night': not an override", "study.name=night")),
    Mistake(HOSTS, "no destination", (*SSH, "host.ssh.destination="), ("host.ssh.destination: '' should not be empty",)),
    Mistake(HOSTS, "a user in the destination", (*SSH, "host.ssh.destination=me@gpu1"), ("the user goes into `user`",)),
    Mistake(HOSTS, "a port in the destination", (*SSH, "host.ssh.destination=gpu1:22"), ("the port into `port`",)),
    Mistake(HOSTS, "a key that is not there", (*SSH, "host.ssh.destination=gpu1", "host.ssh.identity_file=/nosuch"), ("host.ssh.identity_file: '/nosuch': there is no such file",)),
    Mistake(HOSTS, "a configuration that is not there", (*SSH, "host.ssh.destination=gpu1", "host.ssh.config_file=/nosuch"), ("host.ssh.config_file: '/nosuch': there is no such file",)),
    Mistake(HOSTS, "a destination that is read as an option", (*SSH, "host.ssh.destination=-oProxyCommand=x"), ("quote the value twice",)),
    Mistake(HOSTS, "an address with a port", (*SSH, "host.ssh.destination=gpu1", "host.address=10.0.0.7:80"), ("host.address: '10.0.0.7:80'", "alone")),
)  # fmt: skip
ALONE = (
    "no destination", "a destination that is read as an option", "a configuration that is not there", "help as a command",
)  # fmt: skip
"""Of these it has been seen that one mistake was told in two lines."""
