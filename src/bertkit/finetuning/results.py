"""The results of a fine-tuning run: one record per seed in ``seeds/``, and their summary in ``results.json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bertkit.config.records import from_plain, to_plain
from bertkit.finetuning.baselines import Baseline, verdict
from bertkit.metrics.classification import ClassScore
from bertkit.results import Result
from bertkit.runs import RunFolder, read_run
from bertkit.scores import Score, rank_score, summarize_scores
from bertkit.storage.checksums import read_record, write_checked

RESULTS = "results.json"
_SEEDS = "seeds"


@dataclass(frozen=True, kw_only=True, repr=False)
class SeedResult(Result):
    """One restart: the dev scores after each epoch, and the epoch whose weights are kept.

    ``scores`` are those of the kept epoch, with further dev sets under names such as ``accuracy_mismatched``. ``parts``
    are scores by entity type, or by label where several labels apply to an example.
    """

    seed: int
    epochs: list[dict[str, Score]]
    best_epoch: int
    scores: dict[str, Score]
    seconds: float
    examples_per_second: float
    parts: list[ClassScore] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True, repr=False)
class FinetuneResult(Result):
    """All restarts. ``mean`` and ``sd`` (sample standard deviation, None for one seed) are of the task's metric.

    A score that is undefined, such as the correlation of constant answers, is NaN.

    ``warnings`` are reasons to distrust the scores, one sentence each.
    """

    metric: str
    mean: Score
    sd: float | None
    folder: Path
    seeds: list[SeedResult]
    best: SeedResult
    baselines: list[Baseline] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def verdict(self) -> str:
        """A sentence that compares the mean with the best baseline; empty without baselines."""
        return verdict(self.metric, self.mean, self.baselines)


def summarize_seeds(
    folder: RunFolder, metric: str, seeds: list[SeedResult], baselines: Sequence[Baseline] = ()
) -> FinetuneResult:
    """The result of a run from the results of all its seeds; of equal seeds the first is the best."""
    summary = summarize_scores(metric, [result.scores[metric] for result in seeds])
    return FinetuneResult(
        folder=folder.path,
        metric=metric,
        seeds=seeds,
        mean=summary.mean,
        sd=summary.sd,
        best=max(seeds, key=lambda result: rank_score(metric, result.scores[metric])),
        baselines=list(baselines),
    )


def is_new_best(result: SeedResult, earlier: Sequence[SeedResult], metric: str) -> bool:
    """Whether ``result`` is better than every other finished seed in ``earlier``."""
    score = rank_score(metric, result.scores[metric])
    return all(score > rank_score(metric, each.scores[metric]) for each in earlier if each.seed != result.seed)


def write_seed(folder: RunFolder, result: SeedResult) -> None:
    """Write the record that marks a seed as finished."""
    (folder.path / _SEEDS).mkdir(exist_ok=True)
    write_checked(_seed_file(folder, result.seed), to_plain(result))


def read_seed(folder: RunFolder, seed: int) -> SeedResult | None:
    """The result of a finished seed; None if it is not finished."""
    path = _seed_file(folder, seed)
    return _read_seed(path) if path.exists() else None


def read_seeds(folder: RunFolder) -> list[SeedResult]:
    """The results of all finished seeds, by increasing seed."""
    paths = [path for path in (folder.path / _SEEDS).glob("*.json") if path.stem.isdecimal()]
    return [_read_seed(path) for path in sorted(paths, key=lambda path: int(path.stem))]


def read_results(run: Path) -> FinetuneResult:
    """``results.json`` of the finished fine-tuning in ``run``."""
    file = run / RESULTS
    return from_plain(FinetuneResult, read_record(file), source=str(file))


def find_best_run(results: Mapping[Path, FinetuneResult]) -> Path:
    """The run whose mean on dev is best, of runs with their results."""
    return max(results, key=lambda run: rank_score(results[run].metric, results[run].mean))


def write_results(folder: RunFolder, result: FinetuneResult) -> None:
    """Write ``results.json``."""
    write_checked(folder.path / RESULTS, to_plain(result))


def _read_seed(file: Path) -> SeedResult:
    return from_plain(SeedResult, read_record(file), source=str(file))


def _seed_file(folder: RunFolder, seed: int) -> Path:
    return folder.path / _SEEDS / f"{seed}.json"


def read_finished_run(model: Path) -> FinetuneResult | None:
    """The results of the fine-tuning that made ``model``; None for a model outside of a finished run."""
    return read_results(model.parent) if read_finetuning_record(model) and (model.parent / RESULTS).exists() else None


def read_finetuning_record(model: Path) -> Mapping[str, Any]:
    """The record of the fine-tuning that made ``model``; empty for a model outside of a run."""
    run = model.parent
    record = read_run(run) if (run / "run.json").exists() else {}
    return record if record.get("kind") == "finetune" else {}
