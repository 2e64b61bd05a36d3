"""A question and a context that holds the answer, or does not: the record that such tasks are values of."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bertkit.batch import IGNORE, Feature
from bertkit.contracts import Encoder, Objective, Tokenizer
from bertkit.errors import data_error, usage_error
from bertkit.metrics.squad import Rules, score_all, score_all_v2, score_answer
from bertkit.objectives.span_extraction import SpanExtraction
from bertkit.task_types.base import FileTask
from bertkit.task_types.held_out import describe_overlap, hold_out
from bertkit.task_types.squad_files import COLUMNS, Faults, SpanExample, describe_faults, name_apart, read_questions
from bertkit.task_types.task_files import Columns
from bertkit.task_types.windows import Candidate, TokenArrays, find_candidates, owners, window_starts

_CHARACTERS_AT_ONCE, _QUESTIONS_AT_ONCE = 500_000, 500
"""How much text is cut into tokens in one go."""


class AnswerSpan(NamedTuple):
    """A part of the context: its characters ``start`` to ``end``, and its share among the best answers."""

    text: str
    start: int
    end: int
    probability: float


@dataclass(frozen=True, slots=True)
class SpanPrediction:
    """``text`` is the answer, "" for none; ``n_best`` are the passages it was chosen from, the best first.

    ``null_odds`` is how far the score of "no answer" lies above that of the best passage. ``cut`` counts the tokens of
    the question that found no room.
    """

    text: str
    n_best: tuple[AnswerSpan, ...] = ()
    null_odds: float = 0.0
    num_truncated: int = 0

    @property
    def label(self) -> str:
        """``text``."""
        return self.text

    @property
    def passage(self) -> AnswerSpan | None:
        """The answer with its place and probability; None for no answer."""
        return self.n_best[0] if self.text else None

    @property
    def start(self) -> int | None:
        """The first character of the answer in the context."""
        return self.passage.start if self.passage else None

    @property
    def end(self) -> int | None:
        """The character behind it."""
        return self.passage.end if self.passage else None

    @property
    def score(self) -> float:
        """The probability of the answer, or of there being none, among the best answers."""
        return self.passage.probability if self.passage else 1.0 - sum(each.probability for each in self.n_best)


@dataclass(frozen=True, kw_only=True)
class QuestionAnsweringTask(FileTask):
    """A passage of the context, or (``null``) none where ``null_odds`` are above ``threshold``, which is set on dev.

    The threshold is the ``null_score_diff_threshold`` of google-research/bert, the -tau of the paper (section 4.3). A
    long context is read in windows every ``stride`` tokens; answers have at most ``longest`` tokens, questions
    ``max_query``. Without ``null`` the questions without an answer in a file of SQuAD 2.0 are left out.
    """

    shape: ClassVar[str] = "span"

    metric: str = "f1"
    max_length: int = 384
    null: bool = False
    threshold: float = 0.0
    stride: int = 128
    max_query: int = 64
    n_best: int = 20
    longest: int = 30
    rules: Rules = "v1"

    def rows(self, split: str) -> Iterator[SpanExample]:
        """Every question in the files of a split; answers that are elsewhere than the file says are moved."""
        return self._rows(split, Faults())

    def examples(self, split: str) -> list[SpanExample]:
        """The questions of a split; train has those alone that can be learnt from.

        What is held out as dev are whole contexts, chosen by their hash.
        """
        if self.heldout and split in ("train", "dev"):
            train, dev = _hold_out(self.labelled("train"), self.heldout)
            return [each for each in train if self._teaches(each)] if split == "train" else dev
        if split == "train":
            return [example for example in self.labelled(split) if self._teaches(example)]
        return super().examples(split)

    def read(self, path: Path) -> Iterator[SpanExample]:
        """Questions to be answered, of a ``.json`` file like SQuAD's or a table with ``question`` and ``context``."""
        return name_apart(read_questions(path, Faults()), Faults())

    def columns_of(self, path: Path) -> Columns:
        """Those that every table of questions has."""
        return COLUMNS

    def look_through(self, path: Path) -> tuple[int, list[str]]:
        """How many questions a file asks, and what is wrong with them."""
        faults = Faults()
        count = sum(1 for _ in name_apart(read_questions(path, faults), faults))
        return count, describe_faults(path.name, Faults({kind: faults[kind] for kind in ("repeated", "empty")}))

    def read_line(self, name: str, line: str) -> SpanExample:
        """A JSON object with ``question`` and ``context``, or the two with a tab between them."""
        if not line.lstrip().startswith("{"):
            question, _, context = line.partition("\t")
            return SpanExample(name, question, context)
        try:
            record = json.loads(line)
            return SpanExample(str(record.get("id", name)), str(record["question"]), str(record["context"]))
        except (KeyError, json.JSONDecodeError) as error:
            raise data_error(f'line {name}: not a JSON object with "question" and "context" ({error}).') from error

    def notes(self) -> list[str]:
        """What a person should know about train and dev before trusting a score, one sentence each."""
        notes: list[str] = []
        found: dict[str, list[SpanExample]] = {}
        for split in ("train", "dev"):
            if split in self.files.splits:
                faults = Faults()
                found[split] = list(self._rows(split, faults))
                notes += describe_faults(split, faults)
        if self.heldout:
            held = len(_hold_out(self.labelled("train"), self.heldout)[1])
            notes.append(
                f"no dev file: {held:,} of {len(found['train']):,} questions are held out as dev "
                f"({self.heldout:.0%}, chosen by the hash of the context; questions about one stay together)"
            )
        return notes + describe_overlap(found.get("train", []), found.get("dev", []))

    def encode(self, example: SpanExample, tokenizer: Tokenizer) -> list[Feature]:
        """``[CLS] question [SEP] part of the context [SEP]``, a window after the other."""
        question, context = map(TokenArrays.of, tokenizer.encode_batch([example.question, example.context]))
        return self._windows(example, question, context, tokenizer)

    def encode_all(
        self, examples: Iterable[SpanExample], tokenizer: Tokenizer
    ) -> Iterator[tuple[SpanExample, list[Feature]]]:
        """The same for all; a context is cut into tokens once for all its questions that follow each other."""
        for block in _blocks(examples):
            contexts = list(dict.fromkeys(example.context for example in block))
            pieces = dict(zip(contexts, map(TokenArrays.of, tokenizer.encode_batch(contexts)), strict=True))
            questions = tokenizer.encode_batch([example.question for example in block])
            for example, question in zip(block, questions, strict=True):
                yield example, self._windows(example, TokenArrays.of(question), pieces[example.context], tokenizer)

    def objectives(self, encoder: Encoder) -> dict[str, Objective]:
        """A fresh head that scores starts and ends."""
        return {"span": SpanExtraction(encoder.hidden_size)}

    def decode(
        self, example: SpanExample, features: Sequence[Feature], outputs: Sequence[Mapping[str, NDArray[Any]]]
    ) -> SpanPrediction:
        """The passage with the highest sum of scores, or none; its text is that of the context, character by character.

        "No answer" has the lowest score that any window gives to [CLS].
        """
        candidates = find_candidates(features, outputs, self._owned(features), n_best=self.n_best, longest=self.longest)
        null = min(float(output["start"][0]) + float(output["end"][0]) for output in outputs)
        best = _distinct(example, features, candidates, self.n_best)
        scores = np.array([score for score, _, _ in best] + ([null] if self.null else []))
        shares = np.exp(scores - scores.max(initial=-np.inf))
        shares /= shares.sum()
        passages = tuple(
            AnswerSpan(example.context[start:end], start, end, float(share))
            for (_, start, end), share in zip(best, shares, strict=False)
        )
        odds = null - best[0][0] if best else float(np.finfo(np.float32).max)
        prediction = SpanPrediction("", passages, odds, sum(feature.num_truncated for feature in features))
        return self._decide(prediction)

    def calibrate(
        self, examples: Sequence[SpanExample], predictions: Sequence[SpanPrediction]
    ) -> tuple[Self, Sequence[SpanPrediction]]:
        """With ``null`` the threshold that gives the highest F1."""
        if not self.null:
            return self, predictions
        gains = [_gain(*pair) for pair in zip(examples, predictions, strict=True)]
        odds = np.array([prediction.null_odds for prediction in predictions])
        decided = replace(self, threshold=_best_threshold(odds, np.array(gains)))
        return decided, [decided._decide(prediction) for prediction in predictions]

    def reconsider(self, prediction: SpanPrediction) -> SpanPrediction:
        """Without ``null`` the best passage, whatever a threshold made of it; with it what the model's task decided."""
        return prediction if self.null else self._decide(prediction)

    def describe(self, example: SpanExample, prediction: SpanPrediction) -> dict[str, Any]:
        """``id``, ``answer`` with its ``start`` and ``end``, ``probability``, ``null_odds``, and the ``n_best``."""
        passage = prediction.passage
        record: dict[str, Any] = {"id": example.id, "answer": prediction.text}
        if passage is not None:
            record |= {"start": passage.start, "end": passage.end, "probability": round(passage.probability, 6)}
        if self.null:
            record["null_odds"] = round(prediction.null_odds, 6)
        record["n_best"] = [{**each._asdict(), "probability": round(each.probability, 6)} for each in prediction.n_best]
        return record | ({"num_truncated": prediction.num_truncated} if prediction.num_truncated else {})

    def score(self, examples: Iterable[SpanExample], predictions: Iterable[SpanPrediction]) -> dict[str, float]:
        """The official scores, as shares of 1; with ``null`` also those of questions with and without an answer."""
        gold: dict[str, tuple[str, ...]] = {}
        given: dict[str, str] = {}
        for place, (example, prediction) in enumerate(zip(examples, predictions, strict=True)):
            if example.answers is None:
                raise data_error(f"question {example.id} has no gold answer; it cannot be scored.")
            gold[str(place)], given[str(place)] = example.texts, prediction.text
        if self.rules != "v2":
            return {name: value / 100 for name, value in score_all(gold, given, self.rules).items()}
        scores = score_all_v2(gold, given)
        return {name: value / 100 for name, value in scores.items() if not name.endswith("total")}

    def advise_on_cuts(self) -> str:
        """Questions alone are ever cut."""
        return f"Questions are cut to {self.max_query} tokens: --set task.max_query={2 * self.max_query}"

    def _rows(self, split: str, faults: Faults) -> Iterator[SpanExample]:
        paths = self.files.paths(self.name, split)
        return name_apart((each for path in paths for each in self._asked(path, faults)), faults)

    def _asked(self, path: Path, faults: Faults) -> Iterator[SpanExample]:
        """The questions of a file that the task asks."""
        for example in read_questions(path, faults):
            if self.null or example.answers or not example.impossible:
                yield example
            else:
                faults["unasked"] += 1

    def _teaches(self, example: SpanExample) -> bool:
        if example.answers == ():
            return self.null and example.impossible
        return example.target is not None and not example.contradicts_itself

    def _room(self, before: int) -> tuple[int, int]:
        """Tokens of the context in a window behind the question, and how far windows are apart."""
        room = self.max_length - before - 1
        if room < 1:
            raise usage_error(f"max_length {self.max_length} has no room for {before} tokens of question and a text.")
        return room, min(room, self.stride)

    def _windows(
        self, example: SpanExample, question: TokenArrays, context: TokenArrays, tokenizer: Tokenizer
    ) -> list[Feature]:
        kept = question.ids[: self.max_query]
        head = np.array([tokenizer.start_id, *kept, *tokenizer.between_ids], dtype=np.int32)
        before = len(head)
        room, step = self._room(before)
        target = example.target
        found = None if target is None else context.find(target.start, target.start + len(target.text))
        features = []
        for start in window_starts(len(context.ids), room, step):
            part = slice(start, start + room)
            size = len(context.ids[part])
            body = context.ids[part].reshape(-1, *head.shape[1:])
            input_ids = np.concatenate([head, body, [tokenizer.end_id]], dtype=np.int32)
            offsets = np.zeros((before + size + 1, 2), dtype=np.int32)
            offsets[before:-1] = context.offsets[part]
            label = np.zeros(2, dtype=np.int64)
            if found is not None and start <= found[0] and found[1] < start + size:
                label[:] = found[0] - start + before, found[1] - start + before
            elif target is None and (example.answers != () or not example.impossible):
                label[:] = IGNORE
            features.append(
                Feature(
                    input_ids=input_ids,
                    segment_ids=np.repeat(np.array([0, 1], dtype=np.int8), [before, size + 1]),
                    labels={SpanExtraction.label: label},
                    offsets=offsets,
                    num_truncated=0 if start else len(question.ids) - len(kept),
                )
            )
        return features

    def _owned(self, features: Sequence[Feature]) -> list[NDArray[np.bool_]]:
        """For each window, which of its tokens it answers for."""
        before = int(np.count_nonzero(features[0].segment_ids == 0))
        room, step = self._room(before)
        sizes = [len(feature) - before - 1 for feature in features]
        owner = owners((len(features) - 1) * step + sizes[-1], room, step)
        owned = []
        for window, (feature, size) in enumerate(zip(features, sizes, strict=True)):
            mine = np.zeros(len(feature), dtype=bool)
            mine[before : before + size] = owner[window * step : window * step + size] == window
            owned.append(mine)
        return owned

    def _decide(self, prediction: SpanPrediction) -> SpanPrediction:
        none = not prediction.n_best or (self.null and prediction.null_odds > self.threshold)
        return replace(prediction, text="" if none else prediction.n_best[0].text)


def _distinct(
    example: SpanExample, features: Sequence[Feature], candidates: Sequence[Candidate], count: int
) -> list[tuple[float, int, int]]:
    """(score, first and last character) of the best ``count`` candidates with different texts."""
    found: dict[str, tuple[float, int, int]] = {}
    for candidate in candidates:
        if len(found) == count:
            break
        offsets = features[candidate.window].offsets
        assert offsets is not None
        start, end = int(offsets[candidate.start, 0]), int(offsets[candidate.end, 1])
        if example.context[start:end]:
            found.setdefault(example.context[start:end], (candidate.score, start, end))
    return list(found.values())


def _gain(example: SpanExample, prediction: SpanPrediction) -> float:
    """What answering with the best passage gains in F1 over not answering."""
    if not prediction.n_best:
        return 0.0
    answered, silent = (score_answer(text, example.texts, "v2").f1 for text in (prediction.n_best[0].text, ""))
    return answered - silent


def _best_threshold(odds: NDArray[np.float64], gains: NDArray[np.float64]) -> float:
    """Between the odds where answering everything below gains most; equal odds are answered together."""
    order = np.argsort(odds, kind="stable")
    totals = np.concatenate([[0.0], np.cumsum(gains[order])])
    ranked = np.concatenate([[odds.min() - 2.0], odds[order], [odds.max() + 2.0]])
    totals[ranked[1:] == ranked[:-1]] = -np.inf
    best = int(totals.argmax())
    return float((ranked[best] + ranked[best + 1]) / 2)


def _hold_out(examples: Sequence[SpanExample], share: float) -> tuple[list[SpanExample], list[SpanExample]]:
    """(kept, held out), by contexts."""
    kept, held = hold_out([_Context(example) for example in examples], share)
    return [each.example for each in kept], [each.example for each in held]


class _Context(NamedTuple):
    """A question as its context alone, for being held out."""

    example: SpanExample
    second: None = None
    label: None = None

    @property
    def first(self) -> str:
        return self.example.context


def _blocks(examples: Iterable[SpanExample]) -> Iterator[list[SpanExample]]:
    """Examples in a row with about so much text as is cut in one go."""
    block: list[SpanExample] = []
    size = 0
    for example in examples:
        known = block and block[-1].context == example.context
        size += len(example.question) + (0 if known else len(example.context))
        block.append(example)
        if size > _CHARACTERS_AT_ONCE or len(block) == _QUESTIONS_AT_ONCE:
            yield block
            block, size = [], 0
    if block:
        yield block
