"""Google's folders: names, heads, several checkpoints, and what is not a BERT."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.checkpoint.conftest import SUBWORDS
from tests.checkpoint.tensorflow_writer import write_checkpoint, write_google_folder

from bertkit.checkpoint.crc32c import crc32c
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.checkpoint.tensorflow import find_index, is_tensorflow, list_variables
from bertkit.checkpoint.tensorflow_bundle import Bundle
from bertkit.data.features import assemble, collate
from bertkit.errors import BertkitError
from bertkit.inference.conversion import convert, load_whole_model
from bertkit.inference.pipeline import load

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import transformers

NAME = "uncased_L-3_H-28_A-4"


def make_twins(folder: Path, name: str = "BertForPreTraining", **changes: Any) -> tuple[Path, Path]:
    """The same random model as Google stores it and as Hugging Face does."""
    sizes = {"hidden_size": 28, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 37}
    shape = transformers.BertConfig(vocab_size=len(SUBWORDS), max_position_embeddings=41, **sizes, **changes)
    model = getattr(transformers, name)(shape).eval()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.2)
    model.save_pretrained(folder / "hf")
    (folder / "hf" / "vocab.txt").write_text("\n".join(SUBWORDS))
    write_google_folder(folder / NAME, model.state_dict(), shape.to_dict(), SUBWORDS, moments=True)
    return folder / NAME, folder / "hf"


@pytest.mark.parametrize(
    ("name", "heads"),
    [
        ("BertModel", []),
        ("BertForMaskedLM", ["mlm"]),
        ("BertForPreTraining", ["mlm", "nsp"]),
        ("BertForSequenceClassification", ["class"]),
        ("BertForQuestionAnswering", ["span"]),
    ],
)
@pytest.mark.parametrize("activation", ["gelu", "gelu_new"])
def test_a_folder_of_google_has_the_weights_of_its_twin(
    tmp_path: Path, name: str, heads: list[str], activation: str
) -> None:
    google, hf = make_twins(tmp_path, name, hidden_act=activation, num_labels=2 if name.endswith("Answering") else 3)
    ours, theirs = (load_whole_model(ModelFolder.open(each)) for each in (google, hf))
    assert list(ours.objectives) == list(theirs.objectives) == heads
    assert ModelFolder.open(google).config == ModelFolder.open(hf).config
    assert ours.state_dict().keys() == theirs.state_dict().keys()
    for key, weight in theirs.state_dict().items():
        if key.startswith("encoder.pooler") and name in ("BertForQuestionAnswering", "BertForMaskedLM"):
            continue  # neither file has one
        assert torch.equal(ours.state_dict()[key], weight), key


def test_every_verb_reads_a_folder_of_google(tmp_path: Path) -> None:
    google, hf = make_twins(tmp_path)
    for ours, theirs in zip(load(google).fill("a b [MASK] c")[0], load(hf).fill("a b [MASK] c")[0], strict=True):
        assert ours.word == theirs.word
        assert ours.probability == pytest.approx(theirs.probability, abs=1e-5)


def test_a_classifier_has_numbered_labels(tmp_path: Path) -> None:
    google, _ = make_twins(tmp_path, "BertForSequenceClassification", num_labels=3)
    assert load(google).task.record()["labels"] == ["LABEL_0", "LABEL_1", "LABEL_2"]
    convert(ModelFolder.open(google), tmp_path / "out")
    assert str(load(tmp_path / "out").classify("a b").label).startswith("LABEL_")


def test_the_report_accounts_for_every_tensor(tmp_path: Path) -> None:
    google, hf = make_twins(tmp_path)
    found = convert(ModelFolder.open(google), tmp_path / "out")
    names = list_variables(google)
    state = transformers.BertForPreTraining.from_pretrained(hf).state_dict()
    tied = 2  # the output layer of the masked language model
    assert len(names.model) == len(state) - tied
    assert len(names.optimizer) == 2 * len(names.model) + 1
    assert (names.unknown, found.left_out) == ((), ())
    assert found.notes == (
        f"bert_model.ckpt.index: {len(names.model)} tensors, whose checksums are right",
        f"left out: {len(names.optimizer)} tensors of the optimizer",
        f"vocab.txt is read as uncased: the name of its folder, {NAME}",
    )


def test_tensors_of_other_heads_are_listed_and_left_out(tmp_path: Path) -> None:
    google, _ = make_twins(tmp_path, "BertModel")
    tensors = {"my_head/kernel": torch.ones(3, 5)}
    write_checkpoint(google, {**tensors, **read_model(google)})
    found = convert(ModelFolder.open(google), tmp_path / "out")
    assert found.left_out == ("my_head/kernel",)


def read_model(google: Path) -> dict[str, torch.Tensor]:
    bundle = Bundle(find_index(google))
    return bundle.read(list_variables(google).model)


def test_a_missing_tensor_is_named(tmp_path: Path) -> None:
    google, _ = make_twins(tmp_path, "BertModel")
    tensors = read_model(google)
    del tensors["bert/encoder/layer_1/output/dense/kernel"]
    write_checkpoint(google, tensors)
    with pytest.raises(BertkitError, match=r"bert_model\.ckpt\.index lacks encoder\.layer\.1\.output\.dense\.weight"):
        load_whole_model(ModelFolder.open(google))


def test_a_tensor_that_no_bert_has_is_named(tmp_path: Path) -> None:
    google, _ = make_twins(tmp_path, "BertModel")
    write_checkpoint(google, {**read_model(google), "bert/encoder/group_0/kernel": torch.ones(3, 5)})
    with pytest.raises(BertkitError, match=r"has 1 tensors that no BERT of Google has, such as bert/encoder/group_0"):
        load_whole_model(ModelFolder.open(google))


def test_a_transposed_tensor_is_an_error(tmp_path: Path) -> None:
    google, _ = make_twins(tmp_path, "BertModel")
    tensors = read_model(google)
    kernel = "bert/encoder/layer_1/intermediate/dense/kernel"
    write_checkpoint(google, {**tensors, kernel: tensors[kernel].T})
    with pytest.raises(BertkitError, match=r"intermediate\.dense\.weight as 28 x 37 instead of 37 x 28"):
        load_whole_model(ModelFolder.open(google))


def test_a_damaged_moment_of_the_optimizer_is_found(tmp_path: Path) -> None:
    google, _ = make_twins(tmp_path, "BertModel")
    (data,) = google.glob("*.data*")
    content = bytearray(data.read_bytes())
    content[-1] ^= 1  # global_step, the last name
    data.write_bytes(content)
    with pytest.raises(BertkitError, match="the checksum of global_step is wrong"):
        load_whole_model(ModelFolder.open(google))


def test_the_file_checkpoint_names_one_of_several(tmp_path: Path) -> None:
    for step in (7, 13, 99):
        write_checkpoint(tmp_path, {"bert/x": torch.tensor(step)}, name=f"model.ckpt-{step}")
    with pytest.raises(BertkitError, match=r"has 3 checkpoints: model\.ckpt-13, model\.ckpt-7, model\.ckpt-99"):
        find_index(tmp_path)
    lines = ['model_checkpoint_path: "/home/me/run/model.ckpt-13"', 'all_model_checkpoint_paths: "model.ckpt-7"']
    (tmp_path / "checkpoint").write_text("\n".join(lines) + "\n")
    assert find_index(tmp_path).name == "model.ckpt-13.index"
    for named in ("model.ckpt-8", "../model.ckpt-7/..", ""):
        (tmp_path / "checkpoint").write_text(f'model_checkpoint_path: "{named}"\n')
        with pytest.raises(BertkitError, match="names no checkpoint of"):
            find_index(tmp_path)


def test_a_training_run_without_a_configuration_says_what_to_copy(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, {"a": torch.ones(2)}, name="model.ckpt-7")
    assert is_tensorflow(tmp_path)
    with pytest.raises(BertkitError, match=r"no bert_config\.json: copy that of the pre-trained model"):
        assert ModelFolder.open(tmp_path).config


def test_a_configuration_without_a_checkpoint_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "bert_config.json").write_text("{}")
    with pytest.raises(BertkitError, match=r"has no checkpoint, NAME\.index"):
        assert ModelFolder.open(tmp_path).config


@pytest.mark.parametrize("change", [{"hidden_size": 10**9}, {"num_hidden_layers": 10**6}, {"vocab_size": 10**12}])
def test_a_configuration_that_asks_for_terabytes_is_one_line(tmp_path: Path, change: dict[str, int]) -> None:
    google, _ = make_twins(tmp_path, "BertModel")
    config = json.loads((google / "bert_config.json").read_text())
    (google / "bert_config.json").write_text(json.dumps({**config, **change}))
    with pytest.raises(BertkitError, match=r"bert_config\.json|bert_model"):
        load_whole_model(ModelFolder.open(google))


def test_real_weights_are_those_of_the_twin(tmp_path: Path, minilm: Path) -> None:
    """A published model with the names of Google: states of both are equal."""
    model = transformers.BertModel.from_pretrained(minilm).eval()
    vocabulary = (minilm / "vocab.txt").read_text(encoding="utf-8").split("\n")
    vocabulary = [word for word in vocabulary if word]
    google = tmp_path / "uncased_L-6_H-384_A-12"
    write_google_folder(google, model.state_dict(), model.config.to_dict(), vocabulary, checksum=crc32c)
    ours, theirs = ModelFolder.open(google), ModelFolder.open(minilm)
    text = "Nobody in the café knew why the old clock had stopped at a quarter past nine."
    assert ours.tokenizer.encode(text) == theirs.tokenizer.encode(text)
    state, expected = ours.load_encoder().state_dict(), theirs.load_encoder().state_dict()
    assert all(torch.equal(state[name], weight) for name, weight in expected.items())
    batch = collate([assemble(ours.tokenizer, text, max_length=64)], pad_id=ours.tokenizer.pad_id)
    with torch.no_grad():
        found = ours.load_encoder().eval()(batch).hidden_states
        wanted = model(input_ids=batch.input_ids, token_type_ids=batch.segment_ids).last_hidden_state
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5)
