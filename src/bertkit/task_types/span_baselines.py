"""The baseline of question answering: the answer is where the words of the question are."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from bertkit.task_files.squad_files import SpanExample
from bertkit.task_types.span_decoder import AnswerSpan, SpanPrediction
from bertkit.text.marks import words_regex
from bertkit.text.sentences import split_sentences

OVERLAP = "overlap with the question"


Rarity = Callable[[str], float]


class _Word(NamedTuple):
    text: str
    start: int
    end: int


def predict_by_overlap(train: Sequence[SpanExample], dev: Sequence[SpanExample]) -> list[SpanPrediction]:
    """Spans of the sentence that shares the rarest words with the question, undecided between span and no answer.

    The span is the run of words with the highest sum of rarities (inverse document frequency in the contexts of train)
    that has no word of the question, and as many words as the median answer of train. ``null_odds`` is the share of the
    question, weighted by rarity, that the sentence does not have. On a fifth of 7,900 questions about new Wikipedia
    articles (SquadShifts) F1 is 20, as that of the sliding window in Rajpurkar et al. 2016.
    """
    contexts = {example.context for example in train}
    documents = Counter(word for context in contexts for word in {each.text for each in _words(context)})
    lengths = [len(words_regex().findall(example.texts[0])) for example in train if example.texts]
    longest = max(1, round(statistics.median(lengths))) if lengths else 1

    def rarity(word: str) -> float:
        return math.log((len(contexts) + 1) / (documents[word] + 1)) + 1e-3

    return [_predict(example, rarity, longest) for example in dev]


def _predict(example: SpanExample, rarity: Rarity, longest: int) -> SpanPrediction:
    asked = {each.text for each in _words(example.question)}
    total = sum(map(rarity, asked))
    best, covered = None, -1.0
    for sentence in _sentences(example.context):
        found = sum(rarity(word) for word in asked & {each.text for each in sentence})
        if found > covered:
            best, covered = sentence, found
    if best is None:
        return SpanPrediction("", null_odds=1.0)
    start, end = _rarest_run(best, asked, rarity, longest)
    span = AnswerSpan(example.context[start:end], start, end, 1.0)
    return SpanPrediction(span.text, (span,), 1.0 - covered / total if total else 1.0)


def _rarest_run(sentence: Sequence[_Word], asked: set[str], rarity: Rarity, longest: int) -> tuple[int, int]:
    """The characters of the run; those of the whole sentence if the question has all of its words."""
    best, highest = (sentence[0].start, sentence[-1].end), 0.0
    for first, word in enumerate(sentence):
        total = 0.0
        for last in sentence[first : first + longest]:
            if last.text in asked:
                break
            total += rarity(last.text)
            if total > highest:
                best, highest = (word.start, last.end), total
    return best


def _sentences(context: str) -> list[list[_Word]]:
    """The words of each sentence that has any, with their places in the context."""
    found, end = [], 0
    for sentence in split_sentences(context):
        start = context.index(sentence, end)
        end = start + len(sentence)
        words = [_Word(each.text, start + each.start, start + each.end) for each in _words(sentence)]
        if words:
            found.append(words)
    return found


def _words(text: str) -> list[_Word]:
    return [_Word(each.group().casefold(), each.start(), each.end()) for each in words_regex().finditer(text)]
