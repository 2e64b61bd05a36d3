"""pretrain from Python: which settings win, and what it refuses."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Literal

import pytest

import bertkit
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.errors import BertkitError
from bertkit.objectives.passages import AdjacentPassages
from bertkit.pretraining.planning import PretrainPlan
from bertkit.pretraining.run import PretrainResult

pytestmark = pytest.mark.usefixtures("without_shape_checks")


@pytest.fixture(autouse=True)
def short_measurements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertkit.pretraining.planning._SECONDS_TO_MEASURE", 0.01)


def test_a_plan_needs_no_output(workspace: Path) -> None:
    plan = bertkit.pretrain(
        workspace / "data", size="1/12/2", steps=9, seq_length=13, batch_size=3, plan=True, progress="quiet"
    )
    assert isinstance(plan, PretrainPlan)
    assert plan.steps == 9


def test_options_win_over_the_file_of_settings_and_set_over_options(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text("steps = 1\nseed = 3\nbatch_size = 5\nseq_length = 13\n")
    output = tmp_path / "run"
    bertkit.pretrain(
        workspace / "data",
        output=output,
        size="1/12/2",
        config=tmp_path / "run.toml",
        batch_size=7,
        seed=4,
        set=["seed=5"],
        progress="quiet",
    )
    settings = {each.path: (each.value, each.origin) for each in bertkit.config_show(output)}
    assert settings["steps"] == (1, f"{tmp_path / 'run.toml'}:1")
    assert settings["batch_size"] == (7, "--batch-size")
    assert settings["seed"] == (5, "--set")
    assert settings["encoder.num_layers"] == (1, "--size 1/12/2")


def test_a_run_without_a_profile_is_advised_and_a_chosen_one_is_not(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def plan(*arguments: object) -> None:
        raise BertkitError("nothing is planned")

    monkeypatch.setattr("bertkit.api.pretraining.plan_pretraining", plan)
    profiles: tuple[Literal["paper"] | None, ...] = (None, "paper")
    shown = []
    for profile in profiles:
        with pytest.raises(BertkitError, match="nothing is planned"):
            bertkit.pretrain(workspace / "data", size="1/12/2", steps=9, plan=True, profile=profile, progress="plain")
        shown.append(capsys.readouterr().err.count("--profile fast learns much more"))
    assert shown == [1, 0]


@pytest.mark.parametrize(("name", "option"), [("data", "DATA"), ("output", "--output")])
def test_a_setting_takes_the_place_of_no_folder(workspace: Path, tmp_path: Path, name: str, option: str) -> None:
    """The encoder would be made for the vocabulary of one corpus and trained on another."""
    with pytest.raises(BertkitError, match=f"--set {name}: the {name} is given by {option}"):
        bertkit.pretrain(workspace / "data", output=tmp_path / "run", size="1/12/2", steps=1, set={name: "x"})


def test_settings_of_a_chosen_objective_win_over_the_encoder_s_and_lose_to_given_ones(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {"seq_length": 13, "log_every": 7, "save_every": 3}
    monkeypatch.setattr(AdjacentPassages, "default_settings", lambda vocab_size: own)
    bertkit.pretrain(
        workspace / "data",
        output=tmp_path / "run",
        size="1/12/2",
        steps=1,
        batch_size=3,
        set=['task.objectives=["mlm", "passages"]', "log_every=5"],
        progress="quiet",
    )
    settings = {each.path: (each.value, each.origin) for each in bertkit.config_show(tmp_path / "run")}
    assert settings["seq_length"] == (13, "objective passages")
    assert settings["log_every"] == (5, "--set")


@pytest.mark.parametrize("names", [("a.txt",), ("a.txt", "b.txt")])
def test_one_or_two_long_files_are_enough_for_next_sentence_pairs(
    workspace: Path, tmp_path: Path, names: tuple[str, ...]
) -> None:
    """Some of each file is held out, and training and evaluation both have two documents or more."""
    text = (workspace / "a.txt").read_text().replace("\n\n", "\n")
    for name in names:
        (tmp_path / name).write_text("".join(f"{name} begins here.\n{text}" for _ in range(2)))
    data = tmp_path / "data"
    manifest = bertkit.prepare(
        [tmp_path / name for name in names], tokenizer=workspace / "tok", output=data, progress="quiet"
    )
    assert manifest.documents == len(names)
    assert 0 < manifest.heldout_tokens < manifest.tokens / 10
    done = bertkit.pretrain(data, output=tmp_path / "run", size="1/12/2", seq_length=13, steps=2, progress="quiet")
    assert isinstance(done, PretrainResult)
    assert {"mlm", "nsp"} <= done.heldout.keys()


def test_a_run_needs_data_and_an_output(workspace: Path) -> None:
    for data in (None, workspace / "data"):
        with pytest.raises(BertkitError, match="pretrain needs DATA and -o RUN, or --resume RUN"):
            bertkit.pretrain(data, progress="quiet")


@pytest.mark.parametrize("options", [{"architecture": "bert"}, {"plan": True}, {"output": "elsewhere"}, {"data": "."}])
def test_a_resumed_run_keeps_what_it_is(workspace: Path, options: dict[str, Any]) -> None:
    with pytest.raises(BertkitError, match="--resume continues a run as it was begun"):
        bertkit.pretrain(resume=workspace / "run", **options)


def test_a_resume_may_repeat_the_size(workspace: Path, tmp_path: Path) -> None:
    tok, data, first = tmp_path / "tok", tmp_path / "data", tmp_path / "first"
    bertkit.tokenizer_train([workspace / "a.txt"], kind="byte-bpe", vocab_size=299, output=tok, progress="quiet")
    bertkit.prepare([workspace / "a.txt"], tokenizer=tok, output=data, heldout=0.3, progress="quiet")
    given: dict[str, Any] = {"size": "1/12/2", "seq_length": 17, "batch_size": 3, "steps": 2, "progress": "quiet"}
    # The padding of byte-level vocabularies has the id 1, and ModernBERT's default is 0.
    bertkit.pretrain(data, output=first, architecture="modernbert", set=["encoder.dropout=0.2"], **given)
    bertkit.pretrain(data, output=tmp_path / "second", from_=first, **given)
    for output in (first, tmp_path / "second"):
        resumed = bertkit.pretrain(resume=output, size="1/12/2", progress="quiet")
        assert isinstance(resumed, PretrainResult) and resumed.steps == 2
        with pytest.raises(BertkitError, match=r"was begun with .*encoder\.num_layers 1, not 2"):
            bertkit.pretrain(resume=output, size="2/12/2", progress="quiet")


def test_a_run_continues_from_a_model(workspace: Path, tmp_path: Path) -> None:
    output = tmp_path / "more"
    result = bertkit.pretrain(
        workspace / "data",
        from_=workspace / "run",
        output=output,
        steps=2,
        seq_length=37,
        also_evaluate=workspace / "data",
        progress="quiet",
    )
    assert not isinstance(result, PretrainPlan)
    assert result.before["mlm"] == result.before["also_mlm"]
    settings = {each.path: (each.value, each.origin) for each in bertkit.config_show(output)}
    origin = f"--from {workspace / 'run'}"
    assert settings["optimizer.lr"] == (5e-5, origin)
    assert settings["encoder.num_layers"] == (1, origin)
    assert settings["task.objectives"][1] == origin
    assert settings["from_model"][1] == "--from"
    assert settings["also_evaluate"][1] == "--also-evaluate"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"profile": "fast"}, "--profile is for new weights"),
        ({"architecture": "roberta"}, "--architecture is roberta, and .*run is bert: leave it out"),
        ({"size": "2/12/2"}, "encoder.num_layers is 2; .*run has 1, and --from keeps it"),
        ({"set": ["encoder.num_heads=1"]}, "encoder.num_heads is 1; .*run has 2, and --from keeps it"),
        ({"set": ["token_init=cooccurrence"]}, "both set the token embeddings"),
        ({"also_evaluate": "nowhere"}, "no data at nowhere"),
        ({"from_": "rum"}, "no model at rum"),
    ],
)
def test_settings_that_contradict_the_model_are_refused(
    workspace: Path, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    given = {"from_": workspace / "run", "steps": 2, "seq_length": 37, "output": tmp_path / "run", **options}
    with pytest.raises(BertkitError, match=message):
        bertkit.pretrain(workspace / "data", progress="quiet", **given)


def test_the_size_of_a_model_may_be_named_whatever_its_initial_weights_were(workspace: Path, tmp_path: Path) -> None:
    given: dict[str, Any] = {"steps": 1, "seq_length": 37, "progress": "quiet"}
    positions = ["encoder.position_init=sinusoidal"]
    bertkit.pretrain(workspace / "data", output=tmp_path / "a", size="1/12/2", set=positions, **given)
    bertkit.pretrain(workspace / "data", from_=tmp_path / "a", size="1/12/2", output=tmp_path / "b", **given)
    assert ModelFolder.open(tmp_path / "b").config.position_init == "sinusoidal"


def test_a_model_that_cannot_be_used_is_refused_in_one_line(workspace: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(workspace / "run" / "model", folder)
    (folder / "bertkit.json").unlink()
    for file in ("tokenizer.json", "vocab.txt", "tokenizer_config.json"):
        (folder / file).unlink()
    given: dict[str, Any] = {"steps": 2, "seq_length": 37, "output": tmp_path / "run", "progress": "quiet"}
    with pytest.raises(BertkitError, match=r"no tokenizer at .*model"):
        bertkit.pretrain(workspace / "data", from_=folder, **given)
    (folder / "config.json").write_text('{"model_type": "t5"}')
    with pytest.raises(BertkitError, match='model_type is "t5"; bertkit reads'):
        bertkit.pretrain(workspace / "data", from_=folder, **given)


@pytest.mark.parametrize(("kind", "architecture"), [("bpe", "gpt"), ("byte-bpe", "roberta"), ("words", "elmo")])
def test_every_architecture_continues(
    workspace: Path, tmp_path: Path, kind: Literal["bpe", "byte-bpe", "words"], architecture: str
) -> None:
    tok, data = tmp_path / "tok", tmp_path / "data"
    bertkit.tokenizer_train([workspace / "a.txt"], kind=kind, vocab_size=299, output=tok, progress="quiet")
    bertkit.prepare([workspace / "a.txt"], tokenizer=tok, output=data, heldout=0.3, progress="quiet")
    given: dict[str, Any] = {"seq_length": 17, "batch_size": 3, "steps": 2, "progress": "quiet"}
    first = bertkit.pretrain(data, architecture=architecture, size="1/12/2", output=tmp_path / "run", **given)
    more = bertkit.pretrain(data, from_=tmp_path / "run", output=tmp_path / "more", **given)
    assert not isinstance(first, PretrainPlan)
    assert not isinstance(more, PretrainPlan)
    assert more.before == pytest.approx(first.heldout)


@pytest.mark.parametrize(
    ("setting", "needed"),
    [
        ("optimizer.muon_lr=0.9", "optimizer.kind=muon"),
        ("optimizer.initial_accumulator=2", "optimizer.kind=adagrad"),
        ("long_share=0.5", "long_seq_length"),
        ("task.sampling.random_next=0.3", "an objective that reads pairs, such as nsp"),
        ("head_lr=0.9", "head_share"),
        ("averaging.share=0.9", "averaging.kind=tail"),
        ("averaging.decay=0.9", "averaging.kind=ema"),
        ("schedule.decay_share=0.9", "schedule.decay=late"),
        ("task.samples=37", "the objective bilm"),
    ],
)
def test_a_setting_that_others_switch_off_is_refused(
    workspace: Path, tmp_path: Path, setting: str, needed: str
) -> None:
    with pytest.raises(BertkitError, match=f"has no effect without {needed}"):
        settings = ['task.objectives=["mlm"]', setting]
        bertkit.pretrain(workspace / "data", output=tmp_path / "run", size="1/12/2", steps=1, set=settings)


def test_a_profile_may_be_used_without_its_long_rows(workspace: Path) -> None:
    options: dict[str, Any] = {"size": "1/12/2", "profile": "fast", "steps": 2, "seq_length": 17, "progress": "quiet"}
    plan = bertkit.pretrain(workspace / "data", plan=True, set={"long_seq_length": None, "batch_size": 3}, **options)
    assert isinstance(plan, PretrainPlan)


def test_an_objective_that_does_not_suit_is_the_fault_of_its_setting(workspace: Path) -> None:
    with pytest.raises(BertkitError, match=r"^--set: task\.objectives has clm, which needs a causal encoder"):
        bertkit.pretrain(workspace / "data", size="1/12/2", plan=True, set={"task.objectives": ["clm"]})
