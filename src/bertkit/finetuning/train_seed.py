"""One restart of a fine-tuning: train with one seed, score dev after every epoch, keep the best epoch."""

from __future__ import annotations

import time
from typing import NamedTuple

import torch
from torch import Tensor

from bertkit import config
from bertkit.checkpoint.model_folder import save_model
from bertkit.contracts import LayerStack, Penalized
from bertkit.data.batches import batches_in_epoch
from bertkit.errors import count_of, usage_error, verb_of
from bertkit.finetuning.activations import cache_activations
from bertkit.finetuning.data import FinetuningData
from bertkit.finetuning.distillation import add_teacher
from bertkit.finetuning.record import FinetuneRun
from bertkit.finetuning.results import SeedResult, is_new_best, read_seeds, write_seed
from bertkit.finetuning.starting_point import add_language_model, build_finetuning_model
from bertkit.finetuning.units import in_files_unit
from bertkit.inference.predict import predict, stream
from bertkit.machine.device import default_device
from bertkit.machine.interrupts import Interrupted, Interrupts
from bertkit.machine.precision import Precision, choose_precision
from bertkit.metrics.classification import ClassScore
from bertkit.model import Model
from bertkit.report.progress import Progress
from bertkit.runs import RunFolder
from bertkit.scores import format_scores, rank_score
from bertkit.task_types import FileTask
from bertkit.training.fit import Plan, TrainingState, fit
from bertkit.training.optimizer import build_optimizer


class _DevScores(NamedTuple):
    """The task with its thresholds calibrated on dev, and the scores there."""

    task: FileTask
    scores: dict[str, float]
    parts: list[ClassScore]


class _EpochSelection:
    """The dev scores of every epoch, and the weights after the best one (of equal epochs the last)."""

    def __init__(self, task: FileTask) -> None:
        self.epochs: list[dict[str, float]] = []
        self.best_epoch = 0
        self.best = _DevScores(task, {}, [])
        self._weights: dict[str, Tensor] = {}

    def add(self, found: _DevScores, model: Model) -> None:
        """Note the scores of the next epoch, and copy the weights if it is the best so far."""
        metric = found.task.metric
        self.epochs.append(found.scores)
        if rank_score(found.scores[metric]) >= max(rank_score(scores[metric]) for scores in self.epochs):
            self.best, self.best_epoch = found, len(self.epochs)
            self._weights = {name: value.clone() for name, value in model.state_dict().items()}

    def restore(self, model: Model) -> None:
        """Set ``model`` back to the weights of the best epoch."""
        model.load_state_dict(self._weights)


def train_seed(
    data: FinetuningData, seed: int, folder: RunFolder, interrupts: Interrupts, progress: Progress
) -> SeedResult:
    """Train with ``seed`` and save the result, and the model if no earlier seed is better.

    Raises Interrupted after Ctrl-C or SIGTERM, before the next step; nothing of this seed is kept then. A seed in its
    last step is finished.
    """
    begin = time.monotonic()
    run = data.run
    _stop_if_requested(interrupts, run, seed)
    folder.delete_records(lambda record: record.get("seed") == seed)  # left by an earlier start that was interrupted
    torch.manual_seed(seed)
    model = build_finetuning_model(run, data.model_folder).to(default_device())
    # The frozen encoder is run once per row: every later epoch and seed looks its activations up.
    predictor = cache_activations(model, data.activations) if model.frozen else model
    trained = add_language_model(predictor, run.lm_loss_weight) if run.lm_loss_weight else predictor
    trained = add_teacher(predictor, run) if run.teacher is not None else trained
    per_epoch = batches_in_epoch(data.train, run.batch_size)
    steps = per_epoch * run.epochs
    plan = _plan(run, seed, steps=steps)
    progress.start(f"seed {seed}", steps, "step")
    selection = _EpochSelection(run.task)
    training_seconds, trained_examples = 0.0, 0
    for step in fit(_build_state(trained, run, plan.precision), data.train, plan):
        training_seconds += step.seconds
        trained_examples += step.examples
        progress.advance(step.step, loss=step.loss, **{"examples/s": step.examples / step.seconds})
        folder.log({"kind": "train", "seed": seed, "step": step.step, "lr": step.lr, **step.losses})
        if step.step % per_epoch == 0:
            found = _score_dev(data, predictor, progress)
            folder.log({"kind": "dev", "seed": seed, "step": step.step, **found.scores})
            selection.add(found, trained)
        if interrupts.requested and step.step < steps:
            progress.finish()
            _stop_if_requested(interrupts, run, seed)
    progress.finish()
    selection.restore(trained)
    best = selection.best
    result = SeedResult(
        seed=seed,
        epochs=selection.epochs,
        best_epoch=selection.best_epoch,
        scores=best.scores | _score_extra_dev(data, predictor, best.task),
        seconds=time.monotonic() - begin,
        examples_per_second=trained_examples / training_seconds,
        parts=best.parts,
    )
    progress.say(f"seed {seed}: {format_scores(result.scores)} (epoch {result.best_epoch} of {run.epochs})")
    _save(data, model, best.task, folder, result)
    return result


def _stop_if_requested(interrupts: Interrupts, run: FinetuneRun, seed: int) -> None:
    """Raise Interrupted if a signal has arrived."""
    if interrupts.requested:
        finished = seed - run.first_seed
        kept = f"{count_of(finished, 'finished seed')} {verb_of(finished, 'is', 'are')} kept"
        message = f"stopped in seed {seed}; {kept}. Continue with the same command."
        raise Interrupted(interrupts.requested, message)


def _plan(run: FinetuneRun, seed: int, *, steps: int) -> Plan:
    return Plan(
        total_steps=steps,
        batch_size=run.batch_size,
        micro_batch_size=run.micro_batch_size,
        optimizer=run.optimizer,
        schedule=run.schedule,
        precision=run.precision or choose_precision(default_device()),
        seed=seed,
    )


def _build_state(model: Model, run: FinetuneRun, precision: Precision) -> TrainingState:
    scales = layer_lr_scales(model, run.layer_decay) if run.layer_decay < 1 else {}
    encoder = model.encoder
    penalties = encoder.l2_penalties() if isinstance(encoder, Penalized) else {}
    penalties = {f"encoder.{name}": factor for name, factor in penalties.items()}
    return TrainingState(model, build_optimizer(model, run.optimizer, scales, penalties, precision))


def layer_lr_scales(model: Model, decay: float) -> dict[str, float]:
    """Factors of the learning rate by encoder parameter: ``decay`` for the last layer, its square for the one below.

    The embeddings have the smallest factor; heads, and whatever is on top of the last layer, have the full rate.
    """
    encoder, top = model.encoder, model.encoder.num_layers + 1
    if not isinstance(encoder, LayerStack):
        raise usage_error(f"{type(encoder).__name__} is not a stack of similar layers: leave out layer_decay.")
    return {f"encoder.{name}": decay ** (top - encoder.depth(name)) for name, _ in encoder.named_parameters()}


def _score_dev(data: FinetuningData, model: Model, progress: Progress) -> _DevScores:
    predicted = stream(model, data.run.task, data.dev, data.tokenizer)
    task, predictions = data.run.task.calibrate(data.dev, list(progress.watch("dev", predicted, len(data.dev))))
    return _DevScores(task, task.score(data.dev, predictions), task.score_parts(data.dev, predictions))


def _score_extra_dev(data: FinetuningData, model: Model, task: FileTask) -> dict[str, float]:
    """The scores of ``dev_mismatched`` with ``_mismatched`` added to their names, and so on for every other dev set."""
    found: dict[str, float] = {}
    for split, examples in data.extra_dev.items():
        scores = task.score(examples, predict(model, task, examples, data.tokenizer))
        found |= {f"{name}{split.removeprefix('dev')}": value for name, value in scores.items()}
    return found


def _save(data: FinetuningData, model: Model, task: FileTask, folder: RunFolder, result: SeedResult) -> None:
    """Save the model if this seed is the best so far, then the record that marks the seed as finished."""
    if is_new_best(result, read_seeds(folder), task.metric):
        scores = config.to_json(result.scores)
        model, task = in_files_unit(model, task)
        metadata = {"kind": "finetune", "task": task.record(), "seed": result.seed, "scores": scores}
        save_model(folder.model, model, data.tokenizer, metadata=metadata)
    write_seed(folder, result)
