"""Pre-training as a task: its examples are sampled from a corpus, its labels are made from the text itself.

Letters: B examples, T tokens.
"""

from __future__ import annotations

import json
from copy import copy
from dataclasses import dataclass, field, replace
from typing import get_args

import numpy as np
from numpy.typing import NDArray
from torch import nn

from bertkit.batch import IGNORE, Batch, Feature, Token, id_of
from bertkit.contracts import Context, Encoder, Objective, PretrainingObjective, RowKind, SubwordTokenizer
from bertkit.data.features import collate, stack
from bertkit.data.full_sentences import FullSentences
from bertkit.data.mixture import MixedRows, Mixture, Rows
from bertkit.data.running_text import RunningText
from bertkit.data.segments import RowSegments, Sampling, StridedSegments
from bertkit.data.shards import Corpus
from bertkit.errors import usage_error
from bertkit.named_objectives import build_objectives, find_objective
from bertkit.objective_settings import ObjectiveSettings
from bertkit.pretraining.word_streams import StreamSource
from bertkit.ranges import PositiveInt, check_ranges
from bertkit.rng import CounterRng
from bertkit.text.words import WordLevel


@dataclass(frozen=True, kw_only=True)
class PretrainingTask(ObjectiveSettings):
    """What a model is pre-trained on: objectives by the names of their modules, and how rows are sampled.

    The default is the paper's, section 3.1: masked tokens and next sentences. Pairs of segments are sampled if and only
    if an objective needs them, as ``nsp`` does, and texts are cut into two rows if one needs passages. ``copies`` makes
    masks static: the corpus is sampled and masked in that many ways, which are repeated (google-research/bert's
    ``dupe_factor``, 10 there). None makes every epoch different.
    """

    objectives: tuple[str, ...] = ("mlm", "nsp")
    sampling: Sampling = field(default_factory=Sampling)
    copies: PositiveInt | None = None

    def __post_init__(self) -> None:
        check_ranges(self)
        if not self.objectives:
            raise usage_error('task.objectives is empty; it must name at least one, such as ["mlm"].')
        for name in self.objectives:
            _check_objective(name)
        labels = [objective.label for objective in self.objective_classes()]
        if len(set(labels)) != len(labels):
            raise usage_error(f"task.objectives has two objectives with the same label: {', '.join(labels)}.")
        if self.samples_pairs and self.cuts_texts:
            raise usage_error(
                f"task.objectives has {self._objectives_with_rows('pairs')}, which puts two segments into a row, and "
                f"{self._objectives_with_rows('passages')}, which puts two passages into two rows: leave one out."
            )
        for name in ("full_sentences", "running_text"):
            if getattr(self.sampling, name) and self.samples_pairs:
                raise usage_error(
                    f"task.sampling.{name} gives rows of one text, and {self._objectives_with_rows('pairs')} needs "
                    "pairs: leave it out of task.objectives."
                )
        if self.copies is not None and self.masking.final_rate is not None:
            raise usage_error(
                "task.copies keeps the masks of a row, and task.masking.final_rate changes them: leave one of them out."
            )
        if self.reads_streams != (self.targets is not None):
            raise usage_error(
                f"task.objectives is {', '.join(self.objectives)} and task.targets, the number of words to predict, is "
                f"{self.targets}: bilm needs it, and no other objective has it."
            )
        if self.reads_streams and len(self.objectives) > 1:
            raise usage_error(f"{self._objectives_with_rows('streams')} cannot be combined with another objective.")

    def needs(self) -> dict[str, str]:
        """The settings that these ones switch off, and what would switch them on."""
        needed = {} if self.samples_pairs else {"sampling.random_next": "an objective that reads pairs, such as nsp"}
        if not any(objective.reads_masking for objective in self.objective_classes()):
            needed["masking"] = "the objective mlm"
        if not self.reads_streams:
            return needed | {"samples": "the objective bilm"}
        return needed | dict.fromkeys(("sampling", "copies"), "an objective with rows in random order, such as mlm")

    @property
    def samples_pairs(self) -> bool:
        """Whether rows are pairs of segments."""
        return bool(self._objectives_with_rows("pairs"))

    @property
    def cuts_texts(self) -> bool:
        """Whether an example is a text that is cut into two rows."""
        return bool(self._objectives_with_rows("passages"))

    @property
    def reads_streams(self) -> bool:
        """Whether every row of a batch continues the same row of the batch before."""
        return bool(self._objectives_with_rows("streams"))

    def objective_classes(self) -> list[type[PretrainingObjective]]:
        """The classes that ``objectives`` names."""
        return [find_objective(name) for name in self.objectives]

    def build_objectives(self, encoder: Encoder) -> dict[str, Objective]:
        """New heads for ``encoder``, by their labels."""
        return build_objectives(self.objectives, encoder, self)

    def source(self, corpus: Mixture, tokenizer: SubwordTokenizer, *, seq_length: int, seed: int) -> Source:
        """Every example of a corpus split, as batches on demand; streams are those of a single corpus."""
        if self.targets is None:
            return PretrainingSource(self, corpus, tokenizer, seq_length=seq_length, seed=seed)
        if not isinstance(tokenizer, WordLevel):
            raise usage_error(
                f"{self._objectives_with_rows('streams')} predicts whole words, and the corpus has subwords: "
                "bertkit tokenizer train --kind words."
            )
        (single,) = corpus.corpora
        return StreamSource(single, tokenizer, targets=self.targets, seq_length=seq_length, seed=seed)

    def count_specials(self, tokenizer: SubwordTokenizer) -> int:
        """The special tokens of a full example."""
        if self.sampling.running_text or self.reads_streams:
            return 0
        if self.cuts_texts:
            return 4
        return 2 + len(tokenizer.between_ids) * self.samples_pairs

    def _objectives_with_rows(self, rows: str) -> str:
        """The names of the objectives that need these rows."""
        return ", ".join(name for name in self.objectives if find_objective(name).rows == rows)


def _check_objective(name: str) -> None:
    """Raise a usage error for an objective that cannot be a part of a model, or needs rows that there are not."""
    kind = find_objective(name)
    where, label = f"{name}, class {kind.__name__}:", getattr(kind, "label", None)
    if not isinstance(label, str) or "." in label or not label or hasattr(nn.ModuleDict(), label):
        raise usage_error(
            f"{where} label is {json.dumps(label, default=str)}, which torch does not take as the name of a head. "
            "Choose another name without dots."
        )
    if kind.rows not in get_args(RowKind):
        raise usage_error(f'{where} rows is "{kind.rows}". Choose one of {", ".join(get_args(RowKind))}.')
    if kind.context not in (None, *get_args(Context)):
        raise usage_error(
            f'{where} context is "{kind.context}". Choose one of {", ".join(get_args(Context))}, or None.'
        )


@dataclass(frozen=True, kw_only=True)
class CorpusShare:
    """A corpus of a mixture: its share of the rows, and how many times its own rows are read per epoch."""

    folder: str
    share: float
    passes: float


class PretrainingSource:
    """The examples of a split of one corpus or several, labelled; a pure function of (seed, epoch, index).

    With ``task.masking.final_rate`` they also depend on the progress of the run: see ``at``. The examples of the source
    itself are those at its beginning.
    """

    def __init__(
        self, task: PretrainingTask, corpus: Mixture, tokenizer: SubwordTokenizer, *, seq_length: int, seed: int
    ) -> None:
        self.task = task
        self.tokenizer = tokenizer
        self.seq_length = seq_length
        self.seed = seed
        self._objectives = task.objective_classes()
        self._cls, self._sep = _numbers(tokenizer.cls_id), _numbers(tokenizer.sep_id)
        self._between = _numbers(*tokenizer.between_ids)
        rows = [self._open_rows(each, seq_length - task.count_specials(tokenizer)) for each in corpus.corpora]
        self.sampler, self.mixture = rows[0], tuple[CorpusShare, ...]()
        if len(rows) > 1:
            mixed = MixedRows(rows, corpus.shares, seed=seed)
            self.sampler, self.mixture = mixed, _describe_mixture(corpus, mixed)

    def _open_rows(self, corpus: Corpus, max_tokens: int) -> Rows:
        sampling = self.task.sampling
        if sampling.running_text:
            return RunningText(corpus, row_length=max_tokens, seed=self.seed)
        if sampling.full_sentences:
            return FullSentences(corpus, max_tokens=max_tokens, sep_id=int(self._sep[0]))
        return StridedSegments(corpus, sampling, pairs=self.task.samples_pairs, max_tokens=max_tokens, seed=self.seed)

    def __len__(self) -> int:
        return len(self.sampler)

    def batch(self, epoch: int, indices: NDArray[np.int64]) -> Batch:
        """The examples at ``indices`` in this epoch with their labels, (B, T), padded to the longest row."""
        if self.task.copies:
            epoch %= self.task.copies
        encode = self.encode_passages if self.task.cuts_texts else self.encode
        features = [encode(segments) for segments in self.sampler.segments(epoch, indices)]
        batch = collate(features, pad_id=self.tokenizer.pad_id)
        rng = CounterRng(self.seed, epoch, _number_rows(indices, batch))
        for objective in self._objectives:
            batch = objective.add_labels(batch, rng, self.tokenizer, self.task)
            if not isinstance(batch, Batch) or objective.label not in batch.labels:
                what = f'labels named "{objective.label}", which is its label' if isinstance(batch, Batch) else "batch"
                raise usage_error(f"{objective.__module__}: add_labels of {objective.__name__} gives no {what}.")
        return batch

    def at(self, progress: float) -> PretrainingSource:
        """The same examples, masked as when the share ``progress`` of the schedule is done."""
        masking = self.task.masking.at(progress)
        if masking is self.task.masking:
            return self
        source = copy(self)
        source.task = replace(self.task, masking=masking)
        return source

    def encode(self, segments: RowSegments) -> Feature:
        """``[CLS] A [SEP]``, or ``[CLS] A [SEP] B [SEP]`` with the label of the pair (0 next, 1 random).

        Running text is A without special tokens.
        """
        if self.task.sampling.running_text:
            parts = [segments.first]
        elif segments.second is None:
            parts = [self._cls, segments.first, self._sep]
        else:
            parts = [self._cls, segments.first, self._between, segments.second, self._sep]
        input_ids = np.concatenate(parts).astype(np.int64)
        segment_ids = np.zeros(len(input_ids), dtype=np.int64)
        if segments.second is None:
            return Feature(input_ids=input_ids, segment_ids=segment_ids)
        segment_ids[-len(segments.second) - 1 :] = 1
        return Feature(input_ids=input_ids, segment_ids=segment_ids, labels={"nsp": int(segments.is_random)})

    def encode_passages(self, segments: RowSegments) -> Feature:
        """A text as two rows of equal length, with the label 0; one row without a label if it is a single token."""
        tokens = segments.first
        middle = (len(tokens) + 1) // 2
        halves = [half for half in (tokens[:middle], tokens[middle:]) if len(half)]
        label = IGNORE if len(halves) == 1 else 0
        return stack([self.encode(RowSegments(half)) for half in halves], labels={"passages": label})


def _number_rows(indices: NDArray[np.int64], batch: Batch) -> NDArray[np.int64]:
    """(B,) a number for each row: the index of its example, or two numbers of their own for the rows of an example."""
    if batch.rows_per_feature is None:
        return indices
    counts = batch.rows_per_feature.numpy()
    starts = np.cumsum(counts) - counts
    numbers: NDArray[np.int64] = np.repeat(2 * indices - starts, counts) + np.arange(len(batch))
    return numbers


def _describe_mixture(corpus: Mixture, rows: MixedRows) -> tuple[CorpusShare, ...]:
    return tuple(
        CorpusShare(folder=str(each.folder), share=count / len(rows), passes=passes)
        for each, count, passes in zip(corpus.corpora, rows.counts, rows.passes, strict=True)
    )


def _numbers(*tokens: Token) -> NDArray[np.int64]:
    """(T,) the ids of these tokens."""
    return np.array([id_of(token) for token in tokens], dtype=np.int64)


Source = PretrainingSource | StreamSource
