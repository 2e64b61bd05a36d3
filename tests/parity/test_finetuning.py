"""Fine-tuning of real weights on real data: each step's loss equals Hugging Face's under torch's own AdamW."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf
from torch import nn

from bertkit.batch import Batch
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.data.batches import FeatureSource, batch_indices
from bertkit.model import Model
from bertkit.nn.attention import SelfAttention
from bertkit.nn.dropout import Dropout
from bertkit.task_types import FileTask
from bertkit.tasks.conll2003 import conll2003
from bertkit.tasks.glue import stsb
from bertkit.tasks.squad import v1
from bertkit.tasks.swag import swag
from bertkit.training.fit import Plan, TrainingState, fit
from bertkit.training.optimizer import OptimizerConfig, build_optimizer
from bertkit.training.schedule import ScheduleConfig

STEPS, ROWS = 12, 32
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
OPTIMIZER = OptimizerConfig(lr=5e-5, bias_correction=True)


def silence_dropout(model: nn.Module) -> None:
    for part in model.modules():
        if isinstance(part, Dropout):
            part.rate = 0.0
        if isinstance(part, SelfAttention):
            part.dropout = 0.0


def split_by_decay(model: nn.Module) -> list[dict[str, object]]:
    """AdamW with weight decay on matrices only, not on biases and layer norms."""
    parameters = list(model.parameters())
    return [
        {"params": [each for each in parameters if each.ndim > 1], "weight_decay": OPTIMIZER.weight_decay},
        {"params": [each for each in parameters if each.ndim <= 1], "weight_decay": 0.0},
    ]


def check_losses_agree(
    minilm: Path,
    task: FileTask,
    examples: Sequence[Any],
    hf_model: Any,
    weights: dict[str, str],
    inputs: Callable[[list[int], Batch], dict[str, Any]],
    *,
    rows: int = ROWS,
) -> None:
    """Train both from one head; ``weights`` maps its names in transformers to ours, ``inputs`` makes the inputs."""
    tokenizer = ModelFolder.open(minilm).tokenizer
    features = [feature for _, each in task.encode_all(examples, tokenizer) for feature in each]
    source = FeatureSource(features, pad_id=tokenizer.pad_id)
    encoder = ModelFolder.open(minilm).load_encoder()
    ours = Model(encoder, task.objectives(encoder))
    silence_dropout(ours)
    ((name, head),) = ours.objectives.items()
    fresh = {hf_name: head.state_dict()[our_name] for hf_name, our_name in weights.items()}
    hf_model.load_state_dict(fresh, strict=False)
    schedule_config = ScheduleConfig(warmup=0.25, decay="linear")
    plan = Plan(total_steps=2 * STEPS, batch_size=rows, optimizer=OPTIMIZER, schedule=schedule_config)
    state = TrainingState(ours, build_optimizer(ours, OPTIMIZER))
    our_losses = [step.losses[name] for step in fit(state, source, plan, until=STEPS)]

    optimizer = torch.optim.AdamW(split_by_decay(hf_model), lr=OPTIMIZER.lr, eps=OPTIMIZER.eps)
    schedule = hf.get_linear_schedule_with_warmup(optimizer, STEPS // 2, 2 * STEPS)
    for step, our_loss in enumerate(our_losses):
        indices = batch_indices(source, rows, seed=plan.seed, epoch=0, step=step)
        loss = hf_model.train()(**inputs(indices.tolist(), source.batch(0, indices))).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(hf_model.parameters(), OPTIMIZER.clip_norm)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        assert our_loss == pytest.approx(loss.item(), abs=1e-4), f"step {step}"


def rows_of(batch: Batch) -> dict[str, Any]:
    """The inputs that every model of transformers takes."""
    return {
        "input_ids": batch.input_ids,
        "token_type_ids": batch.segment_ids,
        "attention_mask": batch.attention_mask.long(),
    }


@pytest.mark.slow
def test_losses_of_a_regression_agree_step_by_step(minilm: Path, data_folder: Path) -> None:
    examples = stsb.at(data_folder / "glue" / "STS-B").examples("train")[: STEPS * ROWS]
    model = hf.AutoModelForSequenceClassification.from_pretrained(minilm, num_labels=1, **NO_DROPOUT)
    tokenizer = hf.AutoTokenizer.from_pretrained(minilm)

    def inputs(indices: list[int], _: Batch) -> dict[str, Any]:
        rows = [examples[index] for index in indices]
        texts = [each.first for each in rows], [each.second for each in rows]
        cut = tokenizer(*texts, padding=True, truncation=True, max_length=stsb.max_length, return_tensors="pt")
        return {**cut, "labels": torch.tensor([each.label for each in rows])}

    weights = {"classifier.weight": "regressor.weight", "classifier.bias": "regressor.bias"}
    check_losses_agree(minilm, stsb, examples, model, weights, inputs)


@pytest.mark.slow
def test_losses_of_multiple_choice_agree_step_by_step(minilm: Path, data_folder: Path) -> None:
    examples = swag.with_files(train=[data_folder / "swag" / "codah-train.csv"]).examples("train")[: STEPS * 8]
    model = hf.AutoModelForMultipleChoice.from_pretrained(minilm, **NO_DROPOUT)

    def inputs(indices: list[int], batch: Batch) -> dict[str, Any]:
        stacked = {name: each.view(len(indices), 4, -1) for name, each in rows_of(batch).items()}
        return {**stacked, "labels": batch.labels["choice"]}

    weights = {"classifier.weight": "vector.weight", "classifier.bias": "constant"}
    check_losses_agree(minilm, swag, examples, model, weights, inputs, rows=8)


@pytest.mark.slow
def test_losses_of_tagging_agree_step_by_step(minilm: Path, data_folder: Path) -> None:
    task = conll2003.at(data_folder / "conll2003")
    model = hf.AutoModelForTokenClassification.from_pretrained(minilm, num_labels=len(task.labels), **NO_DROPOUT)

    def inputs(_: list[int], batch: Batch) -> dict[str, Any]:
        return {**rows_of(batch), "labels": batch.labels["tags"]}

    weights = {name: name for name in ("classifier.weight", "classifier.bias")}
    check_losses_agree(minilm, task, task.examples("train")[: STEPS * ROWS], model, weights, inputs)


@pytest.mark.slow
def test_losses_of_question_answering_agree_step_by_step(minilm: Path, data_folder: Path) -> None:
    task = v1.with_files(train=[data_folder / "squad" / "squadshifts-new_wiki-v1.1.json"])
    model = hf.AutoModelForQuestionAnswering.from_pretrained(minilm, **NO_DROPOUT)

    def inputs(_: list[int], batch: Batch) -> dict[str, Any]:
        start, end = batch.labels["span"].unbind(dim=1)
        return {**rows_of(batch), "start_positions": start, "end_positions": end}

    weights = {"qa_outputs.weight": "ends.weight", "qa_outputs.bias": "ends.bias"}
    # One row per step: the softmax of transformers includes padding.
    check_losses_agree(minilm, task, task.examples("train")[:STEPS], model, weights, inputs, rows=1)
