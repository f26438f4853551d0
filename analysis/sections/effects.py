"""The part of the report on parameters: what each value does, which matter, and which work together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from analysis.blocks import Block, Bullets, Figure, Heading, Paragraph, Section, Table
from analysis.markup import MISSING, Markdown, count, inline
from analysis.plots.bars import bars
from analysis.plots.chart import symbol
from analysis.plots.forest import Frame, Row, forest
from analysis.reading import Reading
from sweeper.records import TrialRecord, TrialState
from sweeper.spec import FlagValue
from sweeper.statistics.effects import SIGNIFICANT, Effect, Effects, Interaction, effects_of
from sweeper.statistics.importances import FEW_TRIALS, importances

MAX_TRIALS = 4000
"""Of more trials, the newest so many are looked at."""

MAX_ROWS = 60
MAX_INTERACTIONS = 8


def effects(reading: Reading) -> Section | None:
    """Effects with intervals, importances, interactions; None where no parameter was varied."""
    trials = [t for t in reading.trials if not t.is_baseline and _value(reading, t) is not None][-MAX_TRIALS:]
    settings = [_settings(trial) for trial in trials]
    values = [trial.mean(reading.objective) or 0.0 for trial in trials]
    if len(trials) < 2:
        return None
    found = effects_of(settings, values)
    if not found.effects:
        return None
    shares = importances(settings, values)
    blocks: list[Block] = [Paragraph(_words(found)), *_figure(found), *_importances(shares, len(trials))]
    return Section("What the parameters do", [*blocks, _table(found), *_interactions(found)])


def _value(reading: Reading, trial: TrialRecord) -> float | None:
    value = trial.mean(reading.objective) if trial.state is TrialState.COMPLETE else None
    return value if value is not None and value > 0 else None


def _settings(trial: TrialRecord) -> Mapping[str, FlagValue]:
    config = trial.canonical
    return {**config.flags, **{f"env.{name}": value for name, value in config.env.items()}}


def _words(found: Effects) -> Markdown:
    if found.left_pct is None:
        few = f"{count(found.num_trials, 'measured configuration')} without the baseline"
        return Markdown(
            f"{few}: too few to tell what single parameters do. How often each value was tried is below."
        )
    return Markdown(
        f"From {count(found.num_trials, 'measured configuration')}: what a value does, all others being equal, "
        "against the value that was tried most often. Together they leave "
        f"{found.left_pct:.1f} % open (standard deviation). The search"
        " has chosen where to look, so an effect holds near the best rather than everywhere."
    )


def _figure(found: Effects) -> list[Figure]:
    if found.left_pct is None:
        return []
    rows: list[Row] = []
    for name, levels in _by_parameter(found.effects).items():
        rows.append(Row(name))
        for each in levels:
            if each.reference:
                rows.append(Row(each.level, 0.0, kind="base", shape="diamond", hint=f"{name}: {each.level}"))
            elif each.pct is not None:
                hint = f"{name} {each.level}: {each.pct:+.1f} % ({each.low:+.1f} to {each.high:+.1f} %)"
                rows.append(Row(each.level, each.pct, each.low, each.high, _kind(each), _shape(each), hint))
    if len(rows) > MAX_ROWS:
        rows = rows[:MAX_ROWS]
    title = "What single values do"
    words = "Whiskers are 90 % intervals. Values whose whiskers cross the line may as well do nothing."
    chart = forest(rows, Frame("effects", title, words, "% against the value tried most"), 0.0)
    legend = [
        (symbol("base", "diamond"), "tried most often"),
        (symbol("k2", "triangle"), "raises it"),
        (symbol("k1", "down"), "lowers it"),
        (symbol("muted"), "cannot be told from nothing"),
    ]
    return [Figure(Markdown(title), Markdown(words), chart.svg, legend)]


def _kind(each: Effect) -> str:
    return {"triangle": "k2", "down": "k1"}.get(_shape(each), "muted")


def _shape(each: Effect) -> str:
    if each.low is not None and each.low > 0:
        return "triangle"
    return "down" if each.high is not None and each.high < 0 else "circle"


def _by_parameter(effects: Sequence[Effect]) -> dict[str, list[Effect]]:
    found: dict[str, list[Effect]] = {}
    for each in effects:
        found.setdefault(each.parameter, []).append(each)
    return found


def _table(found: Effects) -> Table:
    rows = [
        [
            inline(each.parameter),
            inline(each.level),
            Markdown(str(each.num_trials)),
            *(_effect_cells(each) if found.left_pct is not None else []),
        ]
        for each in found.effects
    ]
    columns = {"parameter": "l", "value": "l", "trials": "r"}
    if found.left_pct is not None:
        columns |= {"effect (%)": "r", "90 % interval (%)": "l"}
    extra = frozenset(range(MAX_ROWS, len(rows)))
    caption = Markdown("The values of each parameter: how often tried, and what each does against the commonest")
    return Table(caption, columns, rows, extra=extra, noun="value", folded=True)


def _effect_cells(each: Effect) -> list[Markdown]:
    if each.reference:
        return [Markdown("0"), Markdown("what the others are compared with")]
    if each.pct is None or each.low is None or each.high is None:
        return [MISSING, MISSING]
    return [Markdown(f"{each.pct:+.1f}"), Markdown(f"{each.low:+.1f} to {each.high:+.1f}")]


def _importances(shares: Mapping[str, float], num_trials: int) -> list[Figure]:
    if not shares:
        return []
    shown = {name: 100 * share for name, share in shares.items() if share >= 0.005}
    words = (
        f"{', '.join(f'{inline(name)} {pct:.0f} %' for name, pct in shown.items())}. How much each parameter "
        "tells the best tenth of the trials from the others (Optuna's PED-ANOVA): what to look at next, not what "
        "is better."
    )
    if num_trials < FEW_TRIALS:
        words += f" Drawn from {count(num_trials, 'trial')}, these shares mean little."
    title = "Importances"
    return [Figure(Markdown(title), Markdown(words), bars(shown, "importances", title, words).svg)]


def _interactions(found: Effects) -> list[Block]:
    if found.left_pct is None:
        return []
    head = Heading(Markdown("Interactions"))
    if not found.interactions:
        none = "None was seen: no pair of parameters does significantly more, or less, than the two by themselves."
        return [head, Paragraph(Markdown(none))]
    words = (
        f"Pairs that do something together which neither does alone (p below {SIGNIFICANT}, corrected for the "
        "number of pairs). Where two parameters were mostly changed together, the pair named may stand for "
        "another."
    )
    return [
        head,
        Paragraph(Markdown(words)),
        Bullets([_told(each) for each in found.interactions[:MAX_INTERACTIONS]]),
    ]


def _told(each: Interaction) -> Markdown:
    (first, second), (here, there) = each.parameters, each.levels
    odds = "p < 0.001" if each.p < 0.001 else f"p = {each.p:.3f}"
    more = "more" if each.pct > 0 else "less"
    return Markdown(
        f"{inline(first)} and {inline(second)} ({odds}): {inline(here)} with {inline(there)} does "
        f"{abs(each.pct):.1f} % {more} than the two by themselves would ({count(each.num_trials, 'trial')})"
    )
