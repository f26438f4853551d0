"""The first part of the report: what the study is, the verdict, and the comparison behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from analysis.blocks import Block, Bullets, Paragraph, Section, Statement, Table, Tone
from analysis.markup import (
    ESTIMATES,
    MISSING,
    Markdown,
    bold,
    count,
    duration,
    heading,
    inline,
    link,
    moment,
    number,
    trials,
)
from analysis.reading import Reading
from analysis.sections.steps import next_steps
from sweeper.deciding.verdict import Comparison, VerdictKind
from sweeper.metrics import METRICS
from sweeper.objective import SCORE
from sweeper.records import TrialRecord, TrialState
from sweeper.statistics.stats import CONFIDENCE
from sweeper.storing.damage import MOST_TOLD

MAX_VALUES = 8
_CONFIDENCE = f"{100 * CONFIDENCE:.0f} %"
_INTERVAL = f"{100 * (2 * CONFIDENCE - 1):.0f} % interval"


def title(reading: Reading) -> Markdown:
    """What this is about."""
    return Markdown(f"Sweep {inline(reading.name)}")


def lead(reading: Reading) -> Bullets:
    """How far the study has come, when and where."""
    items = [f"**State:** {_state(reading)}"]
    if reading.recorded:
        counts = ", ".join(
            f"{len(found)} {word}"
            for state, word in (
                (TrialState.COMPLETE, "measured"),
                (TrialState.INFEASIBLE, "infeasible"),
                (TrialState.FAILED, "failed"),
                (TrialState.RUNNING, "unfinished"),
            )
            if (found := reading.in_state(state))
        )
        items.append(f"**Trials:** {len(reading.recorded)} ({counts}), {count(len(reading.launches), 'launch')}")
    if reading.damages:
        items.append(f"**Left out:** {_left_out(reading)}, as *What the numbers depend on* says")
    if reading.span:
        start, end = reading.span
        length = duration(reading.wall_clock_s)
        dated = (
            f"{moment(start)} UTC, the date of the results"
            if start == end
            else f"{moment(start)} to {moment(end)} UTC"
        )
        spent = "" if reading.imported else f", {length} from first start to last stop"
        items.append(f"**Time:** {dated}{spent}")
        hosts = ", ".join(dict.fromkeys(inline(launch.host) for launch in reading.launches))
        items.append(f"**Where:** host {hosts}, {_engine(reading.fingerprint)}")
        items.append(f"**Ranked by:** {_objective(reading)}")
    return Bullets([Markdown(item) for item in items])


def _left_out(reading: Reading) -> str:
    """The first things that cannot be read, and how many there are."""
    places = [inline(damage.place) for damage in reading.damages]
    more = f" and {count(left, 'other thing')}" if (left := len(places) - MOST_TOLD) > 0 else ""
    return f"{'; '.join(places[:MOST_TOLD])}{more} cannot be read"


def _objective(reading: Reading) -> str:
    """What configurations are ranked by, and what that means."""
    text, meaning = inline(reading.objective_text, 1000), METRICS[reading.objective].meaning
    if reading.objective != SCORE:
        return f"{text} ({meaning})"
    if "," in reading.objective_text:
        return f"{text}: their weighted geometric mean, the score"
    return f"{text}, the score"


def _state(reading: Reading) -> str:
    running = reading.in_state(TrialState.RUNNING)
    if not reading.recorded:
        return "nothing has been measured yet."
    if reading.imported:
        return "imported: results that were measured elsewhere, as far as they were recorded there."
    if running:
        words = f"not finished. Begun and not ended ({trials(running)}): being measured now, or interrupted."
        return f"{words} This report shows what is known so far."
    if reading.is_over:
        return "finished."
    if reading.settled:
        words = f"not finished ({inline(reading.ended)}); the same command goes on."
        return f"{words} This report shows what is known so far."
    if reading.last_verdict:
        return "going on. Launches were made since the last verdict; this report counts them in."
    return "not finished. This report shows what is known so far."


def _engine(fingerprint: Mapping[str, str]) -> str:
    name, version, model = (fingerprint.get(k, "") for k in ("engine.name", "engine.version", "model.name"))
    return f"engine {inline(name)} {inline(version)}, model {inline(model)}"


def verdict(reading: Reading) -> Section:
    """The verdict in plain words, with its interval, how far to trust it, and what to do next."""
    blocks: list[Block] = [_headline(reading), Paragraph(inline(reading.verdict.text, 2000))]
    for name, values in reading.differing.items():
        shown = ", ".join(inline(value) for value in values)
        words = f"**Careful: launches differ in {inline(name)}:** {shown}. Such numbers do not compare."
        blocks.append(Paragraph(Markdown(words), Tone.CAREFUL))
    if reading.aside:
        blocks.append(Paragraph(_put_aside(reading), Tone.CAREFUL))
    if reading.advised_launch is not None:
        blocks.append(Paragraph(Markdown(f"{link('How to run it', 'how-to-run-it')} has the command.")))
    if steps := next_steps(reading):
        blocks += [Paragraph(Markdown("What to do next:")), Bullets(steps)]
    return Section("Verdict" if reading.settled else "Verdict so far", blocks)


def _put_aside(reading: Reading) -> Markdown:
    """Which launches the comparison leaves out."""
    left = sorted({found.launch.trial_number for found in reading.aside})
    words = f"{count(len(reading.aside), 'launch')} of another provenance than the newest baseline's"
    below = link("below", "what-the-numbers-depend-on")
    return Markdown(f"**Left out of every comparison: {words}** ({trials(left)}), named {below}.")


def _headline(reading: Reading) -> Statement:
    verdict = reading.verdict
    if verdict.advised is None:
        return Statement(Markdown("No verdict yet."))
    if verdict.kind is VerdictKind.NO_GAIN:
        return Statement(Markdown("Run the baseline: no gain from speculation has been shown."))
    advised = next(row for row in verdict.comparisons if row.trial_number == verdict.advised)
    gain = f"{100 * (advised.speedup - 1):.1f} % faster than the baseline"
    if verdict.kind is VerdictKind.TIE:
        words = f"Run trial {advised.trial_number}, the simplest of {len(verdict.tied)} equals: {gain}."
        return Statement(Markdown(words), Tone.GOOD)
    return Statement(Markdown(f"Run trial {advised.trial_number}: {gain}."), Tone.GOOD)


def comparison(reading: Reading) -> Section | None:
    """The configurations of the verdict against the baseline, each with the values behind its number."""
    verdict, metric = reading.verdict, reading.objective
    if verdict.baseline_value is None or not verdict.comparisons:
        return None
    columns = {
        "trial": "r",
        "configuration": "l",
        heading(metric): "r",
        heading("speedup"): "r",
        _INTERVAL: "l",
        "faster?": "l",
        f"each launch{f' ({unit})' if (unit := METRICS[metric].unit) else ''}": "l",
    }
    baseline = reading.by_number[0]
    first = [
        Markdown("0"),
        Markdown("baseline"),
        number(metric, verdict.baseline_value),
        number("speedup", 1.0),
        MISSING,
        MISSING,
        _values(reading, baseline),
    ]
    rows = [[bold(cell) for cell in first]]
    rows += [_compared_row(reading, row) for row in verdict.comparisons]
    how = (
        "Fresh launches made after the search, in turn with the baseline."
        if verdict.confirmed
        else "Launches of the search itself: enough to see who is ahead, too little to tell that from noise."
    )
    if any(row.estimated for row in verdict.comparisons):
        how += f" {ESTIMATES}"
    if verdict.confirmed:
        how += (
            f" Each end of an interval holds with {_CONFIDENCE} confidence, with the same end of all others. "
            "One that spans 1 is not significant."
        )
    if any(row.num_choosing for row in verdict.comparisons):
        how += " The launches by which a finalist was chosen count a little; choice and drift are allowed for."
    table = Table(Markdown("The configurations of the verdict against the baseline"), columns, rows)
    return Section("Compared with the baseline", [Paragraph(Markdown(how)), table])


def _compared_row(reading: Reading, row: Comparison) -> list[Markdown]:
    return [
        Markdown(str(row.trial_number)),
        inline(row.name),
        number(reading.objective, row.value, estimated=row.estimated),
        number("speedup", row.speedup, estimated=row.estimated),
        _interval(row),
        Markdown(_significance(row)),
        _values(reading, reading.by_number[row.trial_number]),
    ]


def _interval(row: Comparison) -> Markdown:
    if row.low is None or row.high is None:
        return MISSING
    return Markdown(f"{number('speedup', row.low)} to {number('speedup', row.high)}")


def _significance(row: Comparison) -> str:
    if row.low is None or row.high is None:
        return "unknown: not confirmed"
    if row.low > 1:
        return "yes"
    return "no: slower" if row.high < 1 else "not significant"


def _values(reading: Reading, trial: TrialRecord) -> Markdown:
    """The compared launches' values; of a single launch, its passes as well."""
    launches = reading.compared(trial)
    found = [n for n in launches if reading.objective in n.metrics]
    metric = reading.objective
    shown = [number(metric, n.metrics[metric], estimated=bool(n.estimated)) for n in found[:MAX_VALUES]]
    text = _listed(shown, len(found))
    if len(launches) == 1 and len(launches[0].repeat_throughputs) > 1 and reading.objective == "output_throughput":
        passes = launches[0].repeat_throughputs
        shown = [number("output_throughput", value) for value in passes[:MAX_VALUES]]
        text += f" (passes: {_listed(shown, len(passes))})"
    return Markdown(text)


def _listed(shown: Sequence[Markdown], count_of_all: int) -> str:
    left = count_of_all - len(shown)
    return ", ".join(shown) + (f" and {left} more" if left else "") or MISSING
