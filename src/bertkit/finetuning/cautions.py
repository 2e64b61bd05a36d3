"""Reasons to distrust the scores of a model, one sentence each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from bertkit.errors import count_of
from bertkit.finetuning.baselines import format_metric
from bertkit.finetuning.results import SeedResult
from bertkit.metrics.bootstrap import interval_by_size
from bertkit.metrics.entities import OUTSIDE
from bertkit.scores import Score, gain_of, is_defined, is_perfect, kind_of
from bertkit.task_types import FileTask, MultiLabelTask, TextClassificationTask
from bertkit.task_types.class_weights import Weightable

_FEW_EXAMPLES = 200
"""Below this, a share near one half is uncertain by seven points or more."""

_FEW_OF_A_CLASS = 10
"""Examples. The recall of a class of 10 is known to 0.3 up or down."""

_ENOUGH_FOR_THRESHOLD = 50
"""Examples of a label from which on its threshold gains little by chance."""

_NEARLY_ALL = 0.99
"""The share of equal answers from which on a model that should tell examples apart does not."""

_MAJORITY = 0.8
"""From this share on, to predict the most frequent class for everything is a good start that is hard to leave."""


def list_cautions(
    task: FileTask,
    gold: Sequence[object],
    predicted: Sequence[object],
    score: Score,
    *,
    trained: FileTask,
    seeds: Sequence[SeedResult],
    split: str = "dev",
    is_training_dev: bool = True,
) -> list[str]:
    """All of them for a model that has this ``score`` on a split of ``task``, with the right answers ``gold``.

    ``predicted`` are its answers, empty where they are not known or not spelled. ``trained`` is the task of its
    training, ``seeds`` are the results, and ``is_training_dev`` says whether its epochs and thresholds were chosen on
    these examples.
    """
    return [
        *_caution_about_answers(gold, predicted, split, trained),
        *(_caution_about_thresholds(trained, gold) if is_training_dev else []),
        *_caution_about_rare_classes(task, gold, split),
        *_caution_about_zero(score, task, gold, split),
        *(_caution_about_epochs(seeds, trained.metric) if seeds else []),
    ]


def caution_beside_interval(num_examples: int, split: str, *, has_interval: bool) -> list[str]:
    """A warning beside a score with its interval, if it has one, where the split has fewer than 200 examples."""
    if num_examples >= _FEW_EXAMPLES:
        return []
    shown = "as its interval shows" if has_interval else "and so few have no interval"
    return [f"with {count_of(num_examples, f'{split} example')} the score is uncertain, {shown}"]


def caution_about_size(num_examples: int, metric: str, score: Score) -> list[str]:
    """A warning beside a ``score`` without its interval, where dev has fewer than 200 examples."""
    if num_examples >= _FEW_EXAMPLES or not is_defined(score):
        return []
    low, high = interval_by_size(metric, score, num_examples)
    ends = f"{count_of(num_examples, 'other')} may give {format_metric(metric, low)} to {format_metric(metric, high)}"
    what_it_means = ends if is_defined(low) else "and so few say little"
    return [f"with {count_of(num_examples, 'dev example')} {metric} is uncertain: {what_it_means}"]


def _caution_about_answers(
    gold: Sequence[object], predicted: Sequence[object], split: str, trained: FileTask
) -> list[str]:
    """The same answer for every example of a split, although the right answers differ, or for nearly every one."""
    if not predicted or len({str(answer) for answer in gold}) < 2:
        return []
    ((answer, count),) = Counter(predicted).most_common(1)
    share = sum(each == answer for each in gold) / len(gold)
    if count < len(predicted):
        if count < _NEARLY_ALL * len(predicted) or share >= _MAJORITY:
            return []
        which = f"{count:,} of {len(predicted):,} {split} examples"
        return [f"the model predicts {_spell(answer)} for {which}: it has learned next to nothing"]
    may_be_weighted = isinstance(trained, Weightable) and not trained.class_weights
    advice = "; --class-weights balanced may help" if may_be_weighted else ""
    majority = f". It is right for {share:.0%} of them{advice}" if share >= _MAJORITY else ""
    return [f"the model predicts {_spell(answer)} for every {split} example: it has learned nothing{majority}"]


def _spell(answer: object) -> str:
    if isinstance(answer, tuple):  # several labels
        return " and ".join(f'"{label}"' for label in answer) or "no label"
    return f'"{answer}"' if answer != "" else "no answer"


def _caution_about_thresholds(task: FileTask, gold: Sequence[object]) -> list[str]:
    """A threshold for each of several labels, chosen on the few examples of dev that have the label.

    A model that knows nothing then has a macro F1 of 0.195 on the 200 dev examples and of 0.133 on others (28 labels,
    17 examples each); with 500 it is 0.174 and 0.142.
    """
    if not isinstance(task, MultiLabelTask):
        return []
    having = sum(len(labels) for labels in gold if isinstance(labels, tuple)) / len(task.labels)
    if having >= _ENOUGH_FOR_THRESHOLD:
        return []
    chosen = f"the threshold of each label was chosen on these dev examples, of which {having:.0f} have it on average"
    return [f"{chosen}: other texts will have lower scores"]


def _caution_about_rare_classes(task: FileTask, gold: Sequence[object], split: str) -> list[str]:
    """A class of few examples, where the score depends on each class and not on each example."""
    if not isinstance(task, TextClassificationTask) or task.metric == "accuracy" or len(gold) < _FEW_EXAMPLES:
        return []
    counts = Counter(str(label) for label in gold)
    rarest = min(counts, key=lambda label: counts[label])
    if counts[rarest] >= _FEW_OF_A_CLASS:
        return []
    few = f'{split} has {count_of(counts[rarest], "example")} of "{rarest}"'
    return [f"{task.metric} is less certain than its interval says: {few}"]


def _caution_about_zero(score: Score, task: FileTask, gold: Sequence[object], split: str) -> list[str]:
    """Nothing is right: a model that tags words finds no entity, as it does after too few steps; or there is none."""
    metric = task.metric
    if score != 0 or kind_of(metric).scale != "share":
        return []
    no_entity = all(isinstance(answer, tuple) and set(answer) <= {OUTSIDE} for answer in gold)
    if no_entity or (isinstance(task, TextClassificationTask) and metric == "f1" and task.positive_class not in gold):
        return [f"{metric} is 0: no {split} example has anything to find, so it says nothing about the model"]
    return [f"{metric} is 0: nothing that the model finds in {split} is right; more --epochs or a higher --lr may help"]


def _caution_about_epochs(seeds: Sequence[SeedResult], metric: str) -> list[str]:
    """More epochs may be better: in its last one every seed was better than in all before. Nothing is said of scores
    that are undefined, or perfect."""
    epochs = len(seeds[0].epochs)
    if not all(is_defined(score) for each in seeds for score in each.scores.values()):
        return []
    if epochs < 2 or not all(_is_improving(metric, [epoch[metric] for epoch in each.epochs]) for each in seeds):
        return []
    return [f"every seed was best in its last epoch: --epochs {2 * epochs} may be better"]


def _is_improving(metric: str, scores: Sequence[Score]) -> bool:
    *earlier, last = scores
    return not is_perfect(metric, last) and all(gain_of(metric, last, each) > 0 for each in earlier)
