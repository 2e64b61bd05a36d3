"""One restart of a fine-tuning: train with one seed, score dev after every epoch, keep the best epoch."""

from __future__ import annotations

import time

import torch

from bertkit.checkpoint.save_model import save_model
from bertkit.config.records import to_plain
from bertkit.contracts import LayerStack, Penalized
from bertkit.data.batches import batches_in_epoch
from bertkit.errors import SAME_COMMAND, DivergenceError, count_of, usage_error
from bertkit.finetuning.activations import cache_activations
from bertkit.finetuning.data import FinetuningData
from bertkit.finetuning.distillation import add_teacher
from bertkit.finetuning.epoch_selection import DevScores, EpochSelection
from bertkit.finetuning.record import FinetuneRun
from bertkit.finetuning.results import SeedResult, is_new_best, read_seeds, write_seed
from bertkit.finetuning.starting_point import add_language_model, build_finetuning_model
from bertkit.finetuning.unfinished_seed import Effort, UnfinishedSeed, delete_unfinished
from bertkit.finetuning.units import in_files_unit
from bertkit.inference.predict import predict, stream
from bertkit.machine.device import default_device
from bertkit.machine.interrupts import Interrupted, Interrupts
from bertkit.machine.precision import Precision
from bertkit.model import Model
from bertkit.report.progress import Progress
from bertkit.runs import RunFolder
from bertkit.scores import format_scores, name_on_split
from bertkit.task_types import FileTask
from bertkit.training.fit import Plan, TrainingState, fit
from bertkit.training.optimizer import build_optimizer


def train_seed(
    data: FinetuningData, seed: int, folder: RunFolder, interrupts: Interrupts, progress: Progress
) -> SeedResult:
    """Train with ``seed`` and save the result, and the model if no earlier seed is better.

    What an interrupted start has saved of this seed is continued. Raises Interrupted after Ctrl-C or SIGTERM, when the
    state after the current step is saved. A seed in its last step is finished.
    """
    run = data.run
    if interrupts.requested:
        raise Interrupted(interrupts.requested, f"stopped before seed {seed}. {SAME_COMMAND}")
    torch.manual_seed(seed)
    model = build_finetuning_model(run, data.model_folder).to(default_device())
    # The frozen encoder is run once per row: every later epoch and seed looks its activations up.
    predictor = cache_activations(model, data.activations) if model.frozen else model
    trained = add_language_model(predictor, run.lm_loss_weight) if run.lm_loss_weight else predictor
    trained = add_teacher(predictor, run) if run.teacher is not None else trained
    unfinished = UnfinishedSeed(folder, seed)
    try:
        selection, effort = _train(data, seed, predictor, trained, folder, unfinished, interrupts, progress)
    except DivergenceError:
        delete_unfinished(folder)  # it would diverge again
        raise
    best = selection.restore(trained)
    result = SeedResult(
        seed=seed,
        epochs=selection.epochs,
        best_epoch=selection.best_epoch,
        scores=best.scores | _score_extra_dev(data, predictor, best.task),
        seconds=effort.seconds,
        examples_per_second=effort.examples / effort.step_seconds,
        parts=best.parts,
    )
    progress.say(f"seed {seed}: {format_scores(result.scores)} (epoch {result.best_epoch} of {run.epochs})")
    _save(data, model, best.task, folder, result)
    delete_unfinished(folder)
    return result


def _train(
    data: FinetuningData,
    seed: int,
    predictor: Model,
    trained: Model,
    folder: RunFolder,
    unfinished: UnfinishedSeed,
    interrupts: Interrupts,
    progress: Progress,
) -> tuple[EpochSelection, Effort]:
    """Train to the last step, and score dev with ``predictor`` after every epoch."""
    run = data.run
    per_epoch = batches_in_epoch(data.train, run.batch_size)
    steps = per_epoch * run.epochs
    plan = _plan(run, seed, steps=steps)
    state, selection = _build_state(trained, run, plan.precision), EpochSelection()
    effort = unfinished.restore(state, selection, run.task)
    begin = time.monotonic() - effort.seconds
    if state.step:
        progress.say(f"seed {seed} continues after step {state.step:,} of {steps:,}")
    progress.start(f"seed {seed}", steps, "step")
    for step in fit(state, data.train, plan):
        effort.step_seconds += step.seconds
        effort.examples += step.examples
        effort.skipped += step.skipped
        progress.advance(step.step, loss=step.loss, **{"examples/s": step.examples / step.seconds})
        figures = {"lr": step.lr, **step.losses, "skipped": step.skipped}
        folder.log({"kind": "train", "seed": seed, "step": step.step, **figures})
        if step.step % per_epoch == 0:
            found = _score_dev(data, predictor, progress)
            folder.log({"kind": "dev", "seed": seed, "step": step.step, **found.scores})
            selection.add(found, trained)
        effort.seconds = time.monotonic() - begin
        if interrupts.requested and step.step < steps:
            progress.finish()
            unfinished.save(state, selection, effort)
            where = f"in seed {seed} after step {step.step:,} of {steps:,}, which is saved"
            raise Interrupted(interrupts.requested, f"stopped {where}. {SAME_COMMAND}")
        if unfinished.is_due and step.step < steps:
            unfinished.try_to_save(state, selection, effort, progress)
    progress.finish()
    if effort.skipped:
        progress.say(
            f"seed {seed}: {effort.skipped:,} of {count_of(steps, 'step')} changed no weight: their loss or gradient "
            "was not finite. A lower --lr may help."
        )
    return selection, effort


def _plan(run: FinetuneRun, seed: int, *, steps: int) -> Plan:
    assert run.precision is not None, "it is chosen once for all seeds"
    return Plan(
        total_steps=steps,
        batch_size=run.batch_size,
        micro_batch_size=run.micro_batch_size,
        optimizer=run.optimizer,
        schedule=run.schedule,
        precision=run.precision,
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


def _score_dev(data: FinetuningData, model: Model, progress: Progress) -> DevScores:
    predicted = stream(model, data.run.task, data.dev, data.tokenizer)
    task, predictions = data.run.task.calibrate(data.dev, list(progress.watch("dev", predicted, len(data.dev))))
    scores, parts = task.score(data.dev, predictions), task.score_parts(data.dev, predictions)
    return DevScores(task=task, scores=scores, parts=parts)


def _score_extra_dev(data: FinetuningData, model: Model, task: FileTask) -> dict[str, float]:
    """The scores of ``dev_mismatched`` with ``_mismatched`` added to their names, and so on for every other dev set."""
    found: dict[str, float] = {}
    for split, examples in data.extra_dev.items():
        scores = task.score(examples, predict(model, task, examples, data.tokenizer))
        found |= {name_on_split(name, split): value for name, value in scores.items()}
    return found


def _save(data: FinetuningData, model: Model, task: FileTask, folder: RunFolder, result: SeedResult) -> None:
    """Save the model if this seed is the best so far, then the record that marks the seed as finished."""
    if is_new_best(result, read_seeds(folder), task.metric):
        scores = to_plain(result.scores)
        model, task = in_files_unit(model, task)
        metadata = {"kind": "finetune", "task": task.record(), "seed": result.seed, "scores": scores}
        save_model(folder.model, model, data.tokenizer, metadata=metadata)
    write_seed(folder, result)
