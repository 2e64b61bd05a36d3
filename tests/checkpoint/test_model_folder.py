from __future__ import annotations

import copy
import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.checkpoint.saved_models import CLASSES, HEADS, pretraining, save

from bertkit.checkpoint.model_folder import ModelFolder, _check_vocabulary
from bertkit.checkpoint.save_model import save_model
from bertkit.encoders.bert import Bert
from bertkit.errors import BertkitError
from bertkit.model import Model
from bertkit.objectives.nsp import NextSentencePrediction
from bertkit.task_types import TextClassificationTask, from_record
from bertkit.text.wordpiece import WordPiece


@pytest.mark.parametrize("heads", HEADS)
def test_a_saved_model_is_loaded_bit_for_bit(tmp_path: Path, encoder: Bert, tokenizer: WordPiece, heads: str) -> None:
    model = save(tmp_path / "model", encoder, tokenizer, heads)
    random_state = torch.get_rng_state()
    loaded = ModelFolder.open(tmp_path / "model").load_model(HEADS[heads])
    assert isinstance(loaded.encoder, Bert)
    assert loaded.encoder.config == encoder.config
    saved = model.state_dict()
    assert set(loaded.state_dict()) == set(saved)
    pooled = heads == "none" or any(head.reads_pooled for head in model.objectives.values())
    for name, tensor in loaded.state_dict().items():
        if pooled or "pooler" not in name:  # a pooler that no head reads is not saved
            assert torch.equal(tensor, saved[name]), name
    assert all(weight.requires_grad and weight.device.type == "cpu" for weight in loaded.parameters())
    if heads == "none":
        assert torch.equal(torch.get_rng_state(), random_state), "loading an encoder draws nothing"


def test_the_tokenizer_and_the_metadata_are_loaded(tmp_path: Path, encoder: Bert, tokenizer: WordPiece) -> None:
    save(tmp_path / "model", encoder, tokenizer)
    assert ModelFolder.open(tmp_path).tokenizer.fingerprint == tokenizer.fingerprint
    about = ModelFolder.open(tmp_path).metadata
    assert from_record(about["task"]) == CLASSES
    assert about["kind"] == "finetune"
    assert set(about["files"]) == {"config.json", "model.safetensors", *tokenizer_files(tmp_path / "model")}


def tokenizer_files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.name.startswith(("tokenizer", "vocab"))}


def test_a_head_with_its_own_pooling_needs_no_pooler(tmp_path: Path, encoder: Bert, tokenizer: WordPiece) -> None:
    save(tmp_path / "model", encoder, tokenizer, "mean")
    (tmp_path / "model" / "bertkit.json").unlink()
    file = tmp_path / "model" / "model.safetensors"
    tensors = {name: tensor for name, tensor in load_file(file).items() if "pooler" not in name}
    file.unlink()
    save_file(tensors, file)
    ModelFolder.open(tmp_path).load_model(HEADS["mean"])


def test_the_encoder_of_any_model_loads(tmp_path: Path, encoder: Bert, tokenizer: WordPiece) -> None:
    for heads in HEADS:
        save(tmp_path / heads, encoder, tokenizer, heads)
        loaded = ModelFolder.open(tmp_path / heads).load_encoder().state_dict()
        differing = {name for name, weight in encoder.state_dict().items() if not torch.equal(loaded[name], weight)}
        assert all("pooler" in name for name in differing), heads
        assert not differing or heads == "masked words", "only a pooler that no head reads is not saved"


def test_weights_that_have_taken_the_place_of_those_loaded_are_refused(
    tmp_path: Path, encoder: Bert, tokenizer: WordPiece
) -> None:
    """Those of another library too, which have no checksum."""
    save(tmp_path / "m", encoder, tokenizer, "none")
    (tmp_path / "m" / "bertkit.json").unlink()
    opened = ModelFolder.open(tmp_path / "m")
    opened.load_encoder()
    opened.load_encoder()
    tensors = load_file(tmp_path / "m" / "model.safetensors")
    save_file({name: each + 1 for name, each in tensors.items()}, tmp_path / "m" / "model.safetensors")
    with pytest.raises(BertkitError, match=r"model\.safetensors has changed since the model was loaded\. Load it"):
        opened.load_encoder()
    copy.deepcopy(opened).load_encoder()


def test_a_model_with_a_file_without_a_checksum_loads(tmp_path: Path, encoder: Bert, tokenizer: WordPiece) -> None:
    save(tmp_path / "model", encoder, tokenizer)
    (tmp_path / "model" / "README.md").write_text("# A model")
    ModelFolder.open(tmp_path).load_model(CLASSES.objectives)


def test_a_missing_head_is_named(tmp_path: Path, encoder: Bert, tokenizer: WordPiece) -> None:
    save(tmp_path / "model", encoder, tokenizer)
    with pytest.raises(BertkitError, match=r'model\.safetensors has no "mlm" head') as caught:
        ModelFolder.open(tmp_path).load_model(pretraining)
    assert caught.value.exit_code == 3


def test_a_head_with_another_number_of_classes_is_an_error(tmp_path: Path, encoder: Bert, tokenizer: WordPiece) -> None:
    save(tmp_path / "model", encoder, tokenizer)
    other = TextClassificationTask(name="files:t.csv", metric="accuracy", labels=("a", "b"))
    with pytest.raises(BertkitError, match=r"has classifier\.weight as 3 x 14 instead of 2 x 14"):
        ModelFolder.open(tmp_path).load_model(other.objectives)


@pytest.mark.parametrize("task", ["x", ["x"], 3])
def test_a_task_that_is_no_object_is_an_error(
    tmp_path: Path, encoder: Bert, tokenizer: WordPiece, task: object
) -> None:
    save_model(tmp_path / "model", Model(encoder, {}), tokenizer, metadata={"task": task})
    with pytest.raises(BertkitError, match=r"bertkit\.json: the task is no JSON object\."):
        _ = ModelFolder.open(tmp_path).metadata


def test_a_tokenizer_with_more_tokens_than_embeddings_is_an_error(
    tmp_path: Path, encoder: Bert, tokenizer: WordPiece
) -> None:
    """Embeddings of its last tokens would be missing."""
    save(tmp_path / "model", encoder, tokenizer)
    (tmp_path / "model" / "bertkit.json").unlink()
    tokenizer.add_tokens([f"word{number}" for number in range(13)]).save(tmp_path / "model")
    with pytest.raises(BertkitError, match="its tokenizer has 44 tokens and its model 37 embeddings"):
        _ = ModelFolder.open(tmp_path).tokenizer


def test_a_tokenizer_with_fewer_tokens_than_embeddings_is_loaded(
    tmp_path: Path, encoder: Bert, tokenizer: WordPiece
) -> None:
    assert tokenizer.vocab_size == 31 < encoder.config.vocab_size
    save(tmp_path / "model", encoder, tokenizer)
    assert ModelFolder.open(tmp_path).tokenizer.vocab_size == 31


@pytest.mark.parametrize(("tokens", "embeddings"), [(2_800, 3_000), (20_000, 30_522), (30_000, 30_522)])
def test_few_embeddings_may_lack_a_token(tokens: int, embeddings: int) -> None:
    with pytest.raises(BertkitError, match="was cut off") if tokens == 20_000 else nullcontext():
        _check_vocabulary(Path("model"), tokens, embeddings, 0)


def test_a_tokenizer_of_another_model_is_an_error(tmp_path: Path, encoder: Bert, tokenizer: WordPiece) -> None:
    save(tmp_path / "model", encoder, tokenizer)
    (tmp_path / "model" / "bertkit.json").unlink()
    (tmp_path / "model" / "tokenizer.json").unlink()
    vocabulary = tmp_path / "model" / "vocab.txt"
    vocabulary.write_text("\n".join(vocabulary.read_text().splitlines()[:7]))
    with pytest.raises(BertkitError, match="its tokenizer has 7 tokens and its model 37 embeddings"):
        _ = ModelFolder.open(tmp_path).tokenizer


def test_tensors_of_an_objective_that_its_table_does_not_list_keep_their_names(
    tmp_path: Path, encoder: Bert, tokenizer: WordPiece
) -> None:
    class Temperature(NextSentencePrediction):
        """Has a parameter and a buffer that its base class does not have."""

        HF_NAMES = None  # type: ignore[assignment]

        def __init__(self) -> None:
            super().__init__(14)
            self.scale = torch.nn.Parameter(torch.tensor(0.37))
            self.register_buffer("seen", torch.tensor([13]))

    model = Model(encoder, {"next": Temperature()})
    save_model(tmp_path / "model", model, tokenizer, metadata={})
    loaded = ModelFolder.open(tmp_path).load_model(lambda _: {"next": Temperature()})
    for name, tensor in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor), name


# --- what MODEL means -----------------------------------------------------------------------------------------------


def make_model(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    return folder


def test_a_model_folder_and_a_run_folder_are_opened(tmp_path: Path) -> None:
    model = make_model(tmp_path / "runs" / "small" / "model")
    assert ModelFolder.open(model).path == model
    assert ModelFolder.open(model.parent).path == model
    assert ModelFolder.open(str(model.parent)).path == model


def test_the_nearest_name_is_suggested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_model(tmp_path / "runs" / "small" / "model")
    with pytest.raises(BertkitError) as caught:
        ModelFolder.open("runs/smal")
    assert str(caught.value) == "no model at runs/smal. Did you mean runs/small?"
    assert caught.value.exit_code == 2


def test_a_hub_id_is_not_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BertkitError, match="bertkit import google-bert/bert-base-uncased -o bert-base-uncased"):
        ModelFolder.open("google-bert/bert-base-uncased")


def test_the_error_of_a_run_without_a_model_yet(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(BertkitError, match="yet: that run has not ended"):
        ModelFolder.open(tmp_path)


def test_the_error_of_a_folder_without_a_model_and_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match=r"neither config\.json nor model/config\.json"):
        ModelFolder.open(tmp_path)
    (tmp_path / "x.txt").write_text("")
    with pytest.raises(BertkitError, match=r"x\.txt, which is a file\. Name the folder of a model"):
        ModelFolder.open(tmp_path / "x.txt")


def test_paths_may_have_spaces_and_any_letters(tmp_path: Path, encoder: Bert, tokenizer: WordPiece) -> None:
    save(tmp_path / "my run ü 모델" / "model", encoder, tokenizer)
    ModelFolder.open(tmp_path / "my run ü 모델").load_model(CLASSES.objectives)


# --- folders of other makers ----------------------------------------------------------------------------------------


def write_config(folder: Path, **fields: Any) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"model_type": "bert", **fields}))
    return folder


def test_metadata_of_a_folder_of_transformers(tmp_path: Path) -> None:
    labels = {"1": "wet", "0": "dry"}
    write_config(tmp_path, architectures=["BertForSequenceClassification"], id2label=labels, hidden_size=96)
    about = {"architectures": ["BertForSequenceClassification"], "labels": ["dry", "wet"], "several_labels": False}
    assert ModelFolder.open(tmp_path).metadata == about
    assert ModelFolder.open(tmp_path).config.hidden_size == 96


@pytest.mark.parametrize("labels", [{"a": "dry"}, {"1": "dry"}, "dry", 3, ["dry"]])
def test_invalid_labels_are_an_error(tmp_path: Path, labels: Any) -> None:
    write_config(tmp_path, id2label=labels)
    with pytest.raises(BertkitError, match="id2label must map the numbers from 0 on"):
        _ = ModelFolder.open(tmp_path).metadata


def test_a_config_that_is_not_an_object_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("[]")
    for name in ("config", "metadata"):
        with pytest.raises(BertkitError, match="is not the configuration of a model"):
            getattr(ModelFolder.open(tmp_path), name)


def test_missing_weights_are_an_error(tmp_path: Path) -> None:
    write_config(tmp_path)
    with pytest.raises(BertkitError, match=r"has no weights: neither model\.safetensors nor pytorch_model\.bin"):
        ModelFolder.open(tmp_path).load_encoder()


def test_the_error_of_a_sweep_names_its_best_model(tmp_path: Path) -> None:
    (tmp_path / "best").mkdir()
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(BertkitError, match=r"which is a sweep\. Its best model: .*best$"):
        ModelFolder.open(tmp_path)
