"""The report of the quickstart: the loss curve, predictions for masked words, scores, and commands to try next."""

from __future__ import annotations

import itertools
import re
import shlex
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bertkit.contracts import SubwordTokenizer
from bertkit.finetuning.results import FinetuneResult
from bertkit.inference.pipeline import Pipeline
from bertkit.pretraining.run import PretrainResult
from bertkit.quick_start.docstrings import Document, hash_fraction
from bertkit.report.progress import describe_duration
from bertkit.results import Result

UNTRAINED = "untrained network"
INITIAL_WEIGHTS = "co-occurrence counts"
PRETRAINED = "pre-trained"
"""What a fine-tuning starts from: random weights, the initial weights of the pre-training, and its result."""

_NUM_BLANKS = 4
_NUM_GUESSES = 4
_WORDS_AROUND = range(6, 15)
_PLAIN_WORD = re.compile(r"\b[a-z]{4,}\b")
_BARS = "▁▂▃▄▅▆▇█"
_CURVE_WIDTH = 40


@dataclass(frozen=True, kw_only=True)
class Blank:
    """A sentence in which [MASK] replaces the word ``hidden``, and the predicted words with their probabilities."""

    text: str
    hidden: str
    guesses: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Score:
    """Accuracies after the last epoch, one per seed, and the ``folder`` of the seed with the best one.

    ``baselines`` are the accuracies of models without a network, if they were fitted beside the first seed.

    The last epoch, and not the best one on the evaluation texts: a bag of words has no epochs to choose from.
    """

    accuracies: tuple[float, ...]
    folder: Path
    baselines: Mapping[str, float]
    seconds: float

    @classmethod
    def of(cls, results: Sequence[FinetuneResult], seconds: float) -> Score:
        """The score of several fine-tunings of one seed each."""
        accuracies = tuple(each.best.epochs[-1]["accuracy"] for each in results)
        best = max(range(len(results)), key=lambda number: accuracies[number])
        baselines = {each.name: each.scores["accuracy"] for each in results[0].baselines}
        return cls(accuracies=accuracies, folder=results[best].folder, baselines=baselines, seconds=seconds)

    @property
    def mean(self) -> float:
        """The mean over the seeds."""
        return statistics.fmean(self.accuracies)

    @property
    def sd(self) -> float:
        """The sample standard deviation over the seeds; 0 for one seed."""
        return statistics.stdev(self.accuracies) if len(self.accuracies) > 1 else 0.0


@dataclass(frozen=True, kw_only=True, repr=False)
class QuickstartResult(Result):
    """The results of the quickstart. ``scores`` has those of the fine-tunings, by what they start from.

    ``losses`` are the masked-LM losses over the steps of pre-training, and ``seconds`` the total time.
    """

    output: Path
    size: str
    text: str
    task: str
    losses: list[float]
    pretraining: PretrainResult
    blanks: list[Blank]
    scores: dict[str, Score]
    seconds: float

    @property
    def baselines(self) -> Mapping[str, float]:
        """The accuracy of the most frequent class and of a bag of words."""
        return self.scores[PRETRAINED].baselines

    @property
    def alternatives(self) -> dict[str, float]:
        """The accuracy of everything that needs no pre-training."""
        networks = {name: score.mean for name, score in self.scores.items() if name != PRETRAINED}
        return {**self.baselines, **networks}

    @property
    def gain(self) -> float:
        """Accuracy with pre-training, the mean over the seeds, minus that of the best alternative."""
        return self.scores[PRETRAINED].mean - max(self.alternatives.values())

    def lines(self) -> list[str]:
        """The report as text."""
        return [*self._pretraining_lines(), "", *self._blank_lines(), "", *self._score_lines(), "", *self._next_lines()]

    def _pretraining_lines(self) -> list[str]:
        run = self.pretraining
        heldout = run.heldout
        measured = f"{heldout['mlm']:.2f} held out, perplexity {heldout['mlm_perplexity']:.0f}" if heldout else ""
        return [
            f"text         {self.text}",
            f"model        BERT-{self.size}, {run.steps:,} steps in {describe_duration(run.seconds)}",
            f"masked words {self.losses[0]:.2f} {draw_curve(self.losses)} {self.losses[-1]:.2f}   {measured}".rstrip(),
            f"             {self.pretraining.folder / 'training.svg'}",
        ]

    def _blank_lines(self) -> Iterator[str]:
        yield "Masked words in held-out sentences:"
        for blank in self.blanks:
            guesses = ", ".join(f"{word} {probability:.0%}" for word, probability in blank.guesses.items())
            yield f"  {blank.text}"
            yield f"      {guesses}   (original: {blank.hidden})"

    def _score_lines(self) -> Iterator[str]:
        yield from self.task.splitlines()
        for name, accuracy in self.baselines.items():
            yield f"  {name:<22}{accuracy:>7.1%}"
        for name, score in self.scores.items():
            yield f"  {name:<22}{score.mean:>7.1%}  ± {100 * score.sd:.1f} over {len(score.accuracies)} seeds"
        yield self._verdict()

    def _verdict(self) -> str:
        spread = max(score.sd for score in self.scores.values())
        best = max(self.alternatives, key=lambda name: self.alternatives[name])
        if self.gain > spread:
            return f"  Pre-training was worth {100 * self.gain:.1f} points over the best of the others ({best})."
        measured = f"{100 * self.gain:+.1f} points, with a standard deviation of {100 * spread:.1f} over seeds"
        return f"  Pre-training did not pay in this time: {measured}, against {best}. Try more --minutes."

    def _next_lines(self) -> list[str]:
        commands = [
            ("bertkit", "fill", self.pretraining.folder, self.blanks[0].text if self.blanks else "Return the [MASK]."),
            (
                "bertkit",
                "predict",
                self.scores[PRETRAINED].folder,
                self.output / "task" / "dev.csv",
                "-o",
                "predictions.csv",
            ),
            ("bertkit", "finetune", "YOUR.csv", "--model", self.pretraining.folder, "-o", "runs/yours"),
            ("bertkit", "pretrain", self.output / "data", "--profile", "fast", "--minutes", "60", "-o", "runs/mini"),
        ]
        total = f"Total time: {describe_duration(self.seconds)}. Next:"
        return [total, *("  " + shlex.join(map(str, command)) for command in commands)]


def fill_blanks(model: Pipeline, documents: Iterable[Document]) -> list[Blank]:
    """Mask a word in four sentences and predict it. Sentences and words are chosen by hash, not by the result."""
    sentences = [each for document in documents for each in document.sentences if len(each.split()) in _WORDS_AROUND]
    blanks: list[Blank] = []
    for sentence in sorted(sentences, key=hash_fraction):
        hidden = _choose_word(sentence, model.tokenizer)
        if hidden is not None:
            text = re.sub(rf"\b{hidden}\b", "[MASK]", sentence, count=1)
            guesses = {guess.word: guess.probability for guess in model.fill(text, _NUM_GUESSES)[0]}
            blanks.append(Blank(text=text, hidden=hidden, guesses=guesses))
        if len(blanks) == _NUM_BLANKS:
            break
    return blanks


def _choose_word(sentence: str, tokenizer: SubwordTokenizer) -> str | None:
    """A plain word that is a single subword, since [MASK] stands for one."""
    words = [word for word in _PLAIN_WORD.findall(sentence) if len(tokenizer.encode(word).ids) == 1]
    return min(words, key=hash_fraction, default=None)


def draw_curve(values: Sequence[float]) -> str:
    """A curve of at most forty bars, each the mean of consecutive values."""
    width = min(_CURVE_WIDTH, len(values))
    edges = [len(values) * place // width for place in range(width + 1)]
    means = [statistics.fmean(values[a:b]) for a, b in itertools.pairwise(edges)]
    lowest, span = min(means), max(max(means) - min(means), 1e-9)
    return "".join(_BARS[int((mean - lowest) / span * (len(_BARS) - 1))] for mean in means)
