"""Pre-training of every encoder that can be: a few steps, a resume, the folder, the record, and what is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tests.interruptible_run import outcome
from tests.published import published_run

import bertkit
from bertkit.batch import Batch
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.config.records import to_plain
from bertkit.config.settings import Setting, apply
from bertkit.contracts import EncoderConfig
from bertkit.data.prepare import prepare
from bertkit.encoder_types.architectures import configure_architecture, find_encoder
from bertkit.encoders.bert import BertConfig
from bertkit.encoders.gpt import GptConfig
from bertkit.encoders.roberta import RobertaConfig
from bertkit.errors import BertkitError
from bertkit.lookup import list_modules
from bertkit.pretraining.defaults import default_pretraining_task, profile_settings
from bertkit.pretraining.planning import PretrainPlan
from bertkit.pretraining.record import PretrainRun, pretraining_from_json, pretraining_to_json
from bertkit.pretraining.run import pretrain, resume
from bertkit.report.progress import Progress
from bertkit.runs import read_run
from bertkit.text import bpe, byte_bpe, wordpiece

SENTENCES = ["Seven wide rivers ran slowly.", "The old mill stood still.", "A miller counts coins.", "It was dawn."]
TEXTS = [" ".join(SENTENCES[number % 3 :] * (2 + number % 5)) for number in range(37)]
TOKENIZERS: dict[str, Callable[[], Any]] = {
    "bert": lambda: wordpiece.train(TEXTS, vocab_size=99),
    "roberta": lambda: byte_bpe.train(TEXTS, vocab_size=299),
    "gpt": lambda: bpe.train(TEXTS, vocab_size=99),
}


@pytest.fixture(params=["roberta", "gpt"])
def architecture(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def data(tmp_path: Path, architecture: str) -> Path:
    return make_data(tmp_path, architecture)


def make_data(folder: Path, architecture: str) -> Path:
    (folder / "texts.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in TEXTS))
    prepare([folder / "texts.jsonl"], tokenizer=TOKENIZERS[architecture](), output=folder / "data", heldout=0.3)
    return folder / "data"


def small(architecture: str, vocab_size: int) -> EncoderConfig:
    return configure_architecture(architecture, "2/14/2", vocab_size=vocab_size)


@pytest.fixture
def run(data: Path, architecture: str) -> PretrainRun:
    vocab_size = json.loads((data / "manifest.json").read_text())["vocab_size"]
    return published_run(
        data,
        data.parent / "run",
        small(architecture, vocab_size),
        steps=7,
        seq_length=17,
        batch_size=5,
        log_every=1,
        evaluate_every=7,
    )


def test_the_folder_is_read_by_transformers(run: PretrainRun, architecture: str) -> None:
    result = pretrain(run, Progress("quiet"))
    label = {"roberta": "mlm", "gpt": "clm"}[architecture]
    assert set(result.heldout) == {label, f"{label}_accuracy", f"{label}_perplexity"}
    model_class = {"roberta": transformers.RobertaForMaskedLM, "gpt": transformers.OpenAIGPTLMHeadModel}[architecture]
    model, report = model_class.from_pretrained(run.output / "model", output_loading_info=True)
    assert not report["missing_keys"]
    assert all("pooler" in name for name in report["unexpected_keys"])
    own = ModelFolder.open(run.output).load_model(run.task.build_objectives).eval()
    ids = torch.tensor([ModelFolder.open(run.output).tokenizer.encode("The old miller stood still.").ids])
    batch = batch_of(ids)
    with torch.inference_mode():
        (answers,) = own(batch).values()
        expected = model.eval()(input_ids=ids).logits
    torch.testing.assert_close(answers["logits"].view(expected.shape), expected, rtol=0, atol=1e-4)


def batch_of(ids: torch.Tensor) -> Batch:
    return Batch(ids, torch.zeros_like(ids), torch.ones_like(ids, dtype=torch.bool), {})


def test_a_resume_comes_to_the_same_bits(run: PretrainRun, tmp_path: Path) -> None:
    whole = replace(run, save_every=3)
    pretrain(whole, Progress("quiet"))
    checkpoint = run.output / "checkpoints" / "step-00000007"
    expected = outcome(run.output)
    shutil.rmtree(run.output / "checkpoints" / "step-00000007")
    shutil.rmtree(run.output / "model")
    resume(run.output, Progress("quiet"))
    assert checkpoint.is_dir()
    assert outcome(run.output) == expected


def test_the_record_names_the_architecture_and_is_read_back(run: PretrainRun, architecture: str) -> None:
    record = json.loads(json.dumps(pretraining_to_json(run)))
    assert record["architecture"] == architecture
    assert pretraining_from_json(record) == run
    assert type(pretraining_from_json(record).encoder) is type(run.encoder)


def test_a_record_without_an_architecture_is_refused() -> None:
    encoder = BertConfig(vocab_size=99, num_layers=3)
    record = to_plain(PretrainRun(data=Path("data"), output=Path("run"), encoder=encoder, steps=7))
    with pytest.raises(BertkitError, match="the record has no architecture"):
        pretraining_from_json(record)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"architecture": "gpd"},
            'no architecture named "gpd". Did you mean "gpt"? There are: bert, elmo, gpt, modernbert, roberta',
        ),
        ({"encoder": {"vocab_size": 99, "num_layer": 3}}, "unknown key num_layer. Did you mean num_layers?"),
        ({"encoder": None}, "Expected `object`, got `null`"),
    ],
)
def test_records_that_are_wrong(changes: dict[str, Any], message: str) -> None:
    encoder = GptConfig(vocab_size=99)
    run = PretrainRun(
        data=Path("data"), output=Path("run"), encoder=encoder, task=default_pretraining_task(encoder, vocab_size=99)
    )
    with pytest.raises(BertkitError) as caught:
        pretraining_from_json({**pretraining_to_json(run), **changes})
    assert message in str(caught.value)


def test_settings_reach_the_encoder_that_there_is() -> None:
    encoder = RobertaConfig(vocab_size=99)
    run = PretrainRun(
        data=Path("data"), output=Path("run"), encoder=encoder, task=default_pretraining_task(encoder, vocab_size=99)
    )
    changed = apply(run, [Setting("encoder.dropout", "0.3", "--set", is_text=True)])
    assert changed.encoder == replace(encoder, dropout=0.3)
    for wrong, message in {
        "encoder.num_position": "Did you mean encoder.num_positions?",
        "encoder.causal": "unknown key encoder.causal",
        "encoder": "encoder is not one value; set its fields",
    }.items():
        with pytest.raises(BertkitError, match=message):
            apply(run, [Setting(wrong, "3", "--set", is_text=True)])


@pytest.mark.parametrize(
    "architecture", [name for name in list_modules("encoders") if find_encoder(name).pretraining is not None]
)
@pytest.mark.parametrize("profile", ["paper", "fast"])
@pytest.mark.parametrize("size", ["tiny", "2/768/12"])
def test_every_path_of_a_profile_is_a_setting(architecture: str, profile: Any, size: str) -> None:
    encoder = configure_architecture(architecture, size, vocab_size=99)
    run = PretrainRun(
        data=Path("data"), output=Path("run"), encoder=encoder, task=default_pretraining_task(encoder, vocab_size=99)
    )
    settings = profile_settings(profile, encoder)
    apply(run, [Setting(path, value, "") for path, value in settings.items()])


def test_robertas_and_gpts_papers() -> None:
    roberta = published_run(Path("data"), Path("run"), RobertaConfig(vocab_size=99), steps=125_000)
    assert (roberta.seq_length, roberta.batch_size, roberta.optimizer.lr, roberta.optimizer.beta2) == (
        512,
        2048,
        5e-4,
        0.98,
    )
    assert roberta.task.sampling.full_sentences
    assert roberta.schedule.warmup * 125_000 == 10_000
    gpt = published_run(Path("data"), Path("run"), GptConfig(vocab_size=99))
    assert (gpt.seq_length, gpt.batch_size, gpt.optimizer.lr, gpt.schedule.decay) == (512, 64, 2.5e-4, "cosine")
    assert gpt.task.sampling.running_text


def test_a_causal_bert_is_left_to_right_without_next_sentences() -> None:
    run = published_run(Path("data"), Path("run"), BertConfig(vocab_size=99, causal=True), steps=7)
    assert (run.task.objectives, run.steps) == (("clm",), 7)


def test_the_verb(data: Path, architecture: str) -> None:
    output = data.parent / "verb"
    options: dict[str, Any] = {"steps": 2, "batch_size": 5, "seq_length": 17, "progress": "quiet"}
    bertkit.pretrain(
        data, output=output, architecture=architecture, size="1/14/2", set=["encoder.dropout=0.2"], **options
    )
    recorded = pretraining_from_json(read_run(output)["run"])
    assert recorded.encoder == replace(ModelFolder.open(output).load_encoder().config, dropout=0.2)
    origins = {each.path: each.origin for each in bertkit.config_show(output)}
    assert origins["encoder.num_layers"] == "--size 1/14/2"
    assert origins["encoder.dropout"] == "--set"
    assert origins["task.objectives"] == f"--architecture {architecture}"
    assert origins["architecture"] == f"--architecture {architecture}"
    again = bertkit.pretrain(resume=output, set=["save_every=100"], progress="quiet")
    assert not isinstance(again, PretrainPlan)
    assert again.steps == 2
    title = {"roberta": "# RoBERTa 1/14/2", "gpt": "# GPT 1/14/2"}[architecture]
    assert title in (output / "model" / "README.md").read_text()
    with pytest.raises(BertkitError, match="--resume continues a run as it was begun"):
        bertkit.pretrain(resume=output, architecture=architecture, progress="quiet")


@pytest.mark.parametrize("architecture", ["gpt"])
def test_a_tokenizer_that_hides_nothing_is_refused_where_words_are_hidden(data: Path) -> None:
    vocab_size = json.loads((data / "manifest.json").read_text())["vocab_size"]
    encoder = configure_architecture("modernbert", "2/16/2", vocab_size=vocab_size)
    run = published_run(data, data.parent / "run", encoder, steps=1)
    with pytest.raises(BertkitError, match="this tokenizer has no mask token"):
        pretrain(run, Progress("quiet"))


@pytest.mark.parametrize(("other", "kind"), [("bert", "wordpiece"), ("roberta", "byte-bpe"), ("elmo", "words")])
@pytest.mark.parametrize("architecture", ["gpt"])
def test_a_vocabulary_of_another_kind_is_refused(data: Path, tmp_path: Path, other: str, kind: str) -> None:
    """The tokenizer of the model folder could not be read."""
    encoder = configure_architecture(other, {"elmo": "2/14/28"}.get(other, "1/14/2"), vocab_size=99)
    run = published_run(data, tmp_path / "run", encoder, steps=1)
    with pytest.raises(BertkitError, match=f"another kind of vocabulary than .* tokenizer train FILE... --kind {kind}"):
        pretrain(run, Progress("quiet"))
    assert not run.output.exists()


@pytest.mark.parametrize("architecture", ["roberta"])
def test_an_encoder_that_fills_up_rows_with_another_piece_is_refused(run: PretrainRun) -> None:
    assert isinstance(run.encoder, RobertaConfig)
    with pytest.raises(BertkitError, match=r"encoder\.pad_id is 3; the rows of .* are padded with 1"):
        pretrain(replace(run, encoder=replace(run.encoder, pad_id=3)), Progress("quiet"))
