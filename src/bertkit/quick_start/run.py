"""From no input at all to a fine-tuned BERT, and to what pre-training was worth, in the minutes that are given.

The text is the documentation of the installed packages. A vocabulary is learnt from it, the corpus prepared, a
network pre-trained, and then the same network is fine-tuned twice on a task made of the same text: from the
pre-trained weights, and from fresh ones. Whatever comes out is what is reported.
"""

from __future__ import annotations

import itertools
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch

from bertkit.config import Setting, apply
from bertkit.data.prepare import prepare
from bertkit.data.sources import ReadOptions
from bertkit.encoders.bert import size
from bertkit.errors import usage_error
from bertkit.finetuning.record import FinetuneRun
from bertkit.finetuning.run import finetune
from bertkit.inference.pipeline import load
from bertkit.pretraining.defaults import profile_settings
from bertkit.pretraining.record import PretrainRun
from bertkit.pretraining.run import PretrainResult, pretrain
from bertkit.pretraining.trial_steps import measure_step
from bertkit.quick_start.docstrings import Document, Source, harvest, installed_packages, list_sources
from bertkit.quick_start.labelling import Split, split, write_csv
from bertkit.quick_start.report import FROM_SCRATCH, PRETRAINED, fill_blanks
from bertkit.quick_start.report import QuickstartResult as QuickstartResult
from bertkit.report.progress import Progress
from bertkit.runs import read_metrics
from bertkit.task_types import FileTask
from bertkit.task_types.user_tables import guess
from bertkit.text import wordpiece
from bertkit.text.wordpiece import WordPiece
from bertkit.training.optimizer import OptimizerConfig

_SHARE_TO_READ = 0.15
_SHARE_TO_MEASURE = 0.005
_SHARE_TO_FINETUNE = 0.25
_SHARE_IN_ALL = 0.95
"""Shares of the time; pre-training has what the others leave of it."""

_SHARE_OF_STEPS = 0.95
"""The rest of pre-training is measuring on held-out text and saving."""

_SOURCE_MEGABYTES_A_MINUTE = 10
"""A tenth of it is prose: in ten minutes the smallest network goes through that five to ten times on two cores."""

_LEAST_DOCUMENTS = 2000
"""Read however long it takes: with fewer there is nothing to learn from."""

_WORTH_ALL_THREADS = 1.3

_VOCABULARY = 4000
_SIZES = ("mini", "tiny")
"""Those that are tried, the larger one first."""

_ENOUGH_TOKENS = 12_000_000
"""The loss stays at that of word frequencies for two million tokens or more before a network begins to read."""

_SEEDS = 3
_EPOCHS = 6
_LONGEST_TEXT = 96
_MOST_EXAMPLES = 125
_MOST_DEV_EXAMPLES = 100
_LEAST_EXAMPLES = 8
"""Of each class."""

_COST_OF_EXAMPLE = 1.4
"""A fine-tuning example, with its share of dev after each epoch, costs so much more than its tokens in pre-training."""


def quickstart(
    output: Path, *, minutes: float = 10, progress: Progress, packages: Mapping[str, Path] | None = None
) -> QuickstartResult:
    """Do all of it below the new folder ``output``; ``packages`` (name -> folder) replaces what is installed."""
    if minutes <= 0:
        raise usage_error(f"--minutes is {minutes:g}; it must be more than 0.")
    if output.exists() and any(output.iterdir()):
        raise usage_error(f"{output} is not empty. Choose another -o folder, or delete it.")
    with _threads_put_back():
        return _run(output, minutes, packages or installed_packages(), progress)


def _run(output: Path, minutes: float, packages: Mapping[str, Path], progress: Progress) -> QuickstartResult:
    begin = time.monotonic()
    budget = minutes * 60
    documents = _read(packages, begin, minutes, progress)
    parts = split(documents)
    tokenizer = _prepare(parts.unlabelled, output, progress)
    until = begin + (_SHARE_IN_ALL - _SHARE_TO_FINETUNE) * budget
    name, run = _plan_pretraining(output, tokenizer, until, budget, progress)
    pretrained = pretrain(run, progress)
    left = begin + _SHARE_IN_ALL * budget - time.monotonic()
    token_seconds = pretrained.seconds / (pretrained.steps * run.tokens_per_step)
    task = _write_task(parts, _afford_examples(parts, tokenizer, token_seconds, left), output / "task")
    scores = {start: finetune(each, progress) for start, each in _plan_finetuning(task, output, pretrained).items()}
    return QuickstartResult(
        output=output,
        size=name,
        text=_describe_text(documents),
        task=_describe_task(task),
        losses=[each["loss/mlm"] for each in read_metrics(run.output / "metrics.jsonl") if each["kind"] == "train"],
        pretraining=pretrained,
        blanks=fill_blanks(load(pretrained.folder), parts.heldout),
        majority=_score_majority(task),
        scores=scores,
        seconds=time.monotonic() - begin,
    )


def _read(packages: Mapping[str, Path], begin: float, minutes: float, progress: Progress) -> list[Document]:
    """The documentation of the packages, as much of it as is wanted or can be read in time."""
    deadline = begin + _SHARE_TO_READ * minutes * 60
    sources = _sample(list_sources(packages), _SOURCE_MEGABYTES_A_MINUTE * minutes)
    documents: list[Document] = []
    progress.start("reading documentation", len(sources), "file")
    for done, found in enumerate(harvest(sources), start=1):
        documents += found
        progress.advance(done, documents=len(documents))
        if time.monotonic() > deadline and len(documents) >= _LEAST_DOCUMENTS:
            break
    progress.finish()
    return documents


def _sample(sources: Sequence[Source], megabytes: float) -> list[Source]:
    """The first sources that come to so many megabytes of code and text together."""
    sizes = itertools.accumulate(0 if each.path is None else each.path.stat().st_size for each in sources)
    return [each for each, size in zip(sources, sizes, strict=True) if size <= megabytes * 1e6]


def _prepare(documents: list[Document], output: Path, progress: Progress) -> WordPiece:
    """The corpus as a file, the vocabulary learnt from it, and the shards made of both."""
    file = output / "corpus.jsonl"
    output.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8") as lines:
        for each in documents:
            record = {"package": each.package, "module": each.module, "text": each.text}
            lines.write(json.dumps(record, ensure_ascii=False) + "\n")
    progress.say(f"learning a vocabulary of {_VOCABULARY:,} pieces")
    tokenizer = wordpiece.train((each.text for each in documents), vocab_size=_VOCABULARY)
    manifest = prepare([file], tokenizer=tokenizer, output=output / "data", reading=ReadOptions(field="text"))
    progress.say(f"prepared {manifest.tokens:,} tokens of {manifest.documents:,} documents")
    return tokenizer


def _plan_pretraining(
    output: Path, tokenizer: WordPiece, until: float, budget: float, progress: Progress
) -> tuple[str, PretrainRun]:
    """The largest size that reads enough tokens in time, and otherwise the smallest; its name, and the run."""
    for name in _SIZES:
        run = _pretraining_run(name, output, tokenizer)
        seconds = _choose_threads(run, _SHARE_TO_MEASURE * budget)
        steps = max(1, int(_SHARE_OF_STEPS * (until - time.monotonic()) / seconds))
        progress.say(
            f"BERT-{name}: {seconds * 1000:.0f} ms a step, {steps * run.tokens_per_step / 1e6:.1f} M tokens in time"
        )
        if steps * run.tokens_per_step >= _ENOUGH_TOKENS:
            break
    quarter = max(1, steps // 4)
    return name, replace(run, steps=steps, evaluate_every=quarter, save_every=quarter)


def _choose_threads(run: PretrainRun, seconds: float) -> float:
    """Set the number of threads to one unless all of them are worth it; the seconds that a step then takes.

    A step of a small network is so short that its threads wait for each other most of the time, and on a machine that
    has something else to do they wait for that, at every product: on two busy cores two threads had a tenth of the
    pace of one, on two idle cores 1.2 times.
    """
    every = torch.get_num_threads()
    torch.set_num_threads(1)
    alone = measure_step(run, seconds)
    if every == 1:
        return alone
    torch.set_num_threads(every)
    together = measure_step(run, seconds)
    if alone < together * _WORTH_ALL_THREADS:
        torch.set_num_threads(1)
        return alone
    return together


@contextmanager
def _threads_put_back() -> Iterator[None]:
    threads = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _pretraining_run(name: str, output: Path, tokenizer: WordPiece) -> PretrainRun:
    """One step, to be measured; how many there will be is found out from it."""
    encoder = size(name, vocab_size=tokenizer.vocab_size, max_positions=128)
    run = PretrainRun(
        data=output / "data",
        output=output / "pretrained",
        encoder=encoder,
        steps=1,
        evaluation_examples=1000,
        keep_checkpoints=1,
    )
    fast = profile_settings("fast", encoder).items()
    return apply(run, [Setting(path, value, "--profile fast") for path, value in fast])


def _afford_examples(parts: Split, tokenizer: WordPiece, token_seconds: float, seconds: float) -> int:
    """How many training examples of each class all fine-tunings can read in time, at ``token_seconds`` for a token."""
    sample = [len(tokens.ids) for tokens in tokenizer.encode_batch([each.text for each in parts.train[:200]])]
    tokens = sum(min(length + 2, _LONGEST_TEXT) for length in sample) / len(sample)
    readings = 2 * _SEEDS * _EPOCHS * len(parts.classes)
    affordable = int(seconds / (readings * tokens * token_seconds * _COST_OF_EXAMPLE))
    return max(_LEAST_EXAMPLES, min(_MOST_EXAMPLES, affordable))


def _write_task(parts: Split, examples: int, folder: Path) -> FileTask:
    """The labelled texts as tables, so many of each class, read as a user's own tables are."""
    folder.mkdir()
    write_csv(parts.train[: examples * len(parts.classes)], folder / "train.csv")
    write_csv(parts.dev[: min(examples, _MOST_DEV_EXAMPLES) * len(parts.classes)], folder / "dev.csv")
    return guess(folder / "train.csv", dev=folder / "dev.csv", max_length=_LONGEST_TEXT).task


def _plan_finetuning(task: FileTask, output: Path, pretrained: PretrainResult) -> dict[str, FinetuneRun]:
    """The two runs, which differ in the weights that they start from and in nothing else."""
    run = FinetuneRun(
        task=task,
        model=pretrained.folder,
        output=output / "finetuned",
        seeds=_SEEDS,
        epochs=_EPOCHS,
        optimizer=OptimizerConfig(lr=1e-3, bias_correction=True),
    )
    return {FROM_SCRATCH: replace(run, from_scratch=True, output=output / "from-scratch"), PRETRAINED: run}


def _score_majority(task: FileTask) -> float:
    """The accuracy of always naming the most frequent class of the training texts."""
    most_frequent = Counter(each.label for each in task.examples("train")).most_common(1)[0][0]
    dev = [each.label for each in task.examples("dev")]
    return dev.count(most_frequent) / len(dev)


def _describe_text(documents: Sequence[Document]) -> str:
    megabytes = sum(len(each.text) for each in documents) / 1e6
    packages = len({each.package for each in documents})
    return f"{megabytes:.1f} MB, the documentation of {packages} Python packages on this machine"


def _describe_task(task: FileTask) -> str:
    train, dev = len(task.examples("train")), len(task.examples("dev"))
    return (
        f"Which of {len(task.labels)} packages is a text from? {train:,} texts to learn from, {dev:,} to score.\n"
        "Nothing of the modules that the latter are from was read before, in pre-training or in fine-tuning.\n"
        f"Accuracy, the best of {_EPOCHS} epochs:"
    )
