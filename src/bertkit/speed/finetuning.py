"""The speed of fine-tuning a classifier of texts, beside that of Hugging Face.

All systems start from the same weights and train on the same features in batches of random lengths, with the same
AdamW and dropout; Hugging Face's batches are padded to their longest text, and bertkit's as ``bertkit finetune`` does.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor, nn

from bertkit.batch import Feature
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.data.batches import FeatureSource, batch_indices, batches_in_epoch
from bertkit.errors import usage_error
from bertkit.machine.precision import Precision
from bertkit.model import Model
from bertkit.optional import require
from bertkit.options.speed import BenchFinetuneOptions, TrainingPeer
from bertkit.speed.rounds import (
    EXTRA,
    OWN,
    SpeedComparison,
    StepMaker,
    add_peers,
    choose_formats,
    clock_name,
    compare,
    time_steps,
)
from bertkit.speed.training_steps import make_step, own_training
from bertkit.task_types import FileTask
from bertkit.task_types.text_classification import TextClassificationTask
from bertkit.training.optimizer import OptimizerConfig

_OPTIMIZER = OptimizerConfig(lr=5e-5, bias_correction=True)


@dataclass(frozen=True, slots=True, eq=False)
class TrainingSet:
    """What every system trains on: the model folder with the initial weights, and features of the task."""

    folder: Path
    task: FileTask
    features: Sequence[Feature]
    batch_size: int

    def source(self) -> FeatureSource:
        """The features as a source of batches."""
        return FeatureSource(self.features, pad_id=ModelFolder.open(self.folder).tokenizer.pad_id)


def compare_finetuning(options: BenchFinetuneOptions, task: FileTask, say: Callable[[str], None]) -> SpeedComparison:
    """Examples per second of bertkit and of the peers on the CPU, in float32 and, if it is not emulated, bfloat16."""
    folder = ModelFolder.open(options.model)
    encoded = task.encode_all(islice(task.examples("train"), options.limit), folder.tokenizer)
    features = [feature for _, own in encoded for feature in own]
    training = TrainingSet(folder.path, task, features, options.batch_size)
    formats, emulated = choose_formats(say)
    own: dict[str, StepMaker] = {f"{OWN} {name}": partial(own_steps, training, name) for name in formats}
    systems, left_out = add_peers(own, options.against, partial(peer_systems, training, formats), say)
    lengths = sum(map(len, features)) / len(features)
    return compare(
        time_steps(systems, rounds=options.rounds, seconds=options.seconds, say=say),
        work=f"fine-tuning for {task.name}, batches of {options.batch_size}, {lengths:.1f} tokens per row",
        unit="examples",
        clock=clock_name(),
        left_out={**emulated, **left_out},
    )


def peer_systems(
    training: TrainingSet, formats: Sequence[Precision], peer: TrainingPeer
) -> Iterator[tuple[str, StepMaker]]:
    """Hugging Face's model; a usage error if the library is not installed, or cannot learn the task."""
    require("transformers", extra=EXTRA, purpose=f"--against {peer}")
    if not isinstance(training.task, TextClassificationTask):
        raise usage_error(f"--against {peer} is for tasks with one class per text, and {training.task.name} has none.")
    for name in formats:
        yield f"Hugging Face {name}", partial(huggingface_steps, training, name)


def own_steps(training: TrainingSet, precision: Precision) -> Iterator[int]:
    """The steps of ``bertkit finetune``, each with its number of examples."""
    encoder = ModelFolder.open(training.folder).load_encoder()
    model = Model(encoder, training.task.objectives(encoder))
    source = training.source()
    for step in own_training(model, source, _OPTIMIZER, batch_size=training.batch_size, precision=precision):
        yield step.examples


def huggingface_steps(training: TrainingSet, precision: Precision) -> Iterator[int]:
    """The steps of a plain loop around Hugging Face's model, each with its number of examples."""
    transformers = require("transformers", extra=EXTRA, purpose="--against hf")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        training.folder, num_labels=len(training.task.labels), dtype=torch.float32
    ).train()
    has_segments = getattr(model.config, "type_vocab_size", 1) > 1  # RoBERTa's table has one row
    step = make_step(model, _OPTIMIZER, precision)
    source = training.source()
    for epoch in itertools.count():
        for number in range(batches_in_epoch(source, training.batch_size)):
            indices = batch_indices(source, training.batch_size, seed=0, epoch=epoch, step=number)
            batch = source.batch(epoch, indices)
            inputs = {"input_ids": batch.input_ids, "attention_mask": batch.attention_mask.long()}
            if has_segments:
                inputs["token_type_ids"] = batch.segment_ids
            step(partial(_find_loss, model, {**inputs, "labels": batch.labels["class"]}))
            yield len(indices)


def _find_loss(model: nn.Module, inputs: Mapping[str, Tensor]) -> Tensor:
    loss: Tensor = model(**inputs).loss
    return loss
