"""Tokens that a folder adds to its vocabulary are found in texts as by transformers, and survive saving."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.text.test_wordpiece_files import VOCABULARY, write_vocabulary
from transformers import AddedToken, AutoTokenizer, BertTokenizer, PreTrainedTokenizerFast, RobertaTokenizer

from bertkit.errors import BertkitError
from bertkit.text import bpe, byte_bpe
from bertkit.text.loading import load_tokenizer
from bertkit.text.wordpiece import WordPiece

TEXTS = ["the [E1] fox [/E1], an[E1]fox", "[E1]", "the e1 [e1] <new> the<new>fox", "The Über fox; STRASSE the STRASSEN"]


def assert_same(folder: Path, saved: Path) -> None:
    """The tokenizer in ``folder``, and what bertkit saves of it, give the ids of transformers."""
    expected = AutoTokenizer.from_pretrained(folder)
    ours = load_tokenizer(folder)
    ours.save(saved)
    for tokenizer in (ours, load_tokenizer(saved)):
        assert [tokenizer.encode(text).ids for text in TEXTS] == _ids(expected)
        assert tokenizer.fingerprint == ours.fingerprint
    again = AutoTokenizer.from_pretrained(saved)
    assert _ids(again) == _ids(expected)
    assert set(again.all_special_tokens) >= set(expected.all_special_tokens)
    assert (again.padding_side, again.truncation_side) == (expected.padding_side, expected.truncation_side)
    assert again.extra_special_tokens == expected.extra_special_tokens


def _ids(tokenizer: Any) -> list[list[int]]:
    ids: list[list[int]] = tokenizer(TEXTS, add_special_tokens=False)["input_ids"]
    return ids


def write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")


def add(tokenizer: Any) -> Any:
    """Special tokens, one of them in the vocabulary, and ordinary ones with flags."""
    tokenizer.add_special_tokens({"extra_special_tokens": ["[E1]", "[/E1]", "fox"]})
    tokenizer.add_tokens([AddedToken("<new>", lstrip=True), AddedToken("STRASSE", single_word=True), "über"])
    return tokenizer


def save_bert(folder: Path) -> None:
    write_vocabulary(folder, VOCABULARY)
    vocabulary = {token: id for id, token in enumerate(VOCABULARY)}
    add(BertTokenizer(vocabulary, padding_side="left", truncation_side="left")).save_pretrained(folder)


def save_generic(folder: Path) -> None:
    vocabulary = {token: id for id, token in enumerate(VOCABULARY)}
    backend = BertTokenizer(vocabulary).backend_tokenizer
    special = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    add(PreTrainedTokenizerFast(tokenizer_object=backend, **special)).save_pretrained(folder)


def save_decoder(folder: Path) -> None:
    """As transformers 4 saves a tokenizer without ``tokenizer.json``."""
    write_vocabulary(folder, VOCABULARY)
    flags = {"lstrip": False, "rstrip": True, "single_word": False, "normalized": False, "special": True}
    size = len(VOCABULARY)
    decoder = {
        **{str(id): {**flags, "content": token} for id, token in enumerate(VOCABULARY[:5])},
        str(size): {**flags, "content": "[E1]"},
        str(size + 1): {**flags, "content": "<new>", "special": False, "normalized": True},
    }
    config = {"tokenizer_class": "BertTokenizer", "do_lower_case": True, "additional_special_tokens": ["[E1]"]}
    write_json(folder / "tokenizer_config.json", {**config, "added_tokens_decoder": decoder})


def save_oldest(folder: Path) -> None:
    """As transformers 3 saves a tokenizer."""
    write_vocabulary(folder, VOCABULARY)
    write_json(folder / "added_tokens.json", {"<new>": len(VOCABULARY) + 1, "[E1]": len(VOCABULARY)})
    further = {"additional_special_tokens": ["[E1]"]}
    write_json(folder / "special_tokens_map.json", {**further, "mask_token": "[MASK]"})
    write_json(folder / "tokenizer_config.json", {**further, "tokenizer_class": "BertTokenizer", "do_lower_case": True})


def save_roberta(folder: Path) -> None:
    byte_bpe.train(TEXTS * 3, vocab_size=300).save(folder)
    add(RobertaTokenizer.from_pretrained(folder)).save_pretrained(folder)


def save_gpt(folder: Path) -> None:
    bpe.train(TEXTS * 3, vocab_size=60).save(folder)
    add(AutoTokenizer.from_pretrained(folder)).save_pretrained(folder)


@pytest.mark.parametrize("save", [save_bert, save_generic, save_decoder, save_oldest, save_roberta, save_gpt])
def test_added_tokens_are_found_as_by_transformers(tmp_path: Path, save: Callable[[Path], None]) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    save(folder)
    assert_same(folder, tmp_path / "ours")


def test_added_special_tokens_are_not_split_and_the_model_s_own_are_text(tmp_path: Path) -> None:
    save_bert(tmp_path)
    tokenizer = load_tokenizer(tmp_path)
    tokens = [tokenizer.id_to_token(id) for id in tokenizer.encode("the [E1] [MASK]").ids]
    assert tokens == ["the", "[E1]", "[", "mask", "]"]
    assert tokenizer.encode("[MASK]", specials=True).ids == [tokenizer.mask_id]


def test_the_map_of_special_tokens_alone_is_read(tmp_path: Path) -> None:
    write_vocabulary(tmp_path, VOCABULARY)
    write_json(tmp_path / "special_tokens_map.json", {"additional_special_tokens": ["[E1]"]})
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer.encode("the[E1]").ids == [VOCABULARY.index("the"), len(VOCABULARY)]
    tokenizer.save(tmp_path / "saved")
    assert AutoTokenizer.from_pretrained(tmp_path / "saved").extra_special_tokens == ["[E1]"]


def test_named_tokens_outside_of_the_vocabulary_are_ignored(tmp_path: Path) -> None:
    write_vocabulary(tmp_path, VOCABULARY)
    write_json(tmp_path / "tokenizer_config.json", {"bos_token": "<s>", "eos_token": "fox"})
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer.vocab_size == len(VOCABULARY)
    assert tokenizer.encode("thefox").ids[-1] == VOCABULARY.index("fox")


def test_tokens_with_names_survive(tmp_path: Path) -> None:
    write_vocabulary(tmp_path, VOCABULARY)
    write_json(tmp_path / "tokenizer_config.json", {"extra_special_tokens": {"entity_token": "[E1]"}})
    WordPiece.load(tmp_path).save(tmp_path / "saved")
    config = json.loads((tmp_path / "saved" / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert config["extra_special_tokens"] == {"entity_token": "[E1]"}
    assert AutoTokenizer.from_pretrained(tmp_path / "saved").entity_token == "[E1]"


def test_tokens_that_are_added_later_keep_the_added_ones(tmp_path: Path) -> None:
    save_bert(tmp_path)
    larger = WordPiece.load(tmp_path).add_tokens(["C++"])
    assert larger.id_to_token(larger.encode("[E1]").ids[0]) == "[E1]"


@pytest.mark.parametrize("token", [7, {"id": 7}, "", {"content": 7}])
def test_a_token_without_a_spelling_is_an_error(tmp_path: Path, token: object) -> None:
    write_vocabulary(tmp_path, VOCABULARY)
    write_json(tmp_path / "tokenizer_config.json", {"additional_special_tokens": [token]})
    with pytest.raises(BertkitError, match="an added token of its tokenizer is"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize(("lstrip", "kept"), [(True, ""), (False, " ")])
def test_the_mask_takes_the_space_before_it_where_its_flag_says_so(tmp_path: Path, lstrip: bool, kept: str) -> None:
    byte_bpe.train(TEXTS * 3, vocab_size=300).save(tmp_path)
    description = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))
    for token in description["added_tokens"]:
        token["lstrip"] = lstrip and token["content"] == "<mask>"
    write_json(tmp_path / "tokenizer.json", description)
    ours, expected = load_tokenizer(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    ids = ours.encode("the <mask> fox", specials=True).ids
    assert ids == expected("the <mask> fox", add_special_tokens=False)["input_ids"]
    assert ours.decode(ids) == f"the{kept}<mask> fox"


@pytest.mark.parametrize("name", ["BertTokenizer", "PreTrainedTokenizerFast"])
def test_the_generic_class_takes_its_rules_from_tokenizer_json_alone(tmp_path: Path, name: str) -> None:
    save_generic(tmp_path)
    config = json.loads((tmp_path / "tokenizer_config.json").read_text(encoding="utf-8"))
    write_json(tmp_path / "tokenizer_config.json", {**config, "tokenizer_class": name, "do_lower_case": False})
    text = "the Fox fox"
    expected = AutoTokenizer.from_pretrained(tmp_path)(text, add_special_tokens=False)["input_ids"]
    assert load_tokenizer(tmp_path).encode(text).ids == expected
    assert (VOCABULARY.index("Fox") in expected) == (name == "BertTokenizer")
