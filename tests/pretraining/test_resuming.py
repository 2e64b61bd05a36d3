from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from bertkit.data.prepare import prepare
from bertkit.errors import BAD_DATA, WRONG_USAGE, BertkitError
from bertkit.pretraining.record import PretrainRun
from bertkit.pretraining.resuming import CHANGEABLE, check_unchanged, run_identity
from bertkit.text import wordpiece
from bertkit.training.optimizer import OptimizerConfig


def test_settings_that_no_weight_depends_on_may_change(run: PretrainRun) -> None:
    begun = run_identity(run)
    changed = replace(
        run,
        gradient_checkpointing=True,
        loader_workers=2,
        log_every=7,
        evaluate_every=3,
        evaluation_examples=99,
        save_every=13,
        keep_checkpoints=5,
    )
    assert all(getattr(changed, name) != getattr(run, name) for name in CHANGEABLE)
    check_unchanged(changed, begun)


def test_every_other_changed_setting_is_named(run: PretrainRun) -> None:
    begun = run_identity(run)
    changed = replace(run, seed=7, optimizer=OptimizerConfig(lr=3e-4))
    with pytest.raises(BertkitError) as caught:
        check_unchanged(changed, begun)
    assert caught.value.exit_code == WRONG_USAGE
    assert "was begun with" in str(caught.value)
    assert f"optimizer.lr {run.optimizer.lr}, not 0.0003" in str(caught.value)
    assert "seed 0, not 7" in str(caught.value)
    assert f"A resume may change only {', '.join(CHANGEABLE)}" in str(caught.value)


def test_folders_may_have_been_moved(run: PretrainRun, tmp_path: Path) -> None:
    begun = run_identity(run)
    moved = run.data.rename(tmp_path / "moved")
    check_unchanged(replace(run, data=moved, output=tmp_path / "other"), begun)


def test_new_weights_cannot_become_those_of_a_model(run: PretrainRun) -> None:
    continued = replace(run, from_model=Path("model"))
    for begun, changed, began in ((run, continued, "with new weights"), (continued, run, "from model")):
        with pytest.raises(BertkitError, match=f"was begun {began}. Resume without from_model") as caught:
            check_unchanged(changed, run_identity(begun))
        assert caught.value.exit_code == WRONG_USAGE
    check_unchanged(replace(run, from_model=Path("moved")), run_identity(continued))


def test_another_text_of_a_second_evaluation_is_refused(run: PretrainRun, tmp_path: Path) -> None:
    run = replace(run, also_evaluate=run.data)
    begun = run_identity(run)
    moved = shutil.copytree(run.data, tmp_path / "moved")
    check_unchanged(replace(run, also_evaluate=moved), begun)
    with pytest.raises(BertkitError, match=r"run was begun with another text in --also-evaluate") as caught:
        check_unchanged(replace(run, also_evaluate=None), begun)
    assert caught.value.exit_code == WRONG_USAGE


def test_another_corpus_is_refused(run: PretrainRun, tmp_path: Path) -> None:
    begun = run_identity(run)
    text = "The old mill stood still. It was dawn."
    (tmp_path / "other.jsonl").write_text(json.dumps({"text": text}) + "\n" + json.dumps({"text": text * 2}))
    tokenizer = wordpiece.train([text], vocab_size=99)
    prepare([tmp_path / "other.jsonl"], tokenizer=tokenizer, output=tmp_path / "other", heldout=0.3)
    with pytest.raises(BertkitError, match=r"other is not the corpus that .*run was begun with") as caught:
        check_unchanged(replace(run, data=tmp_path / "other"), begun)
    assert caught.value.exit_code == BAD_DATA


def test_the_folders_of_a_mixture_may_move_but_its_shares_may_not_change(mixed: PretrainRun, tmp_path: Path) -> None:
    begun = run_identity(mixed)
    (folder,) = mixed.mix
    moved = str(Path(folder).rename(tmp_path / "moved"))
    check_unchanged(replace(mixed, mix={moved: 0.25}), begun)
    for changed, shown in (({moved: 0.3}, "mix shares 0.3"), ({}, "one corpus")):
        message = rf"run was begun with mix shares 0\.25, not {shown}\. Resume without --mix"
        with pytest.raises(BertkitError, match=message) as caught:
            check_unchanged(replace(mixed, mix=changed), begun)
        assert caught.value.exit_code == WRONG_USAGE
