"""The tokenizer of the published ModernBERT, built here as its file describes it, against transformers."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from bertkit.errors import BertkitError
from bertkit.text.bert_byte_bpe import BertByteBPE
from bertkit.text.loading import load_tokenizer
from bertkit.text.normalization import BertSpecialTokens

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import transformers

TEXTS = ["The fox and the ox went to the den.", "The ox's den was dry;  the fox's, wet."] * 3


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """NFC, byte-level BPE, runs of spaces as added tokens, then the special tokens of BERT at the end."""
    backend = Tokenizer(models.BPE())
    backend.normalizer = normalizers.NFC()
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    backend.train_from_iterator(TEXTS, trainers.BpeTrainer(vocab_size=290, initial_alphabet=alphabet))
    backend.add_tokens([AddedToken("  ", normalized=False)])
    specials = ["[UNK]", "[CLS]", "[SEP]", "[PAD]"]
    backend.add_special_tokens([*specials, AddedToken("[MASK]", lstrip=True)])
    cls, sep = ((name, backend.token_to_id(name)) for name in ("[CLS]", "[SEP]"))
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[cls, sep]
    )
    backend.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def test_ids_are_those_of_transformers_and_offsets_exclude_spaces(folder: Path) -> None:
    ours = load_tokenizer(folder)
    assert isinstance(ours, BertByteBPE)
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    for text in ("The fox was  dry.", "Ein Café, 東京", ""):
        ids = [ours.start_id, *ours.encode(text).ids, ours.end_id]
        assert ids == theirs(text).input_ids
    text = "The fox went"
    assert [text[start:end] for start, end in ours.encode(text).offsets][-1] == "went"
    assert ours.decode(ours.encode(text).ids) == text


def test_special_tokens_in_a_text_are_text_unless_asked_for(folder: Path) -> None:
    ours = BertByteBPE.load(folder)
    assert ours.mask_id not in ours.encode("the [MASK] den").ids
    assert ours.encode("the [MASK] den", specials=True).ids.count(ours.mask_id) == 1


def test_a_saved_tokenizer_is_the_same(folder: Path, tmp_path: Path) -> None:
    ours = BertByteBPE.load(folder)
    ours.save(tmp_path / "again")
    again = load_tokenizer(tmp_path / "again")
    assert again.fingerprint == ours.fingerprint
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "again")
    assert theirs("the fox", "an ox").input_ids[0] == ours.cls_id
    assert (theirs.mask_token_id, theirs.pad_token_id) == (ours.mask_id, ours.pad_id)


@pytest.mark.parametrize("special", [False, True])
def test_tokens_that_another_file_adds_are_saved(folder: Path, tmp_path: Path, special: bool) -> None:
    """``tokenizer_config.json`` may add tokens that ``tokenizer.json`` lacks; they have embeddings of their own."""
    plain = load_tokenizer(folder)
    added = {str(plain.vocab_size): {"content": "zebra", "normalized": False, "special": special}}
    names = {f"{name}_token": token for name, token in BertSpecialTokens()._asdict().items()}
    config = {**names, "added_tokens_decoder": added, "tokenizer_class": "PreTrainedTokenizerFast"}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    ours = BertByteBPE.load(folder)
    ours.save(tmp_path / "again")
    again = load_tokenizer(tmp_path / "again")
    ids = ours.encode("a zebra fox").ids
    assert plain.vocab_size in ids
    assert again.encode("a zebra fox").ids == ids
    assert transformers.AutoTokenizer.from_pretrained(tmp_path / "again").encode("a zebra fox")[1:-1] == ids
    assert plain.fingerprint != ours.fingerprint == again.fingerprint == BertByteBPE.load(folder).fingerprint


def test_truncation_and_padding_of_a_file_are_not_saved(folder: Path, tmp_path: Path) -> None:
    """``prepare`` encodes with the saved file, and would lose the rest of every text."""
    content = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    content["truncation"] = {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    BertByteBPE.load(folder).save(tmp_path / "saved")
    saved = json.loads((tmp_path / "saved" / "tokenizer.json").read_text(encoding="utf-8"))
    assert saved["truncation"] is None
    assert saved["padding"] is None


def test_a_file_without_a_normalizer_has_a_fingerprint(folder: Path) -> None:
    content = json.loads((folder / "tokenizer.json").read_text())
    del content["normalizer"]
    (folder / "tokenizer.json").write_text(json.dumps(content))
    assert len(load_tokenizer(folder).fingerprint) == 64


@pytest.mark.parametrize("model", [None, [], {"type": "BPE", "vocab": None, "merges": []}])
def test_a_file_without_a_vocabulary_is_one_line(folder: Path, model: object) -> None:
    content = json.loads((folder / "tokenizer.json").read_text())
    (folder / "tokenizer.json").write_text(json.dumps({**content, "model": model}))
    with pytest.raises(BertkitError, match="is not a tokenizer"):
        BertByteBPE.load(folder)


def test_subwords_that_begin_a_word_have_a_space(folder: Path) -> None:
    ours = BertByteBPE.load(folder)
    (fox,) = (id for id in range(ours.vocab_size) if ours.id_to_token(id) == "Ġfox")
    assert ours.surface_form(fox) == ("fox", False)
    assert ours.continues_word[ours.encode("x").ids[0]]


def test_another_kind_of_tokenizer_is_an_error(folder: Path) -> None:
    file = folder / "tokenizer.json"
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, "pre_tokenizer": {"type": "Whitespace"}}))
    with pytest.raises(BertkitError, match="does not split text into bytes"):
        BertByteBPE.load(folder)
