"""Pre-training that continues from a model: its weights, its vocabulary, new heads, and what is measured."""

from __future__ import annotations

import json
import re
import shutil
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from bertkit.checkpoint import training_state as store
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.checkpoint.save_model import save_model
from bertkit.data.prepare import prepare
from bertkit.data.shards import TOKENIZER
from bertkit.encoders import modernbert
from bertkit.encoders.bert import Bert
from bertkit.errors import BertkitError
from bertkit.model import Model
from bertkit.pretraining import heldout
from bertkit.pretraining.data import PretrainingData
from bertkit.pretraining.from_model import HEAD_SHARE, check_same_network, continued_settings, enlarged_config
from bertkit.pretraining.job import build_job
from bertkit.pretraining.phases import build_phases
from bertkit.pretraining.record import PretrainRun
from bertkit.pretraining.run import pretrain, resume
from bertkit.pretraining.task import PretrainingTask
from bertkit.report.progress import Progress
from bertkit.runs import read_metrics, read_run
from bertkit.text.wordpiece import WordPiece

pytestmark = pytest.mark.usefixtures("without_shape_checks")

MASKED = PretrainingTask(objectives=("mlm",))
QUIET = Progress("quiet")


def save(folder: Path, run: PretrainRun, task: PretrainingTask | None) -> Path:
    """A model folder with random weights, with the heads of ``task`` or none."""
    torch.manual_seed(5)
    encoder = Bert(run.encoder)  # type: ignore[arg-type]
    heads = task.build_objectives(encoder) if task else {}
    for parameter in (parameter for head in heads.values() for parameter in head.parameters()):
        torch.nn.init.normal_(parameter)
    save_model(folder, Model(encoder, heads), WordPiece.load(run.data / TOKENIZER), metadata={})
    return folder


@pytest.fixture
def continued(run: PretrainRun, tmp_path: Path) -> PretrainRun:
    """A run that continues from a model with a masked-LM head."""
    return replace(run, task=MASKED, from_model=save(tmp_path / "base", run, MASKED), long_seq_length=None)


@pytest.fixture
def headless(run: PretrainRun, tmp_path: Path) -> PretrainRun:
    """A run that continues from an encoder; half of its 10 steps train a new head."""
    model = save(tmp_path / "encoder", run, None)
    return replace(run, task=MASKED, from_model=model, long_seq_length=None, head_share=0.5, save_every=1)


def encoder_at(run: PretrainRun, step: int) -> dict[str, torch.Tensor]:
    groups, _ = store.load(run.output / "checkpoints" / f"step-{step:08}")
    return {name: tensor for name, tensor in groups["model"].items() if name.startswith("encoder.")}


def test_training_starts_from_all_weights_of_the_model(continued: PretrainRun) -> None:
    assert continued.from_model is not None
    job = build_job(continued)
    loaded = ModelFolder.open(continued.from_model).load_model(MASKED.build_objectives)
    for name, weight in loaded.state_dict().items():
        if not name.startswith("encoder.pooler."):  # a folder with a masked-LM head has none
            assert torch.equal(job.state.model.state_dict()[name], weight), name
    assert job.notes == []


def test_a_new_head_is_trained_before_the_encoder(headless: PretrainRun, capsys: pytest.CaptureFixture[str]) -> None:
    assert headless.from_model is not None
    pretrain(replace(headless, keep_checkpoints=10), Progress("plain"))
    first = ModelFolder.open(headless.from_model).load_encoder().state_dict()
    assert all(torch.equal(tensor, first[name[8:]]) for name, tensor in encoder_at(headless, 5).items())
    changed = [name for name, tensor in encoder_at(headless, 7).items() if not torch.equal(tensor, first[name[8:]])]
    assert "encoder.embeddings.word.weight" in changed
    heads = [store.load(headless.output / "checkpoints" / f"step-{step:08}")[0]["model"] for step in (1, 5)]
    assert not torch.equal(heads[0]["objectives.mlm.transform.weight"], heads[1]["objectives.mlm.transform.weight"])
    said = capsys.readouterr().err
    assert "has no head for mlm: the first 50% of the steps train the heads alone, with the encoder frozen" in said


def test_the_head_and_the_encoder_have_schedules_of_their_own(headless: PretrainRun) -> None:
    pretrain(replace(headless, head_lr=1e-2), QUIET)
    records = read_metrics(headless.output / "metrics.jsonl")
    rates = [record["lr"] for record in records if record["kind"] == "train"]
    assert rates == pytest.approx(
        [1e-2 * each / 5 for each in (5, 4, 3, 2, 1)] + [1e-4 * e / 5 for e in (5, 4, 3, 2, 1)]
    )


@pytest.mark.parametrize(("steps", "minutes", "until", "total"), [(120, None, 30, 120), (None, 2.0, 30.0, 120.0)])
def test_new_heads_have_the_first_part_of_the_steps_or_of_the_time(
    headless: PretrainRun, steps: int | None, minutes: float | None, until: float, total: float
) -> None:
    run = replace(headless, steps=steps, minutes=minutes, head_share=0.25, long_seq_length=41, long_share=0.5)
    heads, short, long = build_phases(run, PretrainingData.open(run))
    assert [phase.heads_only for phase in (heads, short, long)] == [True, False, False]
    assert [(phase.first, phase.until) for phase in (heads, short, long)] == [(0, until), (until, 60), (60, total)]
    assert [(phase.plan.schedule_from, phase.plan.total) for phase in (heads, short)] == [(0, until), (until, 90)]
    assert long.plan.schedule == short.plan.schedule
    rates = [(phase.plan.optimizer.lr, phase.plan.optimizer.muon_lr) for phase in (heads, short)]
    assert rates == [(run.head_lr, run.optimizer.muon_lr), (run.optimizer.lr, run.optimizer.muon_lr)]
    for elapsed, factor in ((0.0, 1.0), (30.0, 1.0), (75.0, 0.5)):
        plan = heads.plan if elapsed < until else short.plan
        assert 1 - plan.in_schedule(int(elapsed), elapsed) / plan.total == factor


def test_losses_before_and_after_are_measured_on_both_texts(continued: PretrainRun, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text("\n".join(json.dumps({"text": f"Rivers ran {'slowly ' * n}still."}) for n in range(1, 40)))
    prepare([other], tokenizer=WordPiece.load(continued.data / TOKENIZER), output=tmp_path / "also", heldout=0.5)
    continued = replace(continued, also_evaluate=tmp_path / "also")
    result = pretrain(continued, QUIET)
    names = {"mlm", "mlm_accuracy", "mlm_perplexity"}
    assert set(result.before) == set(result.heldout) == names | {f"also_{name}" for name in names}
    assert result.heldout["mlm"] < result.before["mlm"]
    record = read_run(continued.output)
    assert record["before"] == result.before
    assert record["from_model"]["file"].endswith("model.safetensors")
    card = (continued.output / "model" / "README.md").read_text()
    assert re.search(r"\| held-out text +\| +before +\| +after +\|", card)
    assert f"from the weights of base (SHA-256 {record['from_model']['sha256']})" in card
    # A run that continues from the result begins where it ended.
    again = replace(continued, from_model=continued.output, output=tmp_path / "again")
    assert pretrain(again, QUIET).before == pytest.approx(result.heldout)


@pytest.mark.parametrize("step", [3, 5, 8])
def test_a_resume_is_bit_exact_and_needs_the_model_no_more(headless: PretrainRun, step: int) -> None:
    assert headless.from_model is not None
    result = pretrain(replace(headless, keep_checkpoints=10), QUIET)
    weights = (headless.output / "model" / "model.safetensors").read_bytes()
    records = (headless.output / "metrics.jsonl").read_text()
    shutil.rmtree(headless.output / "model")
    shutil.rmtree(headless.from_model)
    for later in range(step + 1, 11):
        shutil.rmtree(headless.output / "checkpoints" / f"step-{later:08}")
    resumed = resume(headless.output, QUIET)
    assert (headless.output / "model" / "model.safetensors").read_bytes() == weights
    assert (resumed.before, resumed.heldout) == (result.before, result.heldout)
    assert records.count('"heldout"') == (headless.output / "metrics.jsonl").read_text().count('"heldout"')


def test_a_run_that_starts_again_needs_the_same_model(headless: PretrainRun) -> None:
    assert headless.from_model is not None
    pretrain(headless, QUIET)
    shutil.rmtree(headless.output / "checkpoints")
    shutil.rmtree(headless.from_model)
    save(headless.from_model, headless, MASKED)
    with pytest.raises(BertkitError, match=r"model.safetensors is not the model that .*run was begun with"):
        resume(headless.output, QUIET)


def test_added_words_start_from_the_mean_of_their_tokens(continued: PretrainRun, tmp_path: Path) -> None:
    assert continued.from_model is not None
    base = ModelFolder.open(continued.from_model).tokenizer
    assert isinstance(base, WordPiece)
    tokenizer = base.add_tokens(["millstone", "river's"])
    file = tmp_path / "more.jsonl"
    file.write_text("\n".join(json.dumps({"text": f"The millstone ran {'slowly ' * n}."}) for n in range(1, 40)))
    prepare([file], tokenizer=tokenizer, output=tmp_path / "more", heldout=0.2)
    config = enlarged_config(ModelFolder.open(continued.from_model), vocab_size=tokenizer.vocab_size)
    job = build_job(replace(continued, data=tmp_path / "more", encoder=config))
    state = job.state.model.state_dict()
    for id, word in ((base.vocab_size, "millstone"), (base.vocab_size + 1, "river's")):
        parts = base.encode(word).ids
        assert len(parts) > 1
        for name in ("encoder.embeddings.word.weight", "objectives.mlm.bias"):
            torch.testing.assert_close(state[name][id], state[name][parts].mean(dim=0))
    assert job.notes == ["2 added words start from the mean of the tokens that they were before"]


def test_another_vocabulary_is_refused(continued: PretrainRun, tmp_path: Path) -> None:
    tokenizer = WordPiece.load(continued.data / TOKENIZER)
    other = [*tokenizer.vocabulary[:-2], *reversed(tokenizer.vocabulary[-2:])]
    (tmp_path / "vocab.txt").write_text("\n".join(other) + "\n")
    data = tmp_path / "swapped"
    prepare([tmp_path / "texts.jsonl"], tokenizer=WordPiece.load(tmp_path / "vocab.txt"), output=data)
    with pytest.raises(BertkitError, match=r"swapped was not prepared with the tokenizer of .*base: prepare it with"):
        build_job(replace(continued, data=data))


def test_weights_that_are_not_finite_are_refused(continued: PretrainRun) -> None:
    assert continued.from_model is not None
    file = continued.from_model / "model.safetensors"
    tensors = load_file(file)
    tensors["bert.embeddings.LayerNorm.bias"][3] = torch.nan
    save_file(tensors, file, metadata={"format": "pt"})
    (continued.from_model / "bertkit.json").unlink()
    with pytest.raises(BertkitError, match=r"has NaN or infinite weights in embeddings\.LayerNorm\.bias"):
        build_job(continued)


def test_a_missing_head_is_refused_unless_it_is_trained_first(headless: PretrainRun) -> None:
    with pytest.raises(BertkitError, match=r"has no head for mlm: leave it out of task.objectives, or train"):
        build_job(replace(headless, head_share=0.0))


def test_heads_that_are_all_there_are_not_trained_first(continued: PretrainRun) -> None:
    with pytest.raises(BertkitError, match=r"has all heads of task\.objectives, so there is none to train first"):
        build_job(replace(continued, head_share=0.5))


def test_settings_depend_on_the_heads_of_the_model(headless: PretrainRun, tmp_path: Path) -> None:
    both = PretrainingTask()
    expected = {(): (("mlm",), HEAD_SHARE), ("mlm",): (("mlm",), None), ("mlm", "nsp"): (("mlm", "nsp"), None)}
    for objectives, (trained, share) in expected.items():
        task = PretrainingTask(objectives=objectives) if objectives else None
        folder = save(tmp_path / f"with{len(objectives)}", headless, task)
        settings = continued_settings(ModelFolder.open(folder), both)
        assert (settings["task.objectives"], settings.get("head_share")) == (trained, share)


def test_the_objectives_of_the_model_are_kept(run: PretrainRun) -> None:
    """They are not among the defaults of the encoder."""
    names = ("passages", "mlm")
    pretrain(replace(run, task=PretrainingTask(objectives=names), steps=1, long_seq_length=None), QUIET)
    folder = ModelFolder.open(run.output)
    assert continued_settings(folder, PretrainingTask())["task.objectives"] == names
    assert continued_settings(folder, PretrainingTask(), chosen=True)["task.objectives"] == ("mlm",)


def test_objectives_of_a_model_that_are_no_names_are_refused(run: PretrainRun, tmp_path: Path) -> None:
    model = Model(Bert(run.encoder), {})  # type: ignore[arg-type]
    tokenizer = WordPiece.load(run.data / TOKENIZER)
    save_model(tmp_path / "model", model, tokenizer, metadata={"objectives": {"mlm": 7}})
    with pytest.raises(BertkitError, match=r"bertkit\.json: objectives is not a list of names"):
        continued_settings(ModelFolder.open(tmp_path / "model"), MASKED)


def test_another_network_is_refused(run: PretrainRun) -> None:
    same = replace(run.encoder, dropout=0.3, initializer_range=0.5)
    check_same_network(Path("model"), run.encoder, same)
    with pytest.raises(BertkitError, match=r"encoder.num_heads is 1; model has 2, and --from keeps it"):
        check_same_network(Path("model"), run.encoder, replace(run.encoder, num_heads=1))
    with pytest.raises(BertkitError, match=r"encoder.position_init is sinusoidal; model has normal, and --from keeps"):
        check_same_network(Path("model"), run.encoder, replace(run.encoder, position_init="sinusoidal"))


def test_a_modernbert_may_read_longer_rows_than_before() -> None:
    """Its positions are rotations, and no weight depends on how many there are."""
    config = modernbert.tiny().config
    check_same_network(Path("model"), config, replace(config, max_positions=8192, global_theta=160_000.0))
    with pytest.raises(BertkitError, match=r"encoder.local_attention is 8; model has 6, and --from keeps it"):
        check_same_network(Path("model"), config, replace(config, local_attention=8))


def test_initial_weights_have_one_source(continued: PretrainRun) -> None:
    with pytest.raises(BertkitError, match="both set the token embeddings"):
        replace(continued, token_init="cooccurrence")
    with pytest.raises(BertkitError, match="head_share needs --from MODEL"):
        replace(continued, from_model=None, head_share=0.1)
    with pytest.raises(BertkitError, match="together they must be below 1"):
        replace(continued, head_share=0.7, long_seq_length=20, long_share=0.3)
    with pytest.raises(BertkitError, match="shard and head_share cannot be combined"):
        build_job(replace(continued, head_share=0.1, shard=True))


def test_the_time_of_the_evaluation_between_the_head_and_the_encoder_counts(
    headless: PretrainRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heldout, "evaluate_heldout", lambda *_, **__: time.sleep(0.7))
    pretrain(replace(headless, steps=None, minutes=1 / 30, log_every=1), QUIET)
    records = read_metrics(headless.output / "metrics.jsonl")
    times = [record["elapsed"] for record in records if record["kind"] == "train"]
    assert max(after - before for before, after in pairwise(times)) >= 0.7
