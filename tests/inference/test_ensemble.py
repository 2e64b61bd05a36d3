"""An ensemble has the mean of the outputs of its members."""

from __future__ import annotations

import torch

from bertkit.batch import Batch
from bertkit.encoders.bert import Bert, BertConfig
from bertkit.inference.ensemble import Ensemble
from bertkit.model import Model
from bertkit.task_types import TextClassificationTask

TASK = TextClassificationTask(name="moods", metric="accuracy", labels=("sad", "glad", "odd"))


def member(seed: int) -> Model:
    torch.manual_seed(seed)
    encoder = Bert(BertConfig(vocab_size=99, hidden_size=12, num_layers=1, num_heads=1, intermediate_size=7))
    return Model(encoder, TASK.objectives(encoder)).eval()


def test_the_outputs_are_the_mean_over_the_members_in_float32() -> None:
    ids = torch.arange(2 * 7).reshape(2, 7)
    batch = Batch(ids, torch.zeros_like(ids), torch.ones_like(ids, dtype=torch.bool), {})
    members = [member(seed) for seed in (3, 5, 7)]
    with torch.inference_mode():
        each = [model(batch)["class"]["logits"] for model in members]
        found = Ensemble(members)(batch)
    assert found["class"]["logits"].dtype == torch.float32
    torch.testing.assert_close(found["class"]["logits"], torch.stack(each).mean(dim=0))
    assert not torch.allclose(found["class"]["logits"], each[0])
