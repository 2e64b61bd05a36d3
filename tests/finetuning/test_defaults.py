"""Published settings of fine-tuning, by profile, and measured ones for small models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from tests.tiny_bert import make_encoder, make_tokenizer

from bertkit.checkpoint.model_folder import ModelFolder, has_pooler
from bertkit.checkpoint.save_model import save_model
from bertkit.config.settings import Setting, apply
from bertkit.errors import BertkitError
from bertkit.finetuning import defaults
from bertkit.finetuning.defaults import (
    SMALL_MODELS,
    count_layer_parameters,
    finetuning_profile_settings,
    is_small,
    small_model_settings,
)
from bertkit.finetuning.record import FinetuneRun
from bertkit.finetuning.word_models import list_word_models
from bertkit.model import Model
from bertkit.options.finetuning import FinetuneProfile
from bertkit.pretraining.task import PretrainingTask
from bertkit.task_types import FileTask, SimilarityTask
from bertkit.tasks import squad
from bertkit.tasks.conll2003 import conll2003
from bertkit.tasks.glue import cola, mrpc, rte, sst2, stsb
from bertkit.tasks.swag import swag
from bertkit.training.optimizer import OptimizerConfig
from bertkit.training.schedule import lr_factor


def settings_of(found: Mapping[str, object]) -> list[Setting]:
    return [Setting(*each, "a test") for each in found.items()]


def test_published_fine_tunings_are_settings_of_a_run() -> None:
    """Values of the papers and programs, also those that are defaults here."""
    defaults = FinetuneRun(task=mrpc, model=Path("model"), output=Path("run"))

    def under(profile: FinetuneProfile) -> FinetuneRun:
        found = finetuning_profile_settings(profile, mrpc)
        return apply(defaults, [Setting(*each, f"--profile {profile}") for each in found.items()])

    assert under("bert") == defaults
    gpt, roberta = under("gpt"), under("roberta")
    assert (gpt.epochs, gpt.batch_size, gpt.lm_loss_weight) == (3, 32, 0.5)
    assert gpt.task == replace(mrpc, both_orders=True)
    adam = gpt.optimizer
    assert (adam.lr, adam.beta1, adam.beta2, adam.eps) == (6.25e-5, 0.9, 0.999, 1e-8)
    assert (adam.weight_decay, adam.clip_norm, adam.bias_correction) == (0.01, 1.0, True)
    assert (roberta.epochs, roberta.batch_size, roberta.lm_loss_weight, roberta.task) == (10, 16, 0.0, mrpc)
    adam = roberta.optimizer
    assert (adam.lr, adam.beta1, adam.beta2, adam.eps) == (1e-5, 0.9, 0.98, 1e-6)
    assert (adam.weight_decay, adam.clip_norm, adam.bias_correction) == (0.1, 0.0, True)
    assert (roberta.schedule.warmup, roberta.schedule.decay) == (0.06, "linear")


@pytest.mark.parametrize(
    ("profile", "task", "epochs", "batch_size", "rate", "beta2", "clip_norm"),
    [
        ("bidaf", squad.v1, 20, 40, 1e-3, 0.9, 5.0),
        ("bilstm_attention", mrpc, 20, 128, 1e-4, 0.999, 5.0),
        ("esim", swag, 75, 32, 4e-4, 0.999, 10.0),
        ("tagger", conll2003, 75, 64, 1e-3, 0.999, 5.0),
    ],
)
def test_word_models_are_trained_with_plain_adam(
    profile: FinetuneProfile,
    task: FileTask,
    epochs: int,
    batch_size: int,
    rate: float,
    beta2: float,
    clip_norm: float,
) -> None:
    """As torch's: no weight decay and an epsilon of 1e-8."""
    found = finetuning_profile_settings(profile, task)
    defaults = FinetuneRun(task=task, model=Path("model"), output=Path("run"))
    run = apply(defaults, [Setting(*each, f"--profile {profile}") for each in found.items()])
    assert (run.epochs, run.batch_size) == (epochs, batch_size)
    assert (run.schedule.warmup, run.schedule.decay) == (0.0, "linear")
    assert run.optimizer == OptimizerConfig(
        lr=rate, beta2=beta2, eps=1e-8, weight_decay=0.0, bias_correction=True, clip_norm=clip_norm
    )
    expected = {"tagger": replace(conll2003, crf=True), "bilstm_attention": replace(mrpc, max_length=83)}
    assert run.task == expected.get(profile, task)


def test_a_text_that_is_no_pair_has_40_words_too() -> None:
    assert finetuning_profile_settings("bilstm_attention", sst2)["task.max_length"] == 42


@pytest.mark.parametrize(("profile", "task"), [("tagger", mrpc), ("bidaf", conll2003), ("esim", squad.v1)])
def test_a_profile_for_other_tasks_is_refused(profile: FinetuneProfile, task: FileTask) -> None:
    with pytest.raises(BertkitError, match=f"--profile {profile} is for .*; {task.name} is another kind of task"):
        finetuning_profile_settings(profile, task)


def test_every_word_model_has_a_profile_of_its_name() -> None:
    assert set(list_word_models()) < set(get_args(FinetuneProfile))


@pytest.mark.parametrize(("task", "lr", "batch_size"), [(rte, 2e-5, 16), (cola, 1e-5, 16), (sst2, 1e-5, 32)])
def test_roberta_has_small_batches_for_small_tasks(task: FileTask, lr: float, batch_size: int) -> None:
    settings = finetuning_profile_settings("roberta", task)
    assert (settings["optimizer.lr"], settings["batch_size"]) == (lr, batch_size)


def test_pairs_with_an_order_are_read_in_one_order() -> None:
    assert "task.both_orders" not in finetuning_profile_settings("gpt", rte)


def test_the_learning_rate_of_gpt_is_that_of_its_program() -> None:
    """``opt.py``: warmup_linear(x, 0.002), where x is the share of the steps that are done."""
    found = finetuning_profile_settings("gpt", rte)
    run = FinetuneRun(task=rte, model=Path("model"), output=Path("run"))
    schedule = apply(run, [Setting(*each, "--profile gpt") for each in found.items()]).schedule
    for step in (14, 37, 999, 6500):
        assert lr_factor(schedule, step, 7000) == pytest.approx(1 - step / 7000)
    assert lr_factor(schedule, 7, 7000) == pytest.approx(0.5)


def write_config(folder: Path, **config: object) -> ModelFolder:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    return ModelFolder.open(folder)


def bert(folder: Path, layers: int, hidden: int) -> ModelFolder:
    return write_config(
        folder,
        model_type="bert",
        num_hidden_layers=layers,
        hidden_size=hidden,
        num_attention_heads=hidden // 64,
        intermediate_size=4 * hidden,
    )


@pytest.mark.parametrize(
    ("layers", "hidden", "small"), [(2, 128, True), (4, 512, True), (6, 384, True), (8, 512, False)]
)
def test_large_models_have_the_published_settings(tmp_path: Path, layers: int, hidden: int, small: bool) -> None:
    folder = bert(tmp_path, layers, hidden)
    assert count_layer_parameters(folder) == 12 * layers * hidden**2
    assert is_small(folder) is small


def test_small_models_learn_faster_and_longer_from_few_examples(tmp_path: Path) -> None:
    folder = bert(tmp_path, 4, 256)
    by_size = [small_model_settings(folder, sst2, number) for number in (100, 2_000, 67_349)]
    epochs = [int(str(each.get("epochs", 3))) for each in by_size]
    assert epochs == sorted(epochs, reverse=True)
    assert len(set(epochs)) == 3
    for each in by_size:
        rate = each["optimizer.lr"]
        assert isinstance(rate, float)
        assert rate > OptimizerConfig(lr=5e-5).lr


def test_the_head_of_a_small_model_fits_its_task(tmp_path: Path) -> None:
    folder = bert(tmp_path, 4, 256)

    def head(task: FileTask) -> dict[str, object]:
        found = small_model_settings(folder, task, 2_000)
        run = apply(
            FinetuneRun(task=task, model=folder.path, output=Path("run")),
            [Setting(*each, SMALL_MODELS) for each in found.items()],
        )
        assert isinstance(run.optimizer.lr, float)
        return {path: value for path, value in found.items() if path.startswith("task.")}

    assert head(mrpc) == {"task.pooling": "mean", "task.pair_head": True}
    assert head(sst2) == {"task.pooling": "mean"}
    assert head(squad.v1) == head(squad.v2) == {"task.question_head": True}
    assert head(swag) == head(conll2003) == {}


def test_a_larger_model_keeps_a_pooler_that_other_libraries_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(defaults, "_SMALLEST", 0)
    tokenizer = make_tokenizer()
    encoder = make_encoder(tokenizer)
    for name, objectives in (("fast", ("mlm",)), ("paper", ("mlm", "nsp"))):
        model = Model(encoder, PretrainingTask(objectives=objectives).build_objectives(encoder))
        save_model(tmp_path / name, model, tokenizer, metadata={"kind": "pretrain"})
    fast, paper = (ModelFolder.open(tmp_path / name) for name in ("fast", "paper"))
    assert (has_pooler(fast), has_pooler(paper)) == (False, True)
    assert small_model_settings(fast, mrpc, 2_000)["task.pair_head"]
    assert not {"task.pooling", "task.pair_head"} & small_model_settings(paper, mrpc, 2_000).keys()


def test_vectors_of_texts_have_the_published_rate_but_in_the_smallest_models(tmp_path: Path) -> None:
    vectors = SimilarityTask(name="pairs")
    assert small_model_settings(bert(tmp_path / "mini", 4, 256), vectors, 2_000)["optimizer.lr"] == 3e-4
    assert "optimizer.lr" not in small_model_settings(bert(tmp_path / "small", 4, 512), vectors, 2_000)


def test_a_small_modernbert_has_the_same_heads(tmp_path: Path) -> None:
    sizes = {
        "hidden_size": 12,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "intermediate_size": 30,
        "pad_token_id": 0,
    }
    folder = write_config(tmp_path, model_type="modernbert", vocab_size=99, **sizes)
    assert small_model_settings(folder, mrpc, 2_000)["task.pair_head"]
    assert small_model_settings(folder, sst2, 2_000)["task.pooling"] == "mean"
    assert "task.pooling" not in small_model_settings(folder, swag, 2_000)


def test_small_models_learn_numbers_around_zero(tmp_path: Path) -> None:
    folder = bert(tmp_path, 4, 256)
    found = small_model_settings(folder, stsb, 2_000)
    assert (found["task.numbers.origin"], found["task.numbers.unit"]) == (2.5, 2.5)
    standardised = replace(stsb, numbers=replace(stsb.numbers, origin=3.1, unit=0.7))
    assert "task.numbers.origin" not in small_model_settings(folder, standardised, 2_000)
    folder.metadata = {"task": stsb.record()}
    found = small_model_settings(folder, stsb, 2_000)
    assert (found["task.numbers.origin"], found["task.numbers.unit"]) == (2.5, 2.5), "its head is converted"
    folder.metadata = {"task": standardised.record()}
    found = small_model_settings(folder, stsb, 2_000)
    assert (found["task.numbers.origin"], found["task.numbers.unit"]) == (3.1, 0.7), "it has learned that scale"


def test_a_fine_tuned_model_keeps_its_head(tmp_path: Path) -> None:
    folder = bert(tmp_path, 4, 256)
    for trained in (mrpc, replace(mrpc, pooling="max"), replace(mrpc, pooling="mean", pair_head=True)):
        folder.metadata = {"task": trained.record()}
        found = small_model_settings(folder, mrpc, 2_000)
        task = apply(FinetuneRun(task=mrpc, model=tmp_path, output=tmp_path), settings_of(found)).task
        assert task == trained


def test_a_model_that_answers_questions_keeps_its_head(tmp_path: Path) -> None:
    folder = bert(tmp_path, 4, 256)
    for trained in (squad.v1, replace(squad.v1, question_head=True)):
        folder.metadata = {"task": trained.record()}
        found = small_model_settings(folder, squad.v2, 2_000)
        task = apply(FinetuneRun(task=squad.v2, model=tmp_path, output=tmp_path), settings_of(found)).task
        assert task == replace(squad.v2, question_head=trained.question_head)


def test_models_that_read_from_left_to_right_keep_the_last_state(tmp_path: Path) -> None:
    folder = write_config(tmp_path, model_type="openai-gpt", vocab_size=99, n_embd=12, n_layer=3, n_head=2)
    assert is_small(folder)
    assert "task.pooling" not in small_model_settings(folder, mrpc, 2_000)
