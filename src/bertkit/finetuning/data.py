"""The examples of a fine-tuning run, read once for all its seeds. Those of train are encoded once, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bertkit.batch import Feature, IntArray
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.contracts import Example, SubwordTokenizer, Tokenizer
from bertkit.data.batches import FeatureSource
from bertkit.errors import count_of, data_error, list_names, usage_error, verb_of
from bertkit.finetuning.activations import ActivationCache
from bertkit.finetuning.baselines import Baseline, describe_baselines, fit_baselines, read_extra_dev
from bertkit.finetuning.distillation import add_soft_targets
from bertkit.finetuning.record import FinetuneRun
from bertkit.finetuning.starting_point import keeps_heads
from bertkit.objectives.clm import label_next
from bertkit.report.progress import Progress
from bertkit.task_types import FileTask, describe_truncation

_MANY_UNKNOWN = 0.1
"""Share of the tokens. Text in the language of a vocabulary of subwords has less than 0.001."""


@dataclass(frozen=True, kw_only=True)
class FinetuningData:
    """Data of a fine-tuning run: encoded training features, dev examples, and cached activations of a frozen encoder.

    ``num_examples`` counts the training examples (one may have several features), and ``extra_dev`` has the examples of
    other dev sets by split, such as ``dev_mismatched``.
    """

    run: FinetuneRun
    model_folder: ModelFolder
    train: FeatureSource
    num_examples: int
    dev: Sequence[Example]
    extra_dev: Mapping[str, Sequence[Example]]
    activations: ActivationCache
    baselines: Sequence[Baseline] = ()

    @property
    def tokenizer(self) -> SubwordTokenizer:
        """The tokenizer of the model."""
        return self.model_folder.tokenizer

    def fits(self, run: FinetuneRun) -> bool:
        """Whether ``run`` reads the same examples, encoded in the same way."""
        names = ("task", "model", "limit", "dev_limit", "baseline", "teacher", "unlabelled")
        same_examples = all(getattr(self.run, name) == getattr(run, name) for name in names)
        same_targets = (self.run.layer_weight == 0) == (run.layer_weight == 0)
        return same_examples and same_targets and (self.train.label is None) == (run.lm_loss_weight == 0)

    def for_run(self, run: FinetuneRun) -> FinetuningData:
        """The same data for another run that it fits."""
        assert self.fits(run)
        return replace(self, run=run)


def check_lengths(run: FinetuneRun, model: ModelFolder) -> None:
    """Raise a usage error if the rows of the task may be longer than what ``model``, that of the run, reads."""
    positions = model.positions
    if positions is not None and run.task.max_length > positions:
        raise usage_error(
            f"task.max_length is {run.task.max_length}; {run.model} reads {positions} tokens at most. "
            f"Cut longer inputs: --set task.max_length={positions}"
        )


def load_data(
    run: FinetuneRun, progress: Progress, earlier: FinetuningData | None = None, *, model: ModelFolder | None = None
) -> FinetuningData:
    """Read and encode the examples of ``run``, and report their number and lengths.

    ``model`` is the folder of ``run.model`` if it has been opened before. The activations of a frozen encoder that were
    cached in ``earlier`` are used again where the model is the same. Raises a data error if there are no labelled
    examples.
    """
    task = run.task
    same_model = earlier is not None and earlier.run.model == run.model
    folder = earlier.model_folder if earlier is not None and same_model else model or ModelFolder.open(run.model)
    train, dev = task.reader.train_and_dev()
    train, dev = train[: run.limit], dev[: run.dev_limit]
    if not train or not dev:
        advice = ""
        if train and task.heldout:
            needed = f"two different {task.reader.held_out.noun}"
            advice = f" Nothing can be held out: that takes {needed}. Name a --dev FILE."
        raise data_error(f"{task.name} has {len(train)} training and {len(dev)} dev examples with a label.{advice}")
    if sentence := _describe_limit(run, train):
        progress.say(sentence)
    encoded = [features for _, features in task.encode_all(train, folder.tokenizer)]
    labelled = [feature for each in encoded for feature in each]
    windows = f" in {len(labelled):,} windows" if len(labelled) > len(train) else ""
    progress.say(f"{len(train):,} training{windows} and {len(dev):,} dev examples, {_describe_lengths(labelled)}")
    if sentence := _describe_unknown(run, labelled, folder.tokenizer):
        progress.say(sentence)
    if keeps_heads(run, folder):
        progress.say(f"{run.model} was fine-tuned for the same kind of answers: it keeps its heads")
    if sentence := _describe_truncation(task, encoded, folder.positions):
        progress.say(sentence)
    if run.teacher is not None:
        encoded = add_soft_targets(run, train, encoded, folder, progress)
    features = [feature for each in encoded for feature in each]
    extra_dev = read_extra_dev(task, run.dev_limit)
    baselines = fit_baselines(task, train, dev, extra_dev) if run.baseline else []
    if baselines:
        progress.say(describe_baselines(task.metric, baselines, len(train)))
    data = FinetuningData(
        run=run,
        model_folder=folder,
        train=FeatureSource(features, pad_id=folder.tokenizer.pad_id, label=label_next if run.lm_loss_weight else None),
        num_examples=len(train),
        dev=dev,
        extra_dev=extra_dev,
        activations=earlier.activations if earlier is not None and same_model else ActivationCache(run.output),
        baselines=baselines,
    )
    task.files.close()  # the rows of the tables are not needed during training
    return data


def _describe_limit(run: FinetuneRun, train: Sequence[Example]) -> str:
    """A sentence if a limit leaves out a class, or all but one, as in a file that is sorted by class."""
    if run.limit is None or not run.task.predicts_one_class or len(run.task.labels) == 1:
        return ""
    found = {str(example.label) for example in train}
    missing = [label for label in run.task.labels if label not in found]
    if len(found) > 1:
        advice = "shuffle the file, or raise --limit"
        few = f"the first {count_of(len(train), 'training example')} have none of the"
        noun = verb_of(len(missing), "class", "classes")
        return f"{few} {noun} {list_names(missing)}: {advice}" if missing else ""
    return (
        f"there is nothing to learn in the first {count_of(len(train), 'training example')}, which "
        f'{verb_of(len(train), "has", "have")} only the class "{found.pop()}": shuffle the file, or raise --limit'
    )


def _describe_lengths(features: Sequence[Feature]) -> str:
    lengths = sorted(len(feature) for feature in features)
    return f"{lengths[len(lengths) // 2]} tokens at the median, {lengths[-1]} at most"


def _describe_unknown(run: FinetuneRun, features: Sequence[Feature], tokenizer: Tokenizer) -> str:
    """A sentence if much of the text is unknown to the vocabulary, such as text in another script, or very long words.

    The share is the mean over rows, as a text of one word of 300 letters is a single unknown token.
    """
    if features[0].input_ids.ndim > features[0].segment_ids.ndim:
        return ""  # a word that is unknown has its characters
    around = [tokenizer.start_id, *tokenizer.between_ids, tokenizer.end_id]
    rows = [_real_ids(feature) for feature in features]
    ids, owners = np.concatenate(rows), np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    is_text = ~np.isin(ids, around)
    tokens = np.bincount(owners[is_text], minlength=len(rows))
    unknown = np.bincount(owners[is_text & (ids == tokenizer.unk_id)], minlength=len(rows))
    has_text = tokens > 0
    share = (unknown[has_text] / tokens[has_text]).mean() if has_text.any() else 0.0
    if share < _MANY_UNKNOWN:
        return ""
    return (
        f"on average {share:.0%} of the tokens of a training row are unknown to the vocabulary of {run.model}: choose "
        "a model for the language of the texts, or put spaces into very long words"
    )


def _real_ids(feature: Feature) -> IntArray:
    """The ids of all rows without padding, which may have the id of unknown tokens."""
    if feature.lengths is None:
        return feature.input_ids
    real: IntArray = feature.input_ids[np.arange(len(feature)) < feature.lengths[:, None]]
    return real


def _describe_truncation(task: FileTask, encoded: Sequence[Sequence[Feature]], positions: int | None) -> str:
    """How many tokens the training examples lost, in a sentence; empty if none were truncated."""
    lost = [sum(feature.num_truncated for feature in each) for each in encoded]
    if not any(lost):
        return ""
    share = sum(lost) / (sum(lost) + sum(feature.num_tokens for each in encoded for feature in each))
    count = sum(map(bool, lost))
    said = f"{count:,} of {len(encoded):,} training examples {describe_truncation(task, count)}"
    return f"{said}; {share:.1%} of the tokens are lost. {task.advise_on_truncation(positions)}".rstrip()
