from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.tiny_gpt import build_gpt
from tests.tiny_runs import WORDS
from torch import Tensor

from bertkit.batch import Batch
from bertkit.checkpoint.model_folder import METADATA, ModelFolder
from bertkit.checkpoint.save_model import save_model
from bertkit.data.features import collate
from bertkit.errors import BertkitError
from bertkit.finetuning.record import FinetuneRun
from bertkit.finetuning.starting_point import (
    add_language_model,
    build_encoder,
    build_finetuning_model,
    keeps_heads,
)
from bertkit.model import Model
from bertkit.objectives.clm import CausalLanguageModel, label_next
from bertkit.task_types import (
    FileTask,
    RegressionTask,
    TaggingTask,
    TextClassificationTask,
    TextExample,
    from_record,
    have_same_heads,
)
from bertkit.tasks.glue import sst2
from bertkit.training.fit import accumulate_gradients

MOODS = TextClassificationTask(name="moods", metric="accuracy", labels=("sad", "glad"))


def run_on(model: Path, task: TextClassificationTask = MOODS, *, from_scratch: bool = False) -> FinetuneRun:
    return FinetuneRun(task=task, model=model, output=Path("run"), from_scratch=from_scratch)


def test_a_model_for_the_same_heads_keeps_them(model: Path, tmp_path: Path) -> None:
    folder = ModelFolder.open(model)
    trained = build_finetuning_model(run_on(model), folder)
    metadata = {"kind": "finetune", "task": MOODS.record()}
    save_model(tmp_path / "moods", trained, folder.tokenizer, metadata=metadata)
    moods = ModelFolder.open(tmp_path / "moods")
    torch.manual_seed(8)
    for from_scratch in (False, True):
        run = run_on(tmp_path / "moods", from_scratch=from_scratch)
        assert keeps_heads(run, moods) is not from_scratch
        (expected, *_), (head, *_) = (
            each.objectives.parameters() for each in (trained, build_finetuning_model(run, moods))
        )
        assert torch.equal(head, expected) is not from_scratch


def test_a_classifier_of_another_library_keeps_its_head_and_a_model_for_numbers_does_not(
    model: Path, tmp_path: Path
) -> None:
    folder = ModelFolder.open(model)
    for task, kept in ((MOODS, True), (RegressionTask(name="n", metric="pearson"), False)):
        path = tmp_path / task.name
        trained = Model(encoder := folder.load_encoder(), task.objectives(encoder))
        save_model(path, trained, folder.tokenizer, metadata={"kind": "finetune", "task": task.record()})
        (path / METADATA).unlink()
        other = ModelFolder.open(path)
        run = FinetuneRun(task=task, model=path, output=Path("run"))
        assert keeps_heads(run, other) is kept
        models = (trained, build_finetuning_model(run, other))
        assert torch.equal(*(next(iter(each.objectives.parameters())) for each in models)) is kept


def test_other_labels_or_another_type_of_task_get_new_heads(model: Path) -> None:
    assert not keeps_heads(run_on(model), ModelFolder.open(model))
    tasks: list[FileTask] = [
        MOODS,
        TextClassificationTask(name="moods", metric="accuracy", labels=("sad", "merry")),
        replace(MOODS, pooling="mean"),
        replace(MOODS, pair=True, pooling="mean", pair_head=True),
        TaggingTask(name="tags", labels=("O", "B-x", "I-x")),
        TaggingTask(name="tags", labels=("O", "B-x", "I-x"), crf=True),
        TaggingTask(name="tags", labels=("O", "B-x", "I-x"), features="last"),
    ]
    for index, one in enumerate(tasks):
        assert [have_same_heads(one, other) for other in tasks] == [index == number for number in range(len(tasks))]


def test_a_record_without_pooling_is_that_of_a_head_on_the_pooled_state() -> None:
    record = {name: value for name, value in MOODS.record().items() if name not in ("pooling", "pair_head")}
    assert have_same_heads(from_record(record), MOODS)
    assert not have_same_heads(from_record(record), replace(MOODS, pooling="max"))


def test_the_name_of_a_task_does_not_matter_for_its_heads() -> None:
    assert have_same_heads(MOODS, replace(MOODS, name="tempers"))


def test_a_published_gpt_gets_three_new_embeddings_and_keeps_its_weights(published: Path) -> None:
    tensors = load_file(published / "model.safetensors")
    (old,) = (tensor for name, tensor in tensors.items() if name.endswith("tokens_embed.weight"))
    added = []
    for seed in (3, 4):
        torch.manual_seed(seed)
        table = build_gpt(published).embeddings.word.weight
        assert torch.equal(table[:-3], old)
        added.append(table[-3:].detach())
        assert 0 < added[-1].abs().max() <= 0.04
    assert torch.equal(*added)  # so that vectors of texts are the same at every load


def test_from_scratch_and_reinit_layers_initialise_new_weights(left_to_right: Path) -> None:
    before = ModelFolder.open(left_to_right).load_encoder().state_dict()
    torch.manual_seed(8)
    for settings, kept in ({"from_scratch": True}, 0), ({"reinit_layers": 1}, 3), ({}, 4):
        encoder = build_gpt(left_to_right, **settings)
        for name, weight in encoder.state_dict().items():
            if weight.ndim > 1:
                assert torch.equal(weight, before[name]) == (encoder.depth(name) < kept), (settings, name)
    with pytest.raises(BertkitError, match=r"reinit_layers is 4; .*gpt has 3"):
        build_gpt(left_to_right, reinit_layers=4)


def test_the_last_layers_and_the_pooler_of_a_bert_are_reinitialised(model: Path) -> None:
    run = FinetuneRun(task=MOODS, model=model, output=Path("run"), reinit_layers=1)
    after = build_encoder(run, ModelFolder.open(model)).state_dict()
    before = ModelFolder.open(model).load_encoder().state_dict()
    changed = {name for name, weight in before.items() if weight.ndim > 1 and not torch.equal(weight, after[name])}
    assert changed
    assert {name.split(".")[0] for name in changed} == {"layers", "pooler"}
    assert {name.split(".")[1] for name in changed if name.startswith("layers.")} == {"2"}


def gradients(model: Model, batch: Batch) -> dict[str, Tensor]:
    model.eval().zero_grad()
    accumulate_gradients(model, [batch], model.counts(batch), torch.device("cpu"), "float32")
    return {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}


def test_the_language_model_adds_its_weighted_gradient(left_to_right: Path) -> None:
    encoder, tokenizer = build_gpt(left_to_right), ModelFolder.open(left_to_right).tokenizer
    task = sst2.objectives(encoder)
    examples = [TextExample(str(count), " ".join(WORDS[:count]), label="positive") for count in (3, 7, 5)]
    features = [each for one in examples for each in sst2.encode(one, tokenizer)]
    batch = label_next(collate(features, pad_id=tokenizer.pad_id))
    alone = gradients(Model(encoder, task), batch)
    language_model = gradients(Model(encoder, {"clm": CausalLanguageModel(encoder.embeddings.word)}), batch)
    original = Model(encoder, task)
    model = add_language_model(original, 0.37)
    assert model.state_dict().keys() == original.state_dict().keys()
    for name, gradient in gradients(model, batch).items():
        expected = alone.get(name, torch.zeros(())) + 0.37 * language_model.get(name, torch.zeros(()))
        torch.testing.assert_close(gradient, expected, rtol=1e-5, atol=1e-8)
    loss, losses = accumulate_gradients(model, [batch], model.counts(batch), torch.device("cpu"), "float32")
    assert losses["clm"] == pytest.approx(math.log(tokenizer.vocab_size), rel=0.01)
    assert loss == pytest.approx(losses["class"] + 0.37 * losses["clm"])
    assert list(original(batch)) == ["class"]


def test_a_bidirectional_encoder_gets_no_language_model(model: Path) -> None:
    both_ways = build_finetuning_model(run_on(model), ModelFolder.open(model))
    with pytest.raises(BertkitError, match="lm_loss_weight is for a model that is trained and reads from left to"):
        add_language_model(both_ways, 0.5)


@pytest.mark.parametrize("settings", [{"from_scratch": True}, {"reinit_layers": 1}, {"layer_decay": 0.9}])
def test_a_frozen_encoder_cannot_be_changed(settings: dict[str, float], model: Path) -> None:
    task = TaggingTask(name="tags", labels=("O", "B-x"), features="last")
    run = FinetuneRun(task=task, model=model, output=Path("run"), **settings)  # type: ignore[arg-type]
    with pytest.raises(BertkitError, match=r"task\.features uses a frozen encoder"):
        build_finetuning_model(run, ModelFolder.open(model))


def test_the_embeddings_of_the_folder_are_not_changed(published: Path) -> None:
    before = load_file(published / "model.safetensors")["tokens_embed.weight"].clone()
    build_gpt(published)
    assert torch.equal(load_file(published / "model.safetensors")["tokens_embed.weight"], before)
