"""From no input to a fine-tuned BERT within a given number of minutes, and what pre-training gains.

The text is the documentation of the installed packages. A vocabulary is trained on it, the corpus is prepared, and a
network is pre-trained. The same network is fine-tuned on a task made from the same text, from three starts: random
weights, the initial weights of the pre-training, and its result. The report shows the measured scores, whatever they
are.

The first two starts are fine-tuned before the pre-training, which so knows how much time the third one needs, and takes
the rest, or a least share of the time where other programs have slowed them down.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from bertkit.config.settings import Setting, apply
from bertkit.encoders.bert import size
from bertkit.errors import usage_error
from bertkit.finetuning.record import FinetuneRun
from bertkit.inference.pipeline import load
from bertkit.machine.device import default_device
from bertkit.machine.precision import MEASURED, choose_precision
from bertkit.pretraining.defaults import profile_settings
from bertkit.pretraining.job import build_job
from bertkit.pretraining.record import PretrainRun
from bertkit.pretraining.run import pretrain
from bertkit.pretraining.saving import save_current_model
from bertkit.pretraining.trial_steps import measure_step
from bertkit.quick_start.corpus import describe_text, prepare_corpus, read_documents
from bertkit.quick_start.docstrings import installed_packages
from bertkit.quick_start.labelling import DocumentSplit, split_documents, write_csv
from bertkit.quick_start.report import (
    INITIAL_WEIGHTS,
    PRETRAINED,
    UNTRAINED,
    QuickstartResult,
    Score,
    fill_blanks,
)
from bertkit.quick_start.workers import count_processes, finetune_all
from bertkit.report.progress import Progress, describe_duration
from bertkit.runs import read_metrics
from bertkit.storage.outputs import open_output_folder
from bertkit.task_types import FileTask
from bertkit.text.wordpiece import WordPiece
from bertkit.training.optimizer import OptimizerConfig
from bertkit.user_tables.guess import guess

_SHARE_TO_MEASURE = 0.005
_SHARE_TO_FINETUNE = 0.35
_SHARE_IN_ALL = 0.96
_LEAST_SHARE_TO_PRETRAIN = 0.3
"""Shares of the time; pre-training gets what the fine-tunings leave, half to two thirds of it. Where other programs use
the cores the fine-tunings may leave seconds, in which nothing is learned (one step: 45 %, a bag of words 54); then
everything takes longer."""

_SECONDS_BESIDE_STEPS = 15.0
"""Pre-training takes these in addition to its minutes: to import PyTorch, then for the last evaluation and the plot."""

_SIZE = "mini"
"""Also where there is little time: with 109 steps it has 63.9 %, and BERT-tiny with 1,294, which take three times as
long, 60.6. After 45 seconds each they have 55.0 and 51.8 (docs/results/quickstart.md)."""

_COMPARED_PASSAGES = {
    "task.objectives": ("mlm", "passages"),
    "seq_length": 128,
    "batch_size": 32,
    "long_seq_length": 256,
    "long_batch_size": 16,
}
"""Beside masked words, the network learns which passages are from one text, because the task asks what a text is about.
The rows, half as long as a text, are those of ``--profile fast``. With 400 training texts and 1.5 M tokens: 67.2 %, and
63.4 % with masked words alone (docs/results/quickstart.md)."""

_EPOCHS = 6
_POOLING = "mean"
_LEARNING_RATE = 3e-4
_LEARNING_RATE_WITHOUT_TRAINING = 1e-3
"""Each start has the rate that suits it. The pre-trained network has 65.7 % with 3e-4, which is the default of small
networks, and 62.6 % with 1e-3; its initial weights have 50.4 and 58.1 % (docs/results/quickstart.md)."""

_SEEDS = 3
_MAX_LENGTH = 96
_MAX_EXAMPLES = 64
_MIN_EXAMPLES = 8
"""Per class, for training and as many for evaluation. A faster machine pre-trains longer, and has no larger task: with
125 its pre-training got 290 of the 600 seconds, with 62 400 (docs/results/quickstart.md)."""

_COST_OF_EXAMPLE = 1.4
"""The time of a fine-tuning example, with evaluation on dev after each epoch, by that of its tokens in pre-training."""


@dataclass(frozen=True, kw_only=True)
class _Budget:
    """``seconds`` from ``begin`` on, and the ``processes`` that may fine-tune at the same time."""

    begin: float
    seconds: float
    processes: int

    @property
    def left(self) -> float:
        """The seconds that are left, without a reserve for the report."""
        return self.begin + _SHARE_IN_ALL * self.seconds - time.monotonic()

    def rounds(self, runs: int) -> int:
        """How often all processes are used for as many ``runs``."""
        return -(-runs // self.processes)


def quickstart(
    output: Path, *, minutes: float = 10, progress: Progress, packages: Mapping[str, Path] | None = None
) -> QuickstartResult:
    """Run the quickstart in the new folder ``output``; ``packages`` (name -> folder) replaces the installed ones."""
    open_output_folder(output, ())
    if any(output.iterdir()):
        raise usage_error(f"{output} is not empty. Choose another -o folder, or delete it.")
    budget = _Budget(begin=time.monotonic(), seconds=minutes * 60, processes=count_processes())
    documents = read_documents(packages or installed_packages(), minutes, progress)
    parts = split_documents(documents)
    tokenizer = prepare_corpus(parts.unlabelled, output, progress)
    run = _pretraining_run(output, tokenizer)
    token_seconds = _measure_token(run, budget, progress)
    task = _write_task(parts, _afford_examples(parts, tokenizer, token_seconds, budget), output / "task")
    run = apply(run, [Setting(path, value, "quickstart") for path, value in _COMPARED_PASSAGES.items()])
    starts = _plan_finetuning(task, output)
    _save_initial_weights(run, starts[INITIAL_WEIGHTS].model)
    scores = _finetune({start: starts[start] for start in (UNTRAINED, INITIAL_WEIGHTS)}, budget, progress)
    needed = 1.1 * scores[UNTRAINED].seconds * budget.rounds(_SEEDS) / budget.rounds(2 * _SEEDS)
    seconds = _seconds_to_pretrain(budget, needed + _SECONDS_BESIDE_STEPS, progress)
    pretrained = pretrain(replace(run, minutes=seconds / 60), progress, origins={"precision": MEASURED})
    scores |= _finetune({PRETRAINED: starts[PRETRAINED]}, budget, progress)
    return QuickstartResult(
        output=output,
        size=_SIZE,
        text=describe_text(documents),
        task=_describe_task(task),
        losses=[each["loss/mlm"] for each in read_metrics(run.output / "metrics.jsonl") if each["kind"] == "train"],
        pretraining=pretrained,
        blanks=fill_blanks(load(pretrained.folder), parts.heldout),
        scores=scores,
        seconds=time.monotonic() - budget.begin,
    )


def _seconds_to_pretrain(budget: _Budget, needed: float, progress: Progress) -> float:
    """The seconds of pre-training: what is left after the ``needed`` seconds of other work, or its least share."""
    left, least = budget.left - needed, _LEAST_SHARE_TO_PRETRAIN * budget.seconds
    if left < least:
        progress.say(
            f"fine-tuning takes longer than planned, as if other programs used the cores: the quickstart takes about "
            f"{describe_duration(least - left)} longer than {describe_duration(budget.seconds)}"
        )
    return max(least, left)


def _measure_token(run: PretrainRun, budget: _Budget, progress: Progress) -> float:
    """The seconds of one thread per token of pre-training."""
    with _one_thread():
        token_seconds = measure_step(run, _SHARE_TO_MEASURE * budget.seconds) / run.tokens_per_step
    seconds = (budget.left - _SHARE_TO_FINETUNE * budget.seconds) * budget.processes
    progress.say(
        f"BERT-{_SIZE}: {1 / token_seconds:,.0f} tokens per second, "
        f"about {round(max(0.0, seconds) / token_seconds, -3):,.0f} tokens in the time that fine-tuning leaves"
    )
    return token_seconds


@contextmanager
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        yield
    finally:
        torch.set_num_threads(threads)


def _pretraining_run(output: Path, tokenizer: WordPiece) -> PretrainRun:
    """The pre-training, whose ``minutes`` are not known yet."""
    encoder = size(_SIZE, vocab_size=tokenizer.vocab_size, max_positions=128)
    run = PretrainRun(
        data=output / "data",
        output=output / "pretrained",
        encoder=encoder,
        evaluation_examples=1000,
        keep_checkpoints=1,
    )
    fast = profile_settings("fast", encoder).items()
    run = apply(run, [Setting(path, value, "--profile fast") for path, value in fast])
    return replace(run, precision=choose_precision(default_device()))


def _save_initial_weights(run: PretrainRun, folder: Path) -> None:
    """Save the model before the first step of its pre-training: its initial weights come from the corpus."""
    save_current_model(build_job(replace(run, steps=1)), folder, {})


def _afford_examples(parts: DocumentSplit, tokenizer: WordPiece, token_seconds: float, budget: _Budget) -> int:
    """The number of training examples per class for which all fine-tunings fit into their share of the time."""
    sample = [len(tokens.ids) for tokens in tokenizer.encode_batch([each.text for each in parts.train[:200]])]
    tokens = sum(min(length + 2, _MAX_LENGTH) for length in sample) / len(sample)
    rounds = budget.rounds(2 * _SEEDS) + budget.rounds(_SEEDS)
    readings = rounds * _EPOCHS * len(parts.classes)
    affordable = int(_SHARE_TO_FINETUNE * budget.seconds / (readings * tokens * token_seconds * _COST_OF_EXAMPLE))
    return max(_MIN_EXAMPLES, min(_MAX_EXAMPLES, affordable))


def _write_task(parts: DocumentSplit, examples: int, folder: Path) -> FileTask:
    """Write ``examples`` labelled texts per class and split as tables, and read them as a user's tables."""
    folder.mkdir()
    write_csv(parts.train[: examples * len(parts.classes)], folder / "train.csv")
    write_csv(parts.dev[: examples * len(parts.classes)], folder / "dev.csv")
    return guess(folder / "train.csv", dev=folder / "dev.csv", max_length=_MAX_LENGTH).task


def _plan_finetuning(task: FileTask, output: Path) -> dict[str, FinetuneRun]:
    """The fine-tunings, which differ only in the weights that they start from and in the learning rate."""
    pretrained = FinetuneRun(
        task=task,
        model=output / "pretrained",
        output=output / "finetuned",
        epochs=_EPOCHS,
        optimizer=OptimizerConfig(lr=_LEARNING_RATE, bias_correction=True),
    )
    pretrained = apply(pretrained, [Setting("task.pooling", _POOLING, "quickstart")])
    initial = replace(
        pretrained,
        model=output / "initial-weights",
        output=output / "finetuned-initial-weights",
        optimizer=replace(pretrained.optimizer, lr=_LEARNING_RATE_WITHOUT_TRAINING),
    )
    untrained = replace(initial, from_scratch=True, output=output / "finetuned-untrained")
    return {UNTRAINED: untrained, INITIAL_WEIGHTS: initial, PRETRAINED: pretrained}


def _finetune(runs: Mapping[str, FinetuneRun], budget: _Budget, progress: Progress) -> dict[str, Score]:
    """Fine-tune each of ``runs`` with every seed, in a process and a folder of its own.

    The baselines are the same for all, so only the first seed of the pre-trained network has them. The seconds of a
    score are those of all ``runs``.
    """
    begin = time.monotonic()
    seeds = [
        replace(run, first_seed=seed, output=run.output / f"seed-{seed}", baseline=start == PRETRAINED and seed == 0)
        for start, run in runs.items()
        for seed in range(_SEEDS)
    ]
    results = finetune_all(seeds, budget.processes, f"fine-tuning: {', '.join(runs)}", progress)
    seconds = time.monotonic() - begin
    return {
        start: Score.of(results[first : first + _SEEDS], seconds)
        for start, first in zip(runs, range(0, len(results), _SEEDS), strict=True)
    }


def _describe_task(task: FileTask) -> str:
    train, dev = map(len, task.reader.train_and_dev())
    return (
        f"Task: which of {len(task.labels)} packages does a text document? "
        f"{train:,} training texts, {dev:,} for evaluation.\n"
        "The modules of the latter are not used in pre-training or fine-tuning.\n"
        f"Accuracy of the networks after {_EPOCHS} epochs:"
    )
