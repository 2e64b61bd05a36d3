"""Fine-tuning real weights on real pairs: step by step what Hugging Face's model does under torch's own AdamW."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import transformers as theirs
from torch import nn

from bertkit.checkpoint.folder import load_encoder, load_tokenizer
from bertkit.data.batches import FeatureSource, batch_indices
from bertkit.model import Model
from bertkit.nn.attention import SelfAttention
from bertkit.nn.dropout import Dropout
from bertkit.objectives.regress import Regress
from bertkit.tasks.glue import stsb
from bertkit.training.fit import Plan, TrainingState, fit
from bertkit.training.optimizer import OptimizerConfig, build_optimizer
from bertkit.training.schedule import ScheduleConfig

STEPS, ROWS = 12, 32
OPTIMIZER = OptimizerConfig(lr=5e-5, bias_correction=True)


def silence_dropout(model: nn.Module) -> None:
    for part in model.modules():
        if isinstance(part, Dropout):
            part.rate = 0.0
        if isinstance(part, SelfAttention):
            part.dropout = 0.0


def split_by_decay(model: nn.Module) -> list[dict[str, object]]:
    """Matrices decay, biases and norms do not."""
    parameters = list(model.parameters())
    return [
        {"params": [each for each in parameters if each.ndim > 1], "weight_decay": OPTIMIZER.weight_decay},
        {"params": [each for each in parameters if each.ndim <= 1], "weight_decay": 0.0},
    ]


@pytest.mark.slow
def test_losses_of_a_regression_agree_step_by_step(minilm: Path, data_folder: Path) -> None:
    examples = stsb.at(data_folder / "glue" / "STS-B").examples("train")[: STEPS * ROWS]
    tokenizer = load_tokenizer(minilm)
    source = FeatureSource([stsb.encode(each, tokenizer)[0] for each in examples], pad_id=tokenizer.pad_id)
    encoder = load_encoder(minilm)
    ours = Model(encoder, stsb.objectives(encoder))
    silence_dropout(ours)
    their_model = theirs.AutoModelForSequenceClassification.from_pretrained(
        minilm, num_labels=1, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    ).train()
    head = ours.objectives["number"]
    assert isinstance(head, Regress)
    their_model.classifier.load_state_dict(head.regressor.state_dict())
    plan = Plan(
        total_steps=2 * STEPS,
        batch_size=ROWS,
        optimizer=OPTIMIZER,
        schedule=ScheduleConfig(warmup=0.25, decay="linear"),
    )
    state = TrainingState(ours, build_optimizer(ours, OPTIMIZER))
    our_losses = [step.losses["number"] for step in fit(state, source, plan, until=STEPS)]

    optimizer = torch.optim.AdamW(split_by_decay(their_model), lr=OPTIMIZER.lr, eps=OPTIMIZER.eps)
    schedule = theirs.get_linear_schedule_with_warmup(optimizer, STEPS // 2, 2 * STEPS)
    their_tokenizer = theirs.AutoTokenizer.from_pretrained(minilm)
    for step, our_loss in enumerate(our_losses):
        rows = [examples[place] for place in batch_indices(source, ROWS, seed=plan.seed, epoch=0, step=step)]
        inputs = their_tokenizer(
            [each.first for each in rows],
            [each.second for each in rows],
            padding=True,
            truncation=True,
            max_length=stsb.max_length,
            return_tensors="pt",
        )
        loss = their_model(**inputs, labels=torch.tensor([each.label for each in rows])).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(their_model.parameters(), OPTIMIZER.clip_norm)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        assert our_loss == pytest.approx(loss.item(), abs=1e-4), f"step {step}"
