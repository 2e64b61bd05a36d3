"""From no input to a fine-tuned BERT within a given number of minutes, and what pre-training gains.

The text is the documentation of the installed packages. A vocabulary is trained on it, the corpus is prepared, and a
network is pre-trained. The same network is then fine-tuned twice on a task made from the same text: from the
pre-trained weights, and from randomly initialised ones. The report shows the measured results, whatever they are.
"""

from __future__ import annotations

import itertools
import json
import time
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
from bertkit.quick_start.labelling import DocumentSplit, split_documents, write_csv
from bertkit.quick_start.report import EPOCHS, FROM_SCRATCH, LEARNING_RATE, PRETRAINED, fill_blanks
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
"""Shares of the time; pre-training gets the rest."""

_SHARE_OF_STEPS = 0.95
"""The rest of the time of pre-training is evaluation on held-out text and saving."""

_SOURCE_MEGABYTES_PER_MINUTE = 10
"""A tenth of it is prose, of which the smallest network trains five to ten epochs in ten minutes on two cores."""

_MIN_DOCUMENTS = 2000
"""Read even if it takes longer: fewer are too little to learn from."""

_MIN_SPEED_UP_OF_THREADS = 1.3

_VOCABULARY = 4000
_SIZES = ("mini", "tiny")
"""The sizes that are tried, the larger one first."""

_ENOUGH_TOKENS = 1_000_000
"""From this many tokens on, the larger network is better: its first weights come from the corpus."""

_SEEDS = 3
_MAX_LENGTH = 96
_MAX_EXAMPLES = 125
_MAX_DEV_EXAMPLES = 100
_MIN_EXAMPLES = 8
"""Per class."""

_COST_OF_EXAMPLE = 1.4
"""The time of a fine-tuning example, with evaluation on dev after each epoch, by that of its tokens in pre-training."""


def quickstart(
    output: Path, *, minutes: float = 10, progress: Progress, packages: Mapping[str, Path] | None = None
) -> QuickstartResult:
    """Run the quickstart in the new folder ``output``; ``packages`` (name -> folder) replaces the installed ones."""
    if minutes <= 0:
        raise usage_error(f"--minutes is {minutes:g}; it must be more than 0.")
    if output.exists() and any(output.iterdir()):
        raise usage_error(f"{output} is not empty. Choose another -o folder, or delete it.")
    with _restored_threads():
        return _run(output, minutes, packages or installed_packages(), progress)


def _run(output: Path, minutes: float, packages: Mapping[str, Path], progress: Progress) -> QuickstartResult:
    begin = time.monotonic()
    budget = minutes * 60
    documents = _read(packages, begin, minutes, progress)
    parts = split_documents(documents)
    tokenizer = _prepare(parts.unlabelled, output, progress)
    until = begin + (_SHARE_IN_ALL - _SHARE_TO_FINETUNE) * budget
    name, run = _choose_size(output, tokenizer, until, budget, progress)
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
        scores=scores,
        seconds=time.monotonic() - begin,
    )


def _read(packages: Mapping[str, Path], begin: float, minutes: float, progress: Progress) -> list[Document]:
    """The documentation of the packages, up to the amount that can be used or read in time."""
    deadline = begin + _SHARE_TO_READ * minutes * 60
    sources = _sample(list_sources(packages), _SOURCE_MEGABYTES_PER_MINUTE * minutes)
    documents: list[Document] = []
    progress.start("reading documentation", len(sources), "file")
    for done, found in enumerate(harvest(sources), start=1):
        documents += found
        progress.advance(done, documents=len(documents))
        if time.monotonic() > deadline and len(documents) >= _MIN_DOCUMENTS:
            break
    progress.finish()
    return documents


def _sample(sources: Sequence[Source], megabytes: float) -> list[Source]:
    """The first sources with ``megabytes`` of code and text together."""
    sizes = itertools.accumulate(0 if each.path is None else each.path.stat().st_size for each in sources)
    return [each for each, size in zip(sources, sizes, strict=True) if size <= megabytes * 1e6]


def _prepare(documents: list[Document], output: Path, progress: Progress) -> WordPiece:
    """Write the corpus as a file, train a vocabulary on it, and prepare its shards."""
    file = output / "corpus.jsonl"
    output.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8") as lines:
        for each in documents:
            record = {"package": each.package, "module": each.module, "text": each.text}
            lines.write(json.dumps(record, ensure_ascii=False) + "\n")
    progress.say(f"training a vocabulary of {_VOCABULARY:,} subwords")
    tokenizer = wordpiece.train((each.text for each in documents), vocab_size=_VOCABULARY)
    manifest = prepare([file], tokenizer=tokenizer, output=output / "data", reading=ReadOptions(field="text"))
    progress.say(f"prepared {manifest.tokens:,} tokens of {manifest.documents:,} documents")
    return tokenizer


def _choose_size(
    output: Path, tokenizer: WordPiece, until: float, budget: float, progress: Progress
) -> tuple[str, PretrainRun]:
    """The largest size that can train on enough tokens in time, or else the smallest: its name and its run."""
    for name in _SIZES:
        run = _pretraining_run(name, output, tokenizer)
        seconds = _choose_threads(run, _SHARE_TO_MEASURE * budget)
        steps = max(1, int(_SHARE_OF_STEPS * (until - time.monotonic()) / seconds))
        progress.say(
            f"BERT-{name}: {seconds * 1000:.0f} ms per step, {steps * run.tokens_per_step / 1e6:.1f} M tokens in time"
        )
        if steps * run.tokens_per_step >= _ENOUGH_TOKENS:
            break
    quarter = max(1, steps // 4)
    return name, replace(run, steps=steps, evaluate_every=quarter, save_every=quarter)


def _choose_threads(run: PretrainRun, seconds: float) -> float:
    """Use one thread, unless all threads are at least 1.3 times faster; return the seconds per step.

    The matrix products of a small network are so short that its threads mostly wait for each other, or for other
    processes: on two busy cores two threads had a tenth of the speed of one, on two idle cores 1.2 times its speed.
    """
    every = torch.get_num_threads()
    torch.set_num_threads(1)
    alone = measure_step(run, seconds)
    if every == 1:
        return alone
    torch.set_num_threads(every)
    together = measure_step(run, seconds)
    if alone < together * _MIN_SPEED_UP_OF_THREADS:
        torch.set_num_threads(1)
        return alone
    return together


@contextmanager
def _restored_threads() -> Iterator[None]:
    threads = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _pretraining_run(name: str, output: Path, tokenizer: WordPiece) -> PretrainRun:
    """A run of one step, whose time decides the number of steps."""
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


def _afford_examples(parts: DocumentSplit, tokenizer: WordPiece, token_seconds: float, seconds: float) -> int:
    """The number of training examples per class for which all fine-tunings fit into ``seconds``."""
    sample = [len(tokens.ids) for tokens in tokenizer.encode_batch([each.text for each in parts.train[:200]])]
    tokens = sum(min(length + 2, _MAX_LENGTH) for length in sample) / len(sample)
    readings = 2 * _SEEDS * EPOCHS * len(parts.classes)
    affordable = int(seconds / (readings * tokens * token_seconds * _COST_OF_EXAMPLE))
    return max(_MIN_EXAMPLES, min(_MAX_EXAMPLES, affordable))


def _write_task(parts: DocumentSplit, examples: int, folder: Path) -> FileTask:
    """Write ``examples`` labelled texts per class as tables, and read them as a user's tables."""
    folder.mkdir()
    write_csv(parts.train[: examples * len(parts.classes)], folder / "train.csv")
    write_csv(parts.dev[: min(examples, _MAX_DEV_EXAMPLES) * len(parts.classes)], folder / "dev.csv")
    return guess(folder / "train.csv", dev=folder / "dev.csv", max_length=_MAX_LENGTH).task


def _plan_finetuning(task: FileTask, output: Path, pretrained: PretrainResult) -> dict[str, FinetuneRun]:
    """The two runs, which differ only in the weights that they start from."""
    run = FinetuneRun(
        task=task,
        model=pretrained.folder,
        output=output / "finetuned",
        seeds=_SEEDS,
        epochs=EPOCHS,
        optimizer=OptimizerConfig(lr=LEARNING_RATE, bias_correction=True),
    )
    return {FROM_SCRATCH: replace(run, from_scratch=True, output=output / "from-scratch"), PRETRAINED: run}


def _describe_text(documents: Sequence[Document]) -> str:
    megabytes = sum(len(each.text) for each in documents) / 1e6
    packages = len({each.package for each in documents})
    return f"{megabytes:.1f} MB, the documentation of {packages} Python packages on this machine"


def _describe_task(task: FileTask) -> str:
    train, dev = len(task.examples("train")), len(task.examples("dev"))
    return (
        f"Task: which of {len(task.labels)} packages does a text document? "
        f"{train:,} training texts, {dev:,} for evaluation.\n"
        "The modules of the latter are not used in pre-training or fine-tuning.\n"
        f"Accuracy, the best of {EPOCHS} epochs:"
    )
