"""Defaults of a pre-training and its profiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertkit.config.settings import Setting, apply
from bertkit.contracts import EncoderConfig
from bertkit.encoder_types.spec import PretrainingDefaults
from bertkit.encoders import bert, elmo, gpt, modernbert
from bertkit.pretraining import defaults
from bertkit.pretraining.defaults import (
    advise_profile,
    architecture_defaults,
    default_pretraining_task,
    fits_neighbour_heads,
    initializer_range,
    objective_settings,
    profile_settings,
)
from bertkit.pretraining.record import PretrainRun


@pytest.mark.parametrize("size", bert.SIZES)
def test_every_path_of_the_fast_profile_is_a_setting_of_a_run(size: str) -> None:
    encoder = bert.size(size, vocab_size=99)
    run = PretrainRun(data=Path("data"), output=Path("run"), encoder=encoder, steps=7)
    fast = profile_settings("fast", encoder)
    changed = apply(run, [Setting(path, value, "--profile fast") for path, value in fast.items()])
    assert changed != run
    assert changed.task.masking.rate == 0.3
    assert isinstance(changed.encoder, bert.BertConfig)
    assert changed.encoder.position_init == "neighbour_heads"
    assert (changed.token_init, changed.task.objectives) == ("cooccurrence", ("mlm",))
    small = size in ("tiny", "mini", "small", "medium")
    assert (changed.batch_size == 64) == small
    assert (changed.optimizer.kind == "muon") == small
    assert changed.task.masking.whole_word == small


_QUICK = {
    "batch_size": 64,
    "encoder.attention_dropout": 0.0,
    "encoder.dropout": 0.0,
    "long_seq_length": 128,
    "long_share": 0.3,
    "optimizer.bias_correction": True,
}
_OTHERS = {"schedule.decay": "linear", "schedule.warmup": 0.05}
_BIDIRECTIONAL = {
    "encoder.position_init": "neighbour_heads",
    "task.masking.rate": 0.3,
    "task.objectives": ("mlm",),
    "token_init": "cooccurrence",
}


@pytest.mark.parametrize(
    ("encoder", "expected"),
    [
        (
            bert.size("mini", vocab_size=99),
            {
                **_QUICK,
                **_BIDIRECTIONAL,
                "encoder.initializer_range": 0.0346,
                "long_batch_size": 32,
                "optimizer.kind": "muon",
                "optimizer.lr": 1e-3,
                "optimizer.muon_lr": 0.008,
                "schedule.decay": "late",
                "schedule.decay_share": 0.6,
                "schedule.warmup": 0.03,
                "seq_length": 64,
                "task.masking.whole_word": True,
            },
        ),
        (bert.size("base", vocab_size=99), {**_BIDIRECTIONAL, "encoder.attention_dropout": 0.0}),
        (
            gpt.size("tiny", vocab_size=99),
            {
                **_QUICK,
                **_OTHERS,
                "encoder.initializer_range": 0.049,
                "encoder.position_init": "sinusoidal",
                "optimizer.lr": 3e-3,
                "seq_length": 32,
            },
        ),
        (
            gpt.size("base", vocab_size=99),
            {"encoder.attention_dropout": 0.0, "encoder.position_init": "sinusoidal"},
        ),
    ],
    ids=["bert-mini", "bert-base", "gpt-tiny", "gpt-base"],
)
def test_the_settings_of_the_fast_profile(encoder: EncoderConfig, expected: dict[str, object]) -> None:
    assert profile_settings("fast", encoder) == expected


def test_the_published_settings_of_bert_are_the_defaults() -> None:
    assert profile_settings("paper", bert.size("base", vocab_size=99)) == {}


def test_a_short_run_of_a_small_encoder_is_advised_to_take_the_fast_profile() -> None:
    mini = bert.size("mini", vocab_size=99)
    assert "--profile fast" in (advise_profile(mini, steps=None) or "")
    assert "--profile fast" in (advise_profile(modernbert.size("small", vocab_size=99), steps=9) or "")
    assert advise_profile(mini, steps=1_000_000) is None
    assert advise_profile(bert.size("base", vocab_size=99), steps=None) is None
    assert advise_profile(elmo.size("tiny"), steps=9) is None


def test_weights_have_the_range_of_bert_base_at_its_width() -> None:
    assert initializer_range(768) == 0.02
    assert initializer_range(192) == pytest.approx(0.04)


def test_the_defaults_of_an_encoder_are_stated_in_its_module() -> None:
    assert architecture_defaults(bert.size("tiny", vocab_size=99), vocab_size=99) == {}
    assert architecture_defaults(bert.size("tiny", vocab_size=99, causal=True), vocab_size=99) == {
        "task.objectives": ("clm",)
    }
    for vocab_size, samples in ((99_999, 8192), (9999, None)):  # to draw 8,192 of 9,999 would take long
        assert architecture_defaults(elmo.size("tiny"), vocab_size=vocab_size) == {
            "task.objectives": ("bilm",),
            "task.targets": vocab_size,
            "task.samples": samples,
            "seq_length": 20,
        }


def test_an_objective_that_the_user_names_has_its_settings() -> None:
    given = objective_settings(["mlm", "bilm"], bert.size("tiny", vocab_size=99), vocab_size=99)
    assert Setting("task.targets", 99, "objective bilm") in given
    assert objective_settings(["bilm"], elmo.size("tiny"), vocab_size=99) == []  # its own, which it has already


def test_the_fast_profile_leaves_out_what_does_not_suit_an_encoder() -> None:
    fast = profile_settings("fast", elmo.size("tiny"))
    assert fast["batch_size"] == 64
    assert not {"seq_length", "long_seq_length", "task.masking.rate", "encoder.position_init"} & set(fast)
    assert "optimizer.kind" not in fast


def test_the_fast_profile_leaves_out_next_sentences_and_no_other_objective(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = bert.size("mini", vocab_size=99)
    for own, expected in ((("mlm", "nsp", "passages"), ("mlm", "passages")), (("nsp",), None)):
        found = PretrainingDefaults(objectives=own)
        monkeypatch.setattr(defaults, "find_pretraining_defaults", lambda encoder, found=found: found)
        assert profile_settings("fast", encoder).get("task.objectives") == expected


def test_modernbert_gets_the_initial_weights_of_the_fast_profile_where_they_fit() -> None:
    fast = profile_settings("fast", modernbert.size("mini", vocab_size=99))
    assert fast["encoder.position_init"] == "neighbour_heads"
    assert (fast["token_init"], fast["optimizer.lr"]) == ("cooccurrence", 1e-3)
    single = profile_settings("fast", modernbert.size("2/64/1", vocab_size=99))
    assert single["token_init"] == "cooccurrence"
    assert "encoder.position_init" not in single


@pytest.mark.parametrize(("shape", "expected"), [("2/64/2", True), ("2/64/1", False)])
def test_one_head_cannot_look_at_neighbours(shape: str, expected: bool) -> None:
    for encoder in (bert.size(shape, vocab_size=99), modernbert.size(shape, vocab_size=99)):
        assert fits_neighbour_heads(encoder) is expected
    assert not fits_neighbour_heads(elmo.size("tiny"))


def test_a_paper_profile_is_that_of_the_encoder() -> None:
    assert profile_settings("paper", gpt.size("base", vocab_size=99)) == gpt.SPEC.pretraining.paper  # type: ignore[union-attr]


def test_the_default_task_has_the_settings_of_the_encoder() -> None:
    task = default_pretraining_task(gpt.size("tiny", vocab_size=99), vocab_size=99)
    assert task.objectives == ("clm",)
    assert task.sampling.running_text
