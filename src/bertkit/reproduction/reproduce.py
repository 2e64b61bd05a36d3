"""Every table of BERT's paper again: all of its systems on one corpus, by one loop.

    OUT/corpus.jsonl, tokenizers/, data/    what pre-trainings read
    OUT/pretraining/NAME/                   one run a network; it serves every table that wants it
    OUT/finetuning/NAME/QUESTION/           one run a network and task
    OUT/NAME.md, .png, .json                a table, ours beside the paper's
    OUT/reproduction.md                     all tables that are there

The same command goes on after an interruption; started several times it divides the work among the processes, and
under torchrun the pre-trainings are divided batch by batch.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertkit import config
from bertkit.config import Setting, apply
from bertkit.errors import did_you_mean, usage_error
from bertkit.finetuning.defaults import finetuning_profile_settings
from bertkit.finetuning.record import FinetuneRun
from bertkit.finetuning.results import FinetuneResult
from bertkit.finetuning.run import finetune
from bertkit.pretraining.cost import read_cost
from bertkit.report.progress import Progress
from bertkit.reproduction.benchmarks import Question, ask
from bertkit.reproduction.corpora import Corpora, find_corpus
from bertkit.reproduction.pages import Cost, Finding, FoundRow, FoundTable, write_tables
from bertkit.reproduction.paper import AVERAGE, HIDDEN, PERPLEXITY, Column, Row, Table, find_tables
from bertkit.reproduction.plan import ReproductionPlan as ReproductionPlan
from bertkit.reproduction.plan import measure_speed
from bertkit.reproduction.pretrainings import Settings
from bertkit.reproduction.scales import SCALES, Scale
from bertkit.reproduction.systems import CASED, PRETRAINING, Contender, Systems
from bertkit.runs import read_run
from bertkit.scheduling import Unit, in_order, run_all
from bertkit.storage.atomic import explain_output, make_folder, read_json, write_json
from bertkit.training.distributed import rank

_RECORD = "reproduction.json"
_PERCENT = 100
_AT_ANY_SCALE = ("lm_loss_weight", "task.both_orders", "task.crf", "task.context")
_UNASKED = {PERPLEXITY, AVERAGE, HIDDEN}


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """The tables that were made, and the page that has them all."""

    page: Path
    tables: list[FoundTable]


def reproduce(
    table: str,
    *,
    data: Path,
    output: Path,
    scale: str = "tiny",
    corpus: Sequence[Path] = (),
    vectors: Path | None = None,
    settings: Sequence[Setting] = (),
    command: str = "",
    progress: Progress,
) -> Reproduction:
    """Make ``table`` (or ``all``) at a ``scale`` into ``output``, or what of it is missing.

    ``data`` has the files of the tasks as BERTKIT_DATA has, and the ``corpus`` below ``corpora`` unless it is named.
    ``vectors`` are a file in GloVe's format; without one they are learned on the corpus. ``settings`` change fields of
    the scale. ``command`` is what the page says to type.
    """
    chosen = _choose_scale(scale, settings)
    files = tuple(corpus) or find_corpus(data)
    workshop = _Workshop(data, Corpora(scale=chosen, files=files, output=output, vectors_file=vectors))
    tables = find_tables(table, chosen.snapshots)
    works = [work for each in tables for work in workshop.works(each)]
    if rank() == 0:
        workshop.begin()
    # Under torchrun all make the networks together, and nobody should have to wait there for another's fine-tuning.
    networks = [work for work in in_order(works) if work.shared]
    failed = run_all([*networks, *works], output / "locks", progress)
    found = [workshop.find(each, failed, command) for each in tables]
    known = [each.name for each in find_tables("all", chosen.snapshots)]
    page = write_tables(found, output, _open_page(chosen), known) if rank() == 0 else output
    return Reproduction(page=page, tables=found)


def plan_reproduction(
    table: str,
    *,
    data: Path,
    scale: str = "tiny",
    corpus: Sequence[Path] = (),
    vectors: Path | None = None,
    settings: Sequence[Setting] = (),
) -> ReproductionPlan:
    """What ``reproduce`` would train, and what it would cost on this machine; nothing is read but the tasks' files."""
    chosen = _choose_scale(scale, settings)
    corpora = Corpora(scale=chosen, files=tuple(corpus), output=Path(), vectors_file=vectors)
    workshop, contenders = _Workshop(data, corpora), Systems(corpora)
    agenda = in_order(work for each in find_tables(table, chosen.snapshots) for work in workshop.works(each))
    return ReproductionPlan(
        pretrainings=[contenders.plan(work.name.removeprefix(PRETRAINING)) for work in agenda if work.shared],
        finetunings=chosen.seeds * sum(work.name.startswith("finetuning") for work in agenda),
        speed=measure_speed(),
    )


def _choose_scale(name: str, settings: Sequence[Setting]) -> Scale:
    if name not in SCALES:
        raise usage_error(f'no scale named "{name}".{did_you_mean(name, SCALES)} There are: {", ".join(SCALES)}.')
    return apply(SCALES[name], settings)


class _Workshop:
    """Everything that tables of one scale need, below one folder."""

    def __init__(self, data: Path, corpora: Corpora) -> None:
        self._scale = corpora.scale
        self._data = data
        self._corpora = corpora
        self._output = corpora.output
        self._contenders = Systems(corpora)
        self._questions: dict[str, Question] = {}

    def begin(self) -> None:
        """Write what the folder is for, or see that it is for this."""
        record = config.to_json(self._corpora)
        del record["output"]  # it may be moved
        path = self._output / _RECORD
        if path.exists() and (other := _find_changes(read_json(path), record)):
            raise usage_error(
                f"{self._output} holds tables of another scale or corpus: {', '.join(other)} not as there. "
                "Choose another -o folder."
            )
        with explain_output(self._output):
            make_folder(self._output)
        write_json(path, record)

    def works(self, table: Table) -> list[Unit]:
        """All that the cells of a table are read from."""
        works: list[Unit] = []
        for row in table.rows:
            for column in table.columns:
                if row.contender is None:
                    continue
                if column.question == PERPLEXITY:
                    works.append(self._contenders.find(row.contender).work)
                elif column.question not in _UNASKED:
                    works += self._finetunings(*self._asked(row, column)).values()
        return works

    def find(self, table: Table, failed: Mapping[str, str], command: str) -> FoundTable:
        """The table with what its runs came to."""
        rows = [self._find_row(row, table, failed) for row in table.rows]
        return FoundTable(
            name=table.name,
            title=table.title,
            columns=[column.name for column in table.columns],
            rows=rows,
            notes=self._notes(table),
            command=command,
            curves=list(table.curves),
        )

    def _asked(self, row: Row, column: Column) -> tuple[Contender, Question]:
        """Who is asked what in a cell."""
        assert row.contender is not None
        name = row.question or column.question
        if name not in self._questions:
            self._questions[name] = ask(name, self._data, self._scale)
        cased = name.startswith("ner") and not self._scale.cased and self._contenders.has(row.contender + CASED)
        return self._contenders.find(row.contender + CASED if cased else row.contender), self._questions[name]

    def _finetunings(self, contender: Contender, question: Question) -> dict[Path, Unit]:
        """A run for every learning rate that is tried, by its folder."""
        folder = self._output / "finetuning" / contender.name / question.name.replace(":", "-")
        settings = self._settings(contender, question)
        rates = self._scale.learning_rates
        if "optimizer.lr" in settings or len(rates) == 1:
            return {folder: self._finetuning(contender, question, {"optimizer.lr": rates[0], **settings}, folder)}
        folders = {folder / f"lr={rate:g}": rate for rate in rates}
        return {
            output: self._finetuning(contender, question, {**settings, "optimizer.lr": rate}, output)
            for output, rate in folders.items()
        }

    def _settings(self, contender: Contender, question: Question) -> dict[str, Any]:
        """Those of the task, of the makers of the network, and of the scale; the later ones win."""
        published = finetuning_profile_settings(contender.profile, question.task)
        if self._scale.profile != "paper":  # what they train on holds at any scale, and how fast they do not
            published = {path: value for path, value in published.items() if path in _AT_ANY_SCALE}
        return {**question.settings, **published, **contender.settings}

    def _finetuning(self, contender: Contender, question: Question, settings: Settings, output: Path) -> Unit:
        scale = self._scale
        run = FinetuneRun(
            task=question.task,
            model=contender.model,
            output=output,
            seeds=scale.seeds,
            epochs=scale.epochs,
            batch_size=scale.batch,
            limit=scale.limit,
            dev_limit=scale.dev_limit,
        )
        run = apply(run, [Setting(path, value, f"--scale {scale.name}") for path, value in settings.items()])
        return Unit(
            name=str(output.relative_to(self._output)),
            make=lambda progress: finetune(run, progress),
            is_done=(output / "results.json").exists,
            needs=[contender.work],
        )

    def _find_row(self, row: Row, table: Table, failed: Mapping[str, str]) -> FoundRow:
        if row.contender is None:
            return FoundRow(name=row.name, findings=[Finding(paper=each) for each in row.paper])
        findings: list[Finding] = []
        seconds: dict[str, float] = {}
        for column, paper in zip(table.columns, row.paper, strict=True):
            if column.question == PERPLEXITY:
                findings.append(self._find_perplexity(row, paper))
            elif column.question == AVERAGE:
                findings.append(_average(findings, paper))
            elif column.question == HIDDEN:
                findings.append(Finding(paper=paper))
            else:
                finding, seconds[row.question or column.question] = self._find_cell(row, column, paper, failed)
                findings.append(finding)
        contender = self._contenders.find(row.contender)
        return FoundRow(
            name=self._contenders.describe(row.name, row.contender),
            findings=findings,
            cost=_read_costs(contender, sum(seconds.values())),
            step=contender.step,
        )

    def _find_cell(
        self, row: Row, column: Column, paper: float | None, failed: Mapping[str, str]
    ) -> tuple[Finding, float]:
        """The scores with the rate that was best on dev, and the seconds of all rates."""
        works = self._finetunings(*self._asked(row, column))
        results = [
            config.from_json(FinetuneResult, read_json(path / "results.json"), source=str(path / "results.json"))
            for path, work in works.items()
            if work.is_done()
        ]
        if not results:
            reasons = [failed[work.name] for work in works.values() if work.name in failed]
            return Finding(paper=paper, why="failed" if reasons else ""), 0.0
        best = max(results, key=lambda result: result.mean)
        scores = [_PERCENT * seed.scores[column.score] for seed in best.seeds if column.score in seed.scores]
        return Finding(ours=scores, paper=paper), sum(seed.seconds for each in results for seed in each.seeds)

    def _find_perplexity(self, row: Row, paper: float | None) -> Finding:
        assert row.contender is not None
        run = self._contenders.find(row.contender).pretraining
        heldout = read_run(run)["heldout"] if run and (run / "run.json").exists() else {}
        found = [value for name, value in (heldout or {}).items() if name.endswith("_perplexity")]
        return Finding(ours=found[:1], paper=paper)

    def _notes(self, table: Table) -> list[str]:
        asked = {row.question or column.question for row in table.rows for column in table.columns if row.contender}
        files = [self._questions[name] for name in sorted(asked - _UNASKED)]
        stand_ins = list(dict.fromkeys(f"{each.name.partition(':')[0]}: {each.files}." for each in files if each.files))
        return [*filter(None, [table.note]), *stand_ins]


def _find_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The fields that two records of a workshop, or their scales, do not agree in."""
    old, new = ({**each, **each["scale"]} for each in (before, now))
    return [name for name in new if name != "scale" and new[name] != old.get(name)]


def _read_costs(contender: Contender, finetuning_seconds: float) -> Cost:
    if contender.pretraining is None or not (contender.pretraining / "model").exists():
        return Cost(finetuning_seconds=finetuning_seconds)
    cost = read_cost(contender.pretraining)
    return Cost(
        parameters=cost.parameters,
        pretraining_flop=cost.flop * contender.share,
        pretraining_seconds=cost.seconds * contender.share,
        finetuning_seconds=finetuning_seconds,
    )


def _average(findings: Sequence[Finding], paper: float | None) -> Finding:
    """The mean of the columns; none while one is missing."""
    means = [summary.mean for finding in findings if (summary := finding.summary) is not None]
    return Finding(ours=[statistics.fmean(means)] if len(means) == len(findings) else [], paper=paper)


def _open_page(scale: Scale) -> str:
    """The head of the page: what the figures are."""
    meaning = {
        "smoke": "This proves that every path is there. Its figures mean nothing.",
        "tiny": "Networks and corpus are a small fraction of the paper's: orders may agree, figures cannot.",
    }
    seeds = f"{scale.seeds} seed{'s' * (scale.seeds > 1)}"
    limit = "all" if scale.limit is None else f"at most {scale.limit:,}"
    dev = "all" if scale.dev_limit is None else f"at most {scale.dev_limit:,}"
    return f"""# The tables of BERT's paper, scale {scale.name}

{meaning.get(scale.name, "")}

A cell is ours / the paper's, in per cent; ours is the mean ± standard deviation of {seeds}, each with the best of
{scale.epochs} epochs on dev. BERT-Base is {scale.base} (layers/width/heads), BERT-Large {scale.large}; pre-training
takes {scale.steps:,} steps of {scale.batch_size} rows. Tasks have {limit} training and {dev} dev examples.
"""
