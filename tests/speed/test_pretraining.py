from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest
import torch

from bertkit.batch import IGNORE, Batch
from bertkit.contracts import BatchSource
from bertkit.errors import BertkitError
from bertkit.options.speed import BenchPretrainOptions
from bertkit.speed import pretraining as speed
from bertkit.speed import rounds, training_steps
from bertkit.speed.pretraining import (
    SEP,
    build_huggingface,
    build_model,
    compare_pretraining,
    count_work,
    huggingface_steps,
    make_batch,
    own_steps,
    product_steps,
)
from bertkit.training.fit import Plan, Step, TrainingState, fit

pytestmark = pytest.mark.usefixtures("without_shape_checks")

SMALL = BenchPretrainOptions(size="1/12/2", batch_size=3, seq_length=13)


def test_the_batch_has_full_rows_of_two_segments_with_masked_words() -> None:
    batch = make_batch(3, 41)
    assert batch.attention_mask.all()
    assert (batch.input_ids[:, -1] == SEP).all()
    assert batch.segment_ids[0].tolist() == [0] * 21 + [1] * 20
    assert 0.05 < float((batch.labels["mlm"] != IGNORE).float().mean()) < 0.3


def test_both_systems_train_on_the_same_batch_with_clipping(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers", reason="install transformers")
    batches: list[Batch] = []

    def remember(rows: int, tokens: int) -> Batch:
        batches.append(make_batch(rows, tokens))
        return batches[-1]

    plans: list[Plan] = []

    def train(state: TrainingState, source: BatchSource, plan: Plan) -> Iterator[Step]:
        plans.append(plan)
        return fit(state, source, plan)

    limits: list[float] = []
    clip = torch.nn.utils.clip_grad_norm_

    def remember_limit(parameters: Iterable[torch.Tensor], limit: float) -> None:
        limits.append(limit)
        clip(parameters, limit)

    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", remember_limit)
    monkeypatch.setattr(speed, "make_batch", remember)
    monkeypatch.setattr(training_steps, "fit", train)
    for make in (own_steps, huggingface_steps):
        steps = make(SMALL, "float32")
        assert [next(steps), next(steps)] == [39, 39]
    assert len(batches) == 2
    assert torch.equal(batches[0].input_ids, batches[1].input_ids)
    assert [plan.optimizer.clip_norm for plan in plans] == limits[:1] == [1.0]


def test_both_systems_have_the_same_network_and_losses() -> None:
    pytest.importorskip("transformers", reason="install transformers")
    batch = make_batch(3, 13)
    own = build_model(SMALL)
    other, find_other = build_huggingface(SMALL, batch)
    assert sum(each.numel() for each in own.parameters()) == sum(each.numel() for each in other.parameters())
    own.eval(), other.eval()
    loss = sum(term.sum.item() / term.count for term in own.loss(own(batch), batch).values())
    assert loss == pytest.approx(find_other().item(), abs=0.1)


def test_steps_are_counted_in_tokens_and_operations() -> None:
    steps = own_steps(SMALL, "bfloat16")
    assert [next(steps), next(steps)] == [39, 39]
    assert next(product_steps("float32")) == 2 * 4096 * 768 * 3072


def test_the_work_of_a_step_grows_with_its_rows() -> None:
    two, four = (count_work(SMALL, make_batch(rows, 13)) for rows in (2, 4))
    assert two < four < 3 * two


def test_rows_may_be_longer_than_those_of_bert() -> None:
    assert next(own_steps(replace(SMALL, batch_size=1, seq_length=600), "float32")) == 600


def test_bfloat16_is_left_out_where_the_processor_has_to_emulate_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "measure_bfloat16_speedup", lambda _: 0.2)
    said: list[str] = []
    options = BenchPretrainOptions(size="1/12/2", seq_length=13, batch_size=3, rounds=1, seconds=0)
    found = compare_pretraining(options, said.append)
    assert [each.system for each in found.systems] == ["bertkit float32"]
    assert found.left_out == {"bfloat16": "bfloat16 is 0.20 times as fast as float32 on this processor."}
    assert said[0] == f"left out: {found.left_out['bfloat16']}"
    assert "one large product in float32" in found.notes[0]


def test_an_unknown_size_is_refused_before_anything_is_measured() -> None:
    with pytest.raises(BertkitError, match="mni"):
        compare_pretraining(BenchPretrainOptions(size="mni"), pytest.fail)
