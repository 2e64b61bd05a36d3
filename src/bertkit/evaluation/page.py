"""An evaluation as one self-contained HTML page: no network access, no script, a light and a dark theme."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bertkit._version import __version__
from bertkit.escaping import to_html
from bertkit.evaluation.drawings import draw_calibration, draw_intervals
from bertkit.evaluation.html_tables import html_matrix, html_table
from bertkit.evaluation.report import Calibration, Classes, Evaluation, LengthScore
from bertkit.evaluation.training_facts import TrainingFacts, render_seeds, render_settings
from bertkit.metrics.classification import ClassScore
from bertkit.report.html_page import html_page
from bertkit.scores import kind_of
from bertkit.task_types import ExampleReport

_MAX_TEXT = 600
_MAX_CLASSES_IN_MATRIX = 40
_SHARES, _ERRORS = 1.0, 0.0
"""Where the scale of shares and correlations ends at least, and that of errors, which have the unit of the answers."""

_STYLE = """
:root { color-scheme: light dark; --ink: #23262e; --faint: #5b6270; --rule: #dcdfe5; --page: #fff; --blue: #24618f;
  --shade: 36, 97, 143; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8eaee; --faint: #a4abb8; --rule: #3a3f4a; --page: #16181d;
  --blue: #7db4dd; --shade: 125, 180, 221; } }
body { background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto;
  max-width: 60rem; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
p.about, caption { color: var(--faint); } caption { text-align: left; padding-bottom: .4rem; }
div.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--rule); padding: .3rem .8rem .3rem 0; text-align: left; vertical-align: top; }
td.number, th.number { text-align: right; }
td.text { max-width: 34rem; overflow-wrap: anywhere; white-space: pre-wrap; }
td.cell { text-align: right; padding: .3rem .6rem; }
p.verdict { font-weight: 600; }
svg, img { max-width: 100%; height: auto; } svg text { fill: var(--faint); font-size: 12px; }
svg .grid { stroke: var(--rule); } svg .faint { stroke: var(--faint); } svg .dashed { stroke-dasharray: 4 3; }
svg .line { fill: none; stroke: var(--blue); stroke-width: 2; } svg .mark { fill: var(--blue); }
svg .range { stroke: var(--blue); stroke-width: 4; opacity: .45; }
h1, p { overflow-wrap: anywhere; } pre { white-space: pre-wrap; overflow-wrap: anywhere; color: var(--faint); }
@media (max-width: 40rem) {
  body { margin: 1rem auto; }
  table.stack thead { position: absolute; left: -999rem; }
  table.stack, table.stack tbody, table.stack tr, table.stack th, table.stack td { display: block; text-align: left; }
  table.stack th, table.stack td { border: 0; padding: .1rem 0; }
  table.stack tr { border-bottom: 1px solid var(--rule); }
  table.stack td::before { content: attr(data-label) ": "; color: var(--faint); }
  div.wide svg { max-width: none; }
}
@media print {
  :root { color-scheme: light; --ink: #000; --faint: #444; --rule: #bbb; --page: #fff; --blue: #24618f;
    --shade: 36, 97, 143; }
  body { font-size: 10pt; margin: 0; max-width: none; } div.wide { overflow: visible; }
  h2 { break-after: avoid; } tr, svg, p { break-inside: avoid; } td.cell { print-color-adjust: exact; }
}
"""


def render_page(evaluation: Evaluation, *, model: str, date: str, training: TrainingFacts | None = None) -> str:
    """The HTML of the page. ``model`` is the name of the model, ``training`` how it was trained, if that is known."""
    title = f"{evaluation.task}, {evaluation.split}"
    parts = [
        f"<h1>{to_html(title)}</h1>",
        f'<p class="about">{to_html(model)}, {evaluation.examples:,} examples, computed in {evaluation.precision}, '
        f"bertkit {__version__}, {to_html(date)}</p>",
        *_verdict(evaluation),
        *_scores(evaluation),
        *(_notes(evaluation.notes) if evaluation.notes else ()),
        *(render_seeds(training) if training else ()),
        *(_classes(evaluation.classes) if evaluation.classes else ()),
        *(_parts(evaluation.parts) if evaluation.parts else ()),
        *(_calibration(evaluation.calibration) if evaluation.calibration else ()),
        *_lengths(evaluation.lengths, evaluation.metric),
        *_worst(evaluation.worst),
        *(render_settings(training) if training else ()),
    ]
    return html_page(title, _STYLE, parts)


def _scores(evaluation: Evaluation) -> Iterable[str]:
    rows = [(name, each.value, each.low, each.high) for name, each in evaluation.scores.items()]
    yield "<h2>Scores</h2>"
    title = "Scores with their intervals, as in the table below."
    for widest in (_SHARES, _ERRORS):
        if drawn := [row for row in rows if _widest(row[0]) == widest]:
            yield _wide(draw_intervals(drawn, title, widest=widest))
    caption = f"95 % intervals: percentile bootstrap over examples, {evaluation.resamples:,} resamples."
    yield html_table(caption, ("score", "value", "from", "to"), rows)


def _verdict(evaluation: Evaluation) -> Iterable[str]:
    """The comparison with the baselines, and the reasons to distrust the scores."""
    if evaluation.verdict:
        yield f'<p class="verdict">{to_html(evaluation.verdict)}</p>'
    if evaluation.warnings:
        yield f"<ul>{''.join(f'<li>{to_html(warning)}</li>' for warning in evaluation.warnings)}</ul>"
    if evaluation.baselines:
        names = list(evaluation.scores)
        rows = [
            ("this model", *evaluation.values()),
            *((each.name, *(each.scores.get(name, "") for name in names)) for each in evaluation.baselines),
        ]
        yield html_table("Trivial methods, fitted on the training data, on the same examples.", ("", *names), rows)


def _notes(notes: Sequence[str]) -> Iterable[str]:
    yield "<h2>Notes</h2>"
    yield f"<ul>{''.join(f'<li>{to_html(note)}</li>' for note in notes)}</ul>"


def _classes(classes: Classes) -> Iterable[str]:
    yield "<h2>Classes</h2>"
    yield _tabulate_classes("class", "examples", classes.rows)
    names = [each.name for each in classes.rows]
    if len(names) <= _MAX_CLASSES_IN_MATRIX:
        yield "<h2>Confusion</h2>"
        yield html_matrix(names, classes.confusion)
        return
    mistakes = [
        (gold, answer, count)
        for gold, row in zip(names, classes.confusion, strict=True)
        for answer, count in zip(names, row, strict=True)
        if gold != answer and count
    ]
    yield "<h2>Most frequent confusions</h2>"
    most = sorted(mistakes, key=lambda each: -each[2])[:_MAX_CLASSES_IN_MATRIX]
    yield html_table("All counts are in report.json.", ("gold class", "predicted", "examples"), most)


def _parts(parts: Sequence[ClassScore]) -> Iterable[str]:
    yield "<h2>By label or type</h2>"
    yield _tabulate_classes("label or type", "count", parts)


def _tabulate_classes(what: str, support: str, rows: Sequence[ClassScore]) -> str:
    caption = f"Precision: correct share of the predictions; recall: found share of the gold; {support}: gold count."
    cells = [(each.name, each.precision, each.recall, each.f1, each.support) for each in rows]
    return html_table(caption, (what, "precision", "recall", "F1", support), cells)


def _calibration(calibration: Calibration) -> Iterable[str]:
    yield "<h2>Calibration</h2>"
    yield (
        f"<p>Expected calibration error {calibration.error:.4f}: the mean distance of the accuracy from the predicted "
        "probability. Dots below the dashed line are overconfident.</p>"
    )
    yield _wide(draw_calibration(calibration.bins))
    rows = [
        (f"{each.low:.0%} to {each.high:.0%}", each.count, each.confidence, each.accuracy) for each in calibration.bins
    ]
    yield html_table("By predicted probability.", ("bin", "predictions", "mean probability", "accuracy"), rows)


def _lengths(lengths: Sequence[LengthScore], metric: str) -> Iterable[str]:
    figures = [
        (f"{each.shortest} to {each.longest}", each.score.value, each.score.low, each.score.high) for each in lengths
    ]
    yield "<h2>By length</h2>"
    title = f"{metric} by the number of words, as in the table below."
    yield _wide(draw_intervals(figures, title, widest=_widest(metric)))
    rows = [(words, each.examples, *scores) for (words, *scores), each in zip(figures, lengths, strict=True)]
    yield html_table(
        f"{metric} by the number of words in the input.", ("words", "examples", metric, "from", "to"), rows
    )


def _worst(worst: Sequence[ExampleReport]) -> Iterable[str]:
    yield "<h2>Worst examples</h2>"
    if not worst:
        yield "<p>All predictions are correct.</p>"
        return
    rows = [(each.id, _shorten(each.text), each.gold, each.answer, each.error) for each in worst]
    caption = "The largest errors first: the most confident wrong classes, the largest differences, the lowest scores."
    yield html_table(caption, ("id", "text", "gold", "predicted", "error"), rows, stacks=True)


def _widest(score: str) -> float:
    """Where the scale of a drawing ends at least."""
    return _ERRORS if kind_of(score).is_error else _SHARES


def _wide(drawing: str) -> str:
    """A drawing that a narrow screen scrolls instead of shrinking its letters."""
    return f'<div class="wide">{drawing}</div>'


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT] + " …"
