"""The verbs that make models: quickstart, pretrain, finetune, tune."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bertkit.cli.output import show_json, show_lines, show_parts, show_table
from bertkit.cli.verbosity import Verbosity
from bertkit.errors import usage_error
from bertkit.report.progress import describe_duration


def quickstart(*, output: Path = Path("quickstart"), minutes: float = 10, talk: Verbosity | None = None) -> None:
    """Raw text to a fine-tuned model, with no input at all and no network.

    The text is the documentation of the Python packages on this machine.

    Parameters
    ----------
    output:
        Folder for everything that is made.
    minutes:
        How long it may take; more minutes train a larger model for longer.
    """
    from bertkit import api

    talk = talk or Verbosity()
    result = api.quickstart(output, minutes=minutes, progress=talk.mode)
    show_lines(result.lines())


@dataclass(frozen=True, kw_only=True)
class PretrainOptions:
    """Options of ``pretrain``. What is None here is left to the record of the run."""

    output: Path | None = None
    """Run folder: record, metrics, checkpoints, curve, model."""
    resume: Path | None = None
    """Go on with this run from its newest good checkpoint, bit for bit, perhaps with --set save_every=N."""
    architecture: str | None = None
    """bert, roberta, gpt or elmo. [default: bert]"""
    size: str | None = None
    """tiny, mini, small, medium, base, large, or LAYERS/WIDTH/HEADS. [default: mini]"""
    profile: Literal["paper", "fast"] | None = None
    """The paper's settings, or those that learn sooner: what to take for tiny and mini on a CPU. [default: paper]"""
    steps: int | None = None
    """Updates to make."""
    minutes: float | None = None
    """Time to train for: a step is measured, and the steps that fit are made. An hour unless --steps is given."""
    seq_length: int | None = None
    """Tokens in a row. [default: 128]"""
    batch_size: int | None = None
    """Rows in an update. [default: 256]"""
    lr: float | None = None
    """Peak learning rate. [default: 1e-4]"""
    seed: int | None = None
    """Same seed, same run. [default: 0]"""
    shard: bool | None = None
    """Divide weights and optimizer among torchrun's processes (FSDP2): for a model too large for each to hold."""
    config: Path | None = None
    """TOML or JSON file with any settings of the run; options go before it."""
    set: Sequence[str] = ()
    """Any settings, such as optimizer.beta2=0.98 task.masking.whole_word=true."""
    plan: bool = False
    """Show parameters, memory, tokens and time; train nothing."""


def pretrain(
    data: Path | None = None,
    /,
    *,
    options: PretrainOptions | None = None,
    json: bool = False,
    talk: Verbosity | None = None,
) -> None:
    """Train an encoder on prepared text, or go on with a run: bertkit pretrain --resume RUN.

    Parameters
    ----------
    data:
        Folder that bertkit prepare made.
    json:
        Show the result as JSON.
    """
    from bertkit import api
    from bertkit.pretraining.planning import PretrainPlan
    from bertkit.runs import read_run
    from bertkit.training.distributed import rank

    options, talk = options or PretrainOptions(), talk or Verbosity()
    result = api.pretrain(data, **vars(options), progress=talk.mode)
    if rank() > 0:
        return
    if json:
        show_json(result)
    elif isinstance(result, PretrainPlan):
        show_lines(result.lines())
    else:
        show_lines([f"{result.folder}: {result.steps:,} steps in {describe_duration(result.seconds)}"])
        if result.heldout:
            show_table(("held out", ""), result.heldout.items())
    run = options.output or options.resume
    if isinstance(result, PretrainPlan):
        return
    if read_run(result.folder)["run"]["task"]["words"] == "masked":
        talk.next("bertkit", "fill", run, "The capital of France is [MASK].")
    else:
        talk.next("bertkit", "finetune", "TASK", "--model", run, "-o", "RUN")


@dataclass(frozen=True, kw_only=True)
class FinetuneOptions:
    """Options of ``finetune``."""

    model: Path
    """Run folder or Hugging Face folder of a pre-trained BERT."""
    output: Path
    """Run folder: record, metrics, pictures, the best model."""
    data: Path | None = None
    """Folder with the task's files. [default: below BERTKIT_DATA]"""
    train: Sequence[Path] = ()
    """Training files instead of the task's own."""
    dev: Path | None = None
    """Development file, which picks the best epoch; without one, a tenth of your own table is held out."""
    test: Path | None = None
    """Test file."""
    text: str | None = None
    """Column of the text in your own table. [default: guessed, and printed]"""
    pair: str | None = None
    """Column of the second text."""
    label: str | None = None
    """Column of the label."""
    kind: Literal["classes", "number", "labels"] | None = None
    """Whether the answer is a class, a number, or several labels at once."""
    class_weights: str | None = None
    """How much classes weigh in the loss: NAME=NUMBER,NAME=NUMBER, or "balanced" for rare ones as much as common."""
    allow_rare_labels: bool = False
    """Keep a class that occurs once and looks like a slip of another."""
    seeds: int = 1
    """Restarts; mean, standard deviation and best are shown."""
    first_seed: int = 0
    """The restarts have this seed and those after it."""
    profile: Literal["bert", "bidaf", "bilstm_attention", "esim", "gpt", "roberta", "tagger"] | None = None
    """The settings that such a model was published with; other options go before them. [default: bert]"""
    epochs: int | None = None
    """Passes through the training examples. [default: 3]"""
    lr: float | None = None
    """Peak learning rate. [default: 5e-5]"""
    batch_size: int | None = None
    """Examples in an update. [default: 32]"""
    limit: int | None = None
    """Use this many training examples at most."""
    from_scratch: bool = False
    """The same network with fresh weights, to see what pre-training is worth."""
    reinit_layers: int = 0
    """For small data: draw this many of the last layers, and the pooler, anew."""
    layer_decay: float = 1.0
    """For small data: each layer learns with this share of the rate of the layer above it, such as 0.95."""
    set: Sequence[str] = ()
    """Any settings, such as schedule.warmup=0.06."""


def finetune(
    task: str | None = None,
    /,
    *,
    then: str | None = None,
    list: bool = False,
    options: FinetuneOptions | None = None,
    json: bool = False,
    talk: Verbosity | None = None,
) -> None:
    """Train for a task on the shelf (--list), or on your own table: bertkit finetune reviews.csv --model MODEL -o RUN.

    Parameters
    ----------
    task:
        A name such as glue:sst2, a .csv, .tsv, .jsonl or .parquet file, or a folder of train, dev and test.
    then:
        Another task or file, on which the result is fine-tuned in turn; the first one goes into RUN/first.
    list:
        Show the tasks on the shelf, with their scores and files.
    json:
        Show the result as JSON.
    """
    from bertkit import api

    if list:
        tasks = api.tasks()
        rows = [(each.name, each.metric, each.files, each.about) for each in tasks]
        show_json(tasks) if json else show_table(("task", "metric", "files", "about"), rows)
        return
    if task is None or options is None:
        raise usage_error("finetune needs a task or a file, --model MODEL and -o RUN. --list shows the tasks.")
    talk = talk or Verbosity()
    result = api.finetune(task, **vars(options), then=then, progress=talk.mode)
    if json:
        show_json(result)
    else:
        seeds = [(each.seed, each.best_epoch, *each.scores.values()) for each in result.seeds]
        show_table(("seed", "epoch", *result.best.scores), seeds)
        spread = "" if result.sd is None else f", sd {result.sd:.4f}"
        best = result.best.scores[result.metric]
        show_lines([f"{result.metric}: mean {result.mean:.4f}{spread}, best {best:.4f} (seed {result.best.seed})"])
        show_parts(result.best.parts)
    talk.next("bertkit", "predict", options.output, "INPUT", "-o", "OUTPUT")


@dataclass(frozen=True, kw_only=True)
class TuneOptions(FinetuneOptions):
    """Options of ``tune``: those of ``finetune``, and what is varied."""

    output: Path
    """Folder of the sweep: table, picture, every point's run, the best model as SWEEP/best."""
    grid: Sequence[str] = ()
    """What is varied: lr=5e-5,3e-5 epochs=2,3, and any setting by its path. [default: the paper's grid]"""
    trials: int | None = None
    """Draw so many points with optuna; then --grid may have ranges, such as lr=1e-5..1e-4."""
    sampler: Literal["tpe", "random"] = "tpe"
    """Draw in the light of the points before, or blindly."""
    seeds: int = 1
    """Restarts of every point; its mean over them is what counts."""
    epochs: int | None = None
    """Passes through the training examples, if they are not varied."""
    lr: float | None = None
    """Peak learning rate, if it is not varied."""
    batch_size: int | None = None
    """Examples in an update, if they are not varied."""


def tune(task: str, /, *, options: TuneOptions, json: bool = False, talk: Verbosity | None = None) -> None:
    """Fine-tune at every point of a grid, and keep the best: bertkit tune glue:rte --model MODEL -o SWEEP.

    The same command goes on after an interruption, and started several times, on machines that share the folder too,
    divides the points among the processes.

    Parameters
    ----------
    task:
        A name such as glue:sst2 (bertkit finetune --list), or a .csv, .tsv, .jsonl or .parquet file.
    json:
        Show the result as JSON.
    """
    from bertkit import api
    from bertkit.training.interrupts import Interrupted

    talk = talk or Verbosity()
    try:
        result = api.tune(task, **vars(options), progress=talk.mode)
    except Interrupted as stop:
        stop.args = (f"{stop}: {shlex.join(['bertkit', *sys.argv[1:]])}",)
        raise
    if json:
        show_json(result)
    else:
        show_table(result.header(), result.rows())
    talk.next("bertkit", "predict", options.output / "best", "INPUT", "-o", "OUTPUT")
