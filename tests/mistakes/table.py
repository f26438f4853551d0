"""What users get wrong, and what specsweep must say: one message that names the place and what would be right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sweeper.errors import ExitCode


@dataclass(frozen=True, eq=False)
class Mistake:
    """`typed`: the words behind `specsweep`, as the program gets them. `files`: what lies in the working directory.

    `says`: parts of the message, the place first. `told_of`: what it is, in the documentation. `in_shell`: what was typed
    in a shell, where that differs from the words that the program gets.
    """

    group: str
    told_of: str
    typed: tuple[str, ...]
    says: tuple[str, ...]
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    code: ExitCode = ExitCode.USAGE
    in_shell: str = ""


REMOTE = ("run", "preset=sglang_any", "model.path=/m", "space.speculative_draft_model_path=/d")
MINE = ("run", "--config-dir", "my", "workload=mine")
SPACE = ("run", "--config-dir", "my", "space=mine", "study.name=mine")


def _workload(text: str | bytes) -> Mapping[str, str | bytes]:
    return {"my/workload/mine.yaml": text}


def _space(text: str | bytes) -> Mapping[str, str | bytes]:
    return {"my/space/mine.yaml": text}


STUDY = b"a study"
"""Stands for a database with a study, `night`, in which nothing has been measured."""

COMMANDS = "Commands and options"
SETTINGS = "Names and values of settings"
QUOTING = "Quoting in the shell"
YAML = "Files of your own"
FILES = "Prompts, models, results"
STUDIES = "Studies and storages"
HOSTS = "Hosts"

TABLE: tuple[Mistake, ...] = (
    Mistake(COMMANDS, "no command", (), ("name a command: run,", "specsweep --help")),
    Mistake(COMMANDS, "a command misspelt", ("rnu",), ("there is no command 'rnu'", "did you mean run?")),
    Mistake(COMMANDS, "a command of another program", ("start",), ("there is no command 'start'",)),
    Mistake(COMMANDS, "an option misspelt", ("run", "--plian"), ("run: unknown option '--plian'", "--plain")),
    Mistake(COMMANDS, "an option of another command", ("run", "--json"), ("run: unknown option '--json'",)),
    Mistake(COMMANDS, "an option cut short", ("report", "--out", "x.md"), ("'--out'", "did you mean --output?")),
    Mistake(COMMANDS, "an option without its value", ("report", "--output"), ("report: --output: needs a value",)),
    Mistake(COMMANDS, "Hydra's multirun", ("run", "-m", "budget.trials=1,2"), ("-m: specsweep sweeps by itself",)),
    Mistake(COMMANDS, "a setting spelt as an option", ("run", "--budget.trials=5"), ("unknown option", "budget.trials=5")),
    Mistake(COMMANDS, "an impossible port", ("ui", "--port", "http"), ("ui: --port: 'http' is not a whole number",)),
    Mistake(COMMANDS, "a format that is not known", ("export", "--format", "helm"), ("--format: 'helm'", "kubernetes")),
    Mistake(COMMANDS, "a report of an unknown kind", ("report", "study.name=night", "study.dir=kept", "--output", "night.pdf"), ("--output: 'night.pdf'", ".html or .md"), {"kept/optuna.db": STUDY}),
    Mistake(COMMANDS, "a shell that is not known", ("completion", "tcsh"), ("'tcsh' is none of bash, zsh, fish",)),
    Mistake(COMMANDS, "a folder that is not there", ("run", "--config-dir", "conff"), ("--config-dir: 'conff' is not a directory",)),
    Mistake(SETTINGS, "an option of a group misspelt", ("run", "preset=llamacpp_smok"), ("preset: 'llamacpp_smok' is no option", "did you mean llamacpp_smoke?")),
    Mistake(SETTINGS, "a group misspelt", ("run", "pressets=llamacpp_smoke"), ("pressets: unknown name", "did you mean preset?")),
    Mistake(SETTINGS, "a setting misspelt", ("run", "budget.trails=20"), ("budget.trails: unknown name", "did you mean trials?")),
    Mistake(SETTINGS, "a setting without its group", ("run", "trials=20"), ("trials: unknown name", "did you mean budget.trials?")),
    Mistake(SETTINGS, "a variable of the server with a dash", ("run", "+space.env.OMP-THREADS=choice(1,2)"), ("OMP-THREADS",)),
    Mistake(SETTINGS, "a word where a number belongs", ("run", "budget.trials=many"), ("budget.trials: 'many' should be a whole number",)),
    Mistake(SETTINGS, "a fraction of a trial", ("run", "budget.trials=1e3"), ("budget.trials: 1000.0 should be a whole number",)),
    Mistake(SETTINGS, "a negative time", ("run", "limits.stop_grace_s=-1"), ("limits.stop_grace_s: -1 should be 0 or greater",)),
    Mistake(SETTINGS, "a time with its unit", ("run", "limits.start_s=10min"), ("limits.start_s: '10min' should be a number",)),
    Mistake(SETTINGS, "one launch to confirm", ("run", "budget.confirm_launches=1"), ("budget.confirm_launches: 1 launch each", "at least 2")),
    Mistake(SETTINGS, "a time of day that is none", ("run", "budget.until=25:00"), ("budget.until: '25:00'", "07:00")),
    Mistake(SETTINGS, "more finalists than trials", ("run", "budget.finalists=30"), ("budget.finalists: 30", "8 or less")),
    Mistake(SETTINGS, "an objective that no workload gives", ("run", "objective=throughput"), ("objective: 'throughput' is not a metric", "output_throughput")),
    Mistake(SETTINGS, "a metric by its name in another program", ("run", "objective=accept_len"), ("objective: 'accept_len' is not a metric", "did you mean accept_length? It is recorded but cannot be ranked by")),
    Mistake(SETTINGS, "an objective of a workload that is not measured", ("run", "objective=busy.output_throughput"), ("objective: 'busy.output_throughput': there is no such workload",)),
    Mistake(SETTINGS, "a metric that is recorded only", ("run", "objective=accept_length"), ("objective: 'accept_length'", "cannot be ranked by")),
    Mistake(SETTINGS, "two ways to end that exclude each other", ("run", "on_finish=restore"), ("on_finish: restore needs host.replace_server=PORT",)),
    Mistake(SETTINGS, "more requests than the server takes", ("run", "workload.concurrency=8"), ("workload.concurrency: 8", "engine.flags.parallel=8")),
    Mistake(SETTINGS, "a flag set although the space searches it", ("run", "engine.flags.spec_type=ngram-simple"), ("engine.flags.spec_type=ngram-simple: has no effect", "space.spec_type=ngram-simple")),
    Mistake(SETTINGS, "a sampler for another engine", ("run", "study.sampler=physics"), ("study.sampler: 'physics'", "auto or tpe")),
    Mistake(SETTINGS, "a variable that is not set", ("run", "+engine.env.HF_HOME=${oc.env:NOT_SET_AT_ALL}"), ("engine.env.HF_HOME", "NOT_SET_AT_ALL")),
    Mistake(QUOTING, "a blank after the comma, unquoted", ("run", "space.spec_ngram_simple_size_m=choice(2,", "4)"), ("space.spec_ngram_simple_size_m=choice(2,", "quotes"), in_shell="space.spec_ngram_simple_size_m=choice\\(2, 4\\)"),
    Mistake(QUOTING, "blanks around the equals sign", ("run", "budget.trials", "=", "20"), ("'budget.trials': not an override", "NAME=VALUE"), in_shell="budget.trials = 20"),
    Mistake(QUOTING, "a bracket left open", ("run", "space.spec_ngram_simple_size_m=choice(2,4"), ("a bracket is open",)),
    Mistake(QUOTING, "values without choice where one belongs", ("run", "budget.trials=10,20"), ("budget.trials=10,20: budget.trials has one value",)),
    Mistake(QUOTING, "a range from high to low", ("run", "space.spec_ngram_simple_size_m=range(8,2)"), ("space.spec_ngram_simple_size_m: 'range(8,2)': the range is empty", "not including")),
    Mistake(QUOTING, "a path with a blank or a comma, unquoted twice", ("run", "study.dir=/data/a,b"), ('study.dir="/data/a,b"',)),
    Mistake(QUOTING, "a value with an equals sign", ("run", "study.name=a=b"), ("study.name",)),
    Mistake(QUOTING, "backslashes in a path", ("run", "study.dir=C:\\sweeps"), ("study.dir: 'C:\\\\sweeps' should not contain",)),
    Mistake(YAML, "a file that is empty", MINE, ("workload.prompts_file: names no prompts",), _workload("")),
    Mistake(YAML, "a list where a mapping belongs", MINE, ("my/workload/mine.yaml:1: should be a mapping",), _workload("- max_tokens: 64\n")),
    Mistake(YAML, "a tab", MINE, ("my/workload/mine.yaml:2:", "not tabs"), _workload("prompts:\n\t- id: a\n")),
    Mistake(YAML, "a colon left out", MINE, ("my/workload/mine.yaml:2:", "is a colon missing"), _workload("max_tokens 64\nrepeats: 2\n")),
    Mistake(YAML, "a name twice", MINE, ("my/workload/mine.yaml:2:", "repeats"), _workload("repeats: 2\nrepeats: 3\n")),
    Mistake(YAML, "a file in another encoding", MINE, ("my/workload/mine.yaml", "UTF-8"), _workload("# für die Nacht\nrepeats: 2\n".encode("latin-1"))),
    Mistake(YAML, "off, no, on without quotes", SPACE, ("my/space/mine.yaml:1: off without quotes is read as false",), _space("spec_type: off\n")),
    Mistake(YAML, "a number with a leading zero", MINE, ("my/workload/mine.yaml:1: 010 without quotes is read as 8",), _workload("max_tokens: 010\n")),
    Mistake(YAML, "08, which YAML reads as text", MINE, ("workload.max_tokens: '08' should be a whole number",), _workload("prompts_file: chat\nmax_tokens: 08\n")),
    Mistake(YAML, "1e3, which is a fraction", MINE, ("workload.max_tokens: 1000.0 should be a whole number",), _workload("prompts_file: chat\nmax_tokens: 1e3\n")),
    Mistake(YAML, "a name that the schema does not have", MINE, ("workload.max_token: unknown name", "did you mean max_tokens?"), _workload("prompts_file: chat\nmax_token: 64\n")),
    Mistake(YAML, "an option of your own that is not there", ("run", "--config-dir", "my", "workload=mien"), ("workload: 'mien' is no option", "mine"), _workload("max_tokens: 64\n")),
    Mistake(YAML, "a host that begins from no packaged one", ("run", "--config-dir", "my", "host=mine"), ("my/host/mine.yaml: lacks name, state_dir", "defaults: [ssh]"), {"my/host/mine.yaml": "kind: ssh\nssh:\n  destination: gpu1\n"}),
    Mistake(YAML, "a choice in square brackets", SPACE, ("space.spec_ngram_simple_size_m: 'choice[2, 4]'", "choice takes round brackets"), _space("defaults: [llamacpp_ngram]\nspec_ngram_simple_size_m: choice[2, 4]\n")),
    Mistake(FILES, "a file of prompts that is not there", ("run", "workload.prompts_file=prompts/my.jsonl"), ("workload.prompts_file: 'prompts/my.jsonl'", "no such file")),
    Mistake(FILES, "a set of prompts misspelt", ("run", "workload.prompts_file=copyedit"), ("workload.prompts_file: 'copyedit' is no packaged set", "copy_edit")),
    Mistake(FILES, "a file of prompts that is broken", ("run", "workload.prompts_file=./my.jsonl"), ("my.jsonl", "line 2"), {"my.jsonl": '{"prompt": "Tell me"}\n{"prompt": \n'}),
    Mistake(FILES, "a file of prompts without any", ("run", "workload.prompts_file=./my.jsonl"), ("my.jsonl",), {"my.jsonl": ""}),
    Mistake(FILES, "random tokens as prompts", ("run", "workload.prompts_file=random"), ("workload.prompts_file: 'random'",)),
    Mistake(FILES, "more prompts than there are", ("run", "workload.num_prompts=1000"), ("workload.num_prompts: 1000",)),
    Mistake(FILES, "a model without its path", ("run", "model=gguf"), ("model.path: is missing; give it: model.path=VALUE",)),
    Mistake(FILES, "an import without a name for the study", ("import", "old.csv"), ("study.name: give the imported study a name",), {"old.csv": "throughput\n50\n"}),
    Mistake(FILES, "an import of a file that is not there", ("import", "olt.csv", "study.name=old"), ("olt.csv",), {"old.csv": "throughput\n50\n"}),
    Mistake(FILES, "an import of a file that is no table", ("import", "notes.md", "study.name=old"), ("notes.md: holds no result: its first line is '# Last night'",), {"notes.md": "# Last night\nWe tried 3 steps, 5 steps.\nNothing, so far.\n"}),
    Mistake(FILES, "a table without a column that is needed", ("import", "old.csv", "study.name=old"), ("old.csv: is no table of results", "--columns throughput=COLUMN"), {"old.csv": "name,speed_of_it\na,50\n"}),
    Mistake(FILES, "a table with a word where a number belongs", ("import", "old.csv", "study.name=old", "--set", "speculative_algorithm=EAGLE3"), ("old.csv", "fast"), {"old.csv": "throughput,num_steps\nfast,3\n"}),
    Mistake(STUDIES, "a report of a study that does not exist", ("report", "study.name=nihgt"), ("study.storage: 'sqlite:///sweeps/optuna.db' does not exist",)),
    Mistake(STUDIES, "a study misspelt", ("report", "study.name=nihgt", "study.dir=kept"), ("study.name: 'nihgt' is not in this storage", "night"), {"kept/optuna.db": STUDY}),
    Mistake(STUDIES, "a folder without any study", ("studies", "study.dir=empty"), ("study.dir: there is no study in 'empty'",)),
    Mistake(STUDIES, "a report of a broken database", ("report", "study.name=night", "study.dir=kept"), ("study.storage: 'sqlite:///kept/optuna.db' cannot be opened", "not a database"), {"kept/optuna.db": b"no database at all, but long enough to be read as one" * 40}, code=ExitCode.ABORTED),
    Mistake(STUDIES, "the address of another database", ("run", "study.storage=mysql://db/sweeps"), ("study.storage: 'mysql://db/sweeps' is not supported", "postgresql://HOST/DATABASE")),
    Mistake(STUDIES, "a database that nobody answers at", ("status", "study.storage=postgresql://127.0.0.1:1/sweeps"), ("study.storage: 'postgresql+psycopg://127.0.0.1:1/sweeps' cannot be opened", "refused"), code=ExitCode.ABORTED),
    Mistake(STUDIES, "a name that cannot be one", ("run", "study.name=my night"), ("study.name: 'my night' should match", "letters, digits and . _ -"), in_shell="'study.name=my night'"),
    Mistake(STUDIES, "MLflow's database for the study", ("run", "study.storage=sqlite:///sweeps/mlflow.db"), ("study.storage: 'sqlite:///sweeps/mlflow.db' is MLflow's database too",)),
    Mistake(STUDIES, "nothing to go on with", ("resume",), ("study.dir: there is no study in 'sweeps' yet",)),
    Mistake(STUDIES, "a study that nobody begun", ("resume", "nihgt", "study.dir=kept"), ("study.name: 'nihgt' is not in this storage", "night"), {"kept/optuna.db": STUDY}),
    Mistake(STUDIES, "a study to stop that is none", ("stop", "study.name=nihgt", "study.dir=kept"), ("study.name: there is no study 'nihgt' in kept", "specsweep studies"), {"kept/optuna.db": STUDY}),
    Mistake(STUDIES, "a trial that is none", ("export", "trial=seven", "study.name=night", "study.dir=kept"), ("trial=seven: write the number of a trial",), {"kept/optuna.db": STUDY}),
    Mistake(STUDIES, "a comparison with nothing", ("report", "study.name=night", "study.dir=kept", "--with", "old"), ("--with old: study.name: 'old' is not in this storage",), {"kept/optuna.db": STUDY}),
    Mistake(HOSTS, "a preset that needs a host", ("run", "preset=sglang_any"), ("host.ssh.destination: is missing",)),
    Mistake(HOSTS, "a destination that is an address", (*REMOTE, "host.ssh.destination=ssh://gpu1"), ("host.ssh",)),
    Mistake(HOSTS, "a host that nobody knows", (*REMOTE, "host.ssh.destination=gpu1.invalid"), ("gpu1.invalid: ssh", "is it spelt right?"), code=ExitCode.ABORTED),
    Mistake(HOSTS, "a host folder that is relative", ("run", "host.state_dir=state"), ("host.state_dir: 'state'", "should begin with / or ~/")),
    Mistake(HOSTS, "an SSH setting for this machine", ("run", "host.ssh.destination=gpu1"), ("host.ssh", "host=ssh")),
    Mistake(HOSTS, "hosts without a shared database", ("run", "hosts=[local,ssh]"), ("study.storage", "postgresql://HOST/DATABASE")),
    Mistake(HOSTS, "ports the wrong way round", ("run", "host.port_low=19000"), ("host.port_high: ", "port_low (19000)")),
)  # fmt: skip
