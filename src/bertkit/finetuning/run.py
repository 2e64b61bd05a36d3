"""Fine-tuning from start to finish, with restarts: build, fit, keep the best epoch, predict, score, report."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bertkit import config
from bertkit.batch import Feature
from bertkit.checkpoint import model_folder
from bertkit.contracts import SubwordTokenizer
from bertkit.data.batches import FeatureSource, batches_in_epoch
from bertkit.errors import data_error, usage_error
from bertkit.finetuning.card import write_finetuning_card
from bertkit.finetuning.record import FinetuneRun
from bertkit.finetuning.starting_point import add_language_model, begin_encoder
from bertkit.inference.predict import predict
from bertkit.metrics.classification import ClassScore
from bertkit.model import Model
from bertkit.objectives.clm import label_next
from bertkit.report.plots import plot_confusion, plot_epochs
from bertkit.report.progress import Progress
from bertkit.runs import RunFolder
from bertkit.storage.atomic import read_json, write_json
from bertkit.task_types import FileTask, TextClassificationTask
from bertkit.training.activations import Activations, remember
from bertkit.training.fit import Plan, TrainingState, fit
from bertkit.training.interrupts import Interrupted, Interrupts
from bertkit.training.optimizer import build_optimizer
from bertkit.training.precision import choose_precision, default_device


@dataclass(frozen=True, kw_only=True)
class SeedResult:
    """One restart: the dev scores after each epoch, and which of them was kept.

    ``scores`` are those of the epoch that was kept, and of further dev sets under names such as
    ``accuracy_mismatched``; ``parts`` are its types of entities, or its labels where several apply.
    """

    seed: int
    epochs: list[dict[str, float]]
    best_epoch: int
    scores: dict[str, float]
    seconds: float
    examples_per_second: float
    parts: list[ClassScore] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class FinetuneResult:
    """All restarts. ``mean`` and ``sd`` (of a sample, so None for one seed) are those of the task's metric."""

    folder: Path
    metric: str
    seeds: list[SeedResult]
    mean: float
    sd: float | None
    best: SeedResult


@dataclass(frozen=True, kw_only=True)
class FinetuningData:
    """A fine-tuning with its examples, those of train as features, and what a frozen encoder has said to them."""

    run: FinetuneRun
    tokenizer: SubwordTokenizer
    train: FeatureSource
    examples: int
    dev: Sequence[Any]
    further: Mapping[str, Sequence[Any]]
    activations: Activations

    def serves(self, run: FinetuneRun) -> bool:
        """Whether ``run`` reads the same examples in the same way."""
        asked = ("task", "model", "limit", "dev_limit")
        alike = all(getattr(self.run, name) == getattr(run, name) for name in asked)
        return alike and (self.train.label is None) == (run.lm_loss_weight == 0)

    def for_run(self, run: FinetuneRun) -> FinetuningData:
        """The examples for a run that they serve."""
        assert self.serves(run)
        return replace(self, run=run)


def finetune(run: FinetuneRun, progress: Progress, *, origins: Mapping[str, str] | None = None) -> FinetuneResult:
    """Fine-tune ``run.model`` with every seed into ``run.output``; finished seeds of an earlier start are kept.

    ``origins`` tell where each setting came from, for the record.
    Raises Interrupted on Ctrl-C or SIGTERM; the same command then goes on with the seed that was cut off.
    """
    with RunFolder(run.output) as folder, Interrupts() as interrupts:
        if folder.notice:
            progress.say(folder.notice)
        begin_run(folder, {**config.to_json(run), "task": run.task.record()}, run.task, origins=origins)
        return run_seeds(load_data(run, progress), folder, interrupts, progress)


def begin_run(
    folder: RunFolder,
    asked: Mapping[str, Any],
    task: FileTask,
    *,
    kind: str = "finetune",
    origins: Mapping[str, str] | None = None,
) -> None:
    """Write the record of what was ``asked``, or see that the folder holds just this, on the same data.

    A fine-tuning that ended before its first step, such as one of a model that is not there, gives way.
    """
    data = _fingerprint(task)
    if folder.record.exists() and not folder.metrics.exists() and read_json(folder.record)["kind"] == "finetune":
        folder.record.unlink()
    if not folder.record.exists():
        folder.begin(asked, kind=kind, origins=dict(origins or {}), data=data)
    elif read_json(folder.record)["run"] != asked:
        raise usage_error(f"{folder.path} holds another run. Choose another -o folder, or repeat its command.")
    elif read_json(folder.record).get("data", data) != data:
        raise usage_error(f"the data of {folder.path} is no longer what it began with. Choose another -o folder.")


def run_seeds(job: FinetuningData, folder: RunFolder, interrupts: Interrupts, progress: Progress) -> FinetuneResult:
    """Every seed that is not finished yet, and the report."""
    run = job.run
    folder.note(examples={"train": job.examples, "dev": len(job.dev)})
    results: list[SeedResult] = []
    for seed in range(run.first_seed, run.first_seed + run.seeds):
        results.append(_finished(folder, seed) or _run_seed(job, seed, folder, interrupts, progress))
    result = _summarise(run, folder, results)
    _report(job, folder, result)
    return result


def _fingerprint(task: FileTask) -> dict[str, list[dict[str, Any]]]:
    """The files of train and dev, of every further dev set too, with their SHA-256."""
    splits = ["train", *(split for split in task.files.splits if split.startswith("dev"))]
    return {split: task.files.fingerprints(task.name, split) for split in splits}


def load_data(run: FinetuneRun, progress: Progress, earlier: FinetuningData | None = None) -> FinetuningData:
    """Read and encode the examples; what a frozen encoder has said in an ``earlier`` job is not asked again."""
    tokenizer = model_folder.load_tokenizer(run.model)
    train = [example for example in run.task.examples("train") if example.label is not None][: run.limit]
    dev = [example for example in run.task.examples("dev") if example.label is not None][: run.dev_limit]
    if not train or not dev:
        advice = " Too few different texts to hold some out: name a --dev FILE." if train and run.task.heldout else ""
        raise data_error(f"{run.task.name} has {len(train)} training and {len(dev)} dev examples with a label.{advice}")
    encoded = [features for _, features in run.task.encode_all(train, tokenizer)]
    features = [feature for each in encoded for feature in each]
    positions = getattr(model_folder.read_config(run.model), "max_positions", None)
    if positions is not None and max(map(len, features)) > positions:
        raise usage_error(
            f"{run.model} reads {positions} tokens at most, and {run.task.name} has longer inputs. "
            f"Cut them: --set task.max_length={positions}"
        )
    windows = f" in {len(features):,} windows" if len(features) > len(train) else ""
    progress.say(f"{len(train):,} training{windows} and {len(dev):,} dev examples, {_describe(features)}")
    if not run.from_scratch and _answers_alike(run):
        progress.say(f"{run.model} was fine-tuned for the same kind of answers: it keeps its heads")
    if cuts := _describe_cuts(run.task, encoded):
        progress.say(cuts)
    source = FeatureSource(features, pad_id=tokenizer.pad_id, label=label_next if run.lm_loss_weight else None)
    further = {split: run.task.labelled(split)[: run.dev_limit] for split in run.task.further_devs()}
    known = earlier.activations if earlier and earlier.run.model == run.model else Activations(run.output)
    return FinetuningData(
        run=run,
        tokenizer=tokenizer,
        train=source,
        examples=len(train),
        dev=dev,
        further=further,
        activations=known,
    )


def _describe(features: Sequence[Feature]) -> str:
    lengths = sorted(len(feature) for feature in features)
    return f"{lengths[len(lengths) // 2]} tokens at the median, {lengths[-1]} at most"


def _describe_cuts(task: FileTask, encoded: Sequence[Sequence[Feature]]) -> str:
    """What was cut off the training examples, in a sentence; nothing if nothing was."""
    cut = [sum(feature.num_truncated for feature in each) for each in encoded]
    if not any(cut):
        return ""
    share = sum(cut) / (sum(cut) + sum(len(feature) for each in encoded for feature in each))
    return (
        f"{sum(map(bool, cut)):,} of {len(encoded):,} training examples were cut to {task.max_length} tokens; "
        f"{share:.1%} of the tokens are lost. {task.advise_on_cuts()}"
    )


def _build_model(job: FinetuningData) -> Model:
    """The encoder that the run begins with, and fresh heads.

    A model that was fine-tuned for answers of the same kind keeps its heads.
    """
    encoder = begin_encoder(job.run, job.tokenizer.vocab_size)
    heads = job.run.task.objectives(encoder)
    model = Model(encoder, heads).to(default_device())
    changed = job.run.from_scratch or job.run.reinit_layers or job.run.layer_decay < 1 or job.run.lstm_layers
    if model.frozen and changed:
        raise usage_error(
            "features come from an encoder as it is: no from_scratch, reinit_layers, layer_decay or lstm_layers."
        )
    if not job.run.from_scratch and _answers_alike(job.run):
        trained = model_folder.load_model(job.run.model, job.run.task.objectives)
        for name, head in heads.items():
            head.load_state_dict(trained.objectives[name].state_dict())
    return model


def _answers_alike(run: FinetuneRun) -> bool:
    """Whether ``run.model`` was fine-tuned here for answers of the shape and with the labels of the task."""
    known, asked = model_folder.read_metadata(run.model).get("task"), run.task.record()
    # A record that is older than one of these settings lacks it, and was made without.
    wanted = ("shape", "labels", "features", "crf")
    return known is not None and all((known.get(name) or None) == (asked.get(name) or None) for name in wanted)


def layer_lr_scales(model: Model, decay: float) -> dict[str, float]:
    """The share of the learning rate of every parameter: ``decay`` for the last block, its square for the one below."""
    encoder, top = model.encoder, model.encoder.num_layers + 1
    return {f"encoder.{name}": decay ** (top - encoder.depth(name)) for name, _ in encoder.named_parameters()}


def _run_seed(
    job: FinetuningData, seed: int, folder: RunFolder, interrupts: Interrupts, progress: Progress
) -> SeedResult:
    begin = time.monotonic()
    run, metric = job.run, job.run.task.metric
    folder.forget(lambda record: record.get("seed") == seed)  # of an earlier start that was cut off
    torch.manual_seed(seed)
    whole = _build_model(job)
    asked = remember(whole, job.activations) if whole.frozen else whole
    model = add_language_model(asked, run.lm_loss_weight) if run.lm_loss_weight else asked
    per_epoch = batches_in_epoch(job.train, run.batch_size)
    precision = run.precision or choose_precision(default_device())
    plan = Plan(
        total_steps=per_epoch * run.epochs,
        batch_size=run.batch_size,
        micro_batch_size=run.micro_batch_size,
        optimizer=run.optimizer,
        schedule=run.schedule,
        precision=precision,
        seed=seed,
    )
    shares = layer_lr_scales(model, run.layer_decay) if run.layer_decay < 1 else {}
    penalties = {f"encoder.{name}": factor for name, factor in model.encoder.penalties().items()}
    state = TrainingState(model, build_optimizer(model, run.optimizer, shares, penalties))
    progress.start(f"seed {seed}", plan.total_steps, "step")
    epochs: list[dict[str, float]] = []
    best: dict[str, Tensor] = {}
    kept = _Scored(run.task, {}, [])
    busy = 0.0
    for step in fit(state, job.train, plan):
        busy += step.seconds
        progress.advance(step.step, loss=sum(step.losses.values()), **{"examples/s": step.examples / step.seconds})
        folder.log({"kind": "train", "seed": seed, "step": step.step, "lr": step.lr, **step.losses})
        if step.step % per_epoch == 0:
            found = _score(job, asked)
            epochs.append(found.scores)
            folder.log({"kind": "dev", "seed": seed, "step": step.step, **found.scores})
            if found.scores[metric] >= max(each[metric] for each in epochs):
                best, kept = {name: value.clone() for name, value in model.state_dict().items()}, found
        if interrupts.requested:
            progress.finish()
            done = seed - run.first_seed
            message = f"stopped in seed {seed}; {done} finished seeds are kept. Go on with the same command."
            raise Interrupted(interrupts.requested, message)
    progress.finish()
    model.load_state_dict(best)
    best_epoch = max(range(len(epochs)), key=lambda epoch: (epochs[epoch][metric], epoch))
    result = SeedResult(
        seed=seed,
        epochs=epochs,
        best_epoch=best_epoch + 1,
        scores=kept.scores | _score_further(job, asked, kept.task),
        seconds=time.monotonic() - begin,
        examples_per_second=len(job.train) * run.epochs / busy,
        parts=kept.parts,
    )
    shown = ", ".join(f"{name} {value:.4f}" for name, value in result.scores.items())
    progress.say(f"seed {seed}: {shown} (epoch {result.best_epoch} of {run.epochs})")
    _save_seed(job, whole, kept.task, folder, result)
    return result


class _Scored(NamedTuple):
    """The task with its thresholds set on dev, and the official scores there."""

    task: FileTask
    scores: dict[str, float]
    parts: list[ClassScore]


def _score(job: FinetuningData, model: Model) -> _Scored:
    task, predictions = job.run.task.calibrate(job.dev, predict(model, job.run.task, job.dev, job.tokenizer))
    return _Scored(task, task.score(job.dev, predictions), task.score_parts(job.dev, predictions))


def _score_further(job: FinetuningData, model: Model, task: FileTask) -> dict[str, float]:
    """The scores of ``dev_mismatched`` with ``_mismatched`` behind their names, and so for every further dev set."""
    found: dict[str, float] = {}
    for split, examples in job.further.items():
        scores = task.score(examples, predict(model, task, examples, job.tokenizer))
        found |= {f"{name}{split.removeprefix('dev')}": value for name, value in scores.items()}
    return found


def _save_seed(job: FinetuningData, model: Model, task: FileTask, folder: RunFolder, result: SeedResult) -> None:
    """Keep the model of the best seed so far, then the marker that this seed is done."""
    metric = job.run.task.metric
    earlier = [each for each in _all_finished(folder) if each.seed != result.seed]
    if all(result.scores[metric] > each.scores[metric] for each in earlier):
        about = {"kind": "finetune", "task": task.record(), "seed": result.seed, "scores": result.scores}
        model_folder.save_model(folder.model, model, job.tokenizer, about=about)
    (folder.path / "seeds").mkdir(exist_ok=True)
    write_json(folder.path / "seeds" / f"{result.seed}.json", config.to_json(result))


def _finished(folder: RunFolder, seed: int) -> SeedResult | None:
    path = folder.path / "seeds" / f"{seed}.json"
    return config.from_json(SeedResult, read_json(path)) if path.exists() else None


def _all_finished(folder: RunFolder) -> list[SeedResult]:
    paths = sorted((folder.path / "seeds").glob("*.json"), key=lambda path: int(path.stem))
    return [config.from_json(SeedResult, read_json(path)) for path in paths]


def _summarise(run: FinetuneRun, folder: RunFolder, results: list[SeedResult]) -> FinetuneResult:
    metric = run.task.metric
    values = [result.scores[metric] for result in results]
    return FinetuneResult(
        folder=folder.path,
        metric=metric,
        seeds=results,
        mean=statistics.fmean(values),
        sd=statistics.stdev(values) if len(values) > 1 else None,
        best=max(results, key=lambda result: result.scores[metric]),
    )


def _report(job: FinetuningData, folder: RunFolder, result: FinetuneResult) -> None:
    """Pictures and ``results.json``; the confusion matrix is that of the best seed."""
    plot_epochs({each.seed: each.epochs for each in result.seeds}, result.metric, folder.path / "epochs.png")
    if job.run.task.shape == TextClassificationTask.shape and job.run.task.labels:
        model = model_folder.load_model(folder.model, job.run.task.objectives)
        predicted = [each.label for each in predict(model, job.run.task, job.dev, job.tokenizer)]
        gold = [example.label for example in job.dev]
        plot_confusion(gold, predicted, job.run.task.labels, folder.path / "confusion.png")
    write_json(folder.path / "results.json", config.to_json(result))
    write_finetuning_card(folder, job.run, config.to_json(result))
    folder.note(ended="done", metric=result.metric, mean=result.mean, sd=result.sd, best=result.best.scores)
