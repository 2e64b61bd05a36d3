from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from bertkit.errors import BertkitError
from bertkit.text.wordpiece import WordPiece, train
from bertkit.text.wordpiece_files import guess_case

SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ENGLISH = ["The quick brown fox jumps over the lazy dog, naïvely.", "A fox's résumé: quick jumps; lazier dogs!"] * 3
VOCABULARY = [*SPECIAL_TOKENS, "the", "fox", "##es", "an", ",", ".", "[", "]", "mask", "中", "é", "Fox"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An uncased tokenizer as other programs save it: ``vocab.txt`` and ``tokenizer_config.json``."""
    write_vocabulary(tmp_path, VOCABULARY)
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true}', encoding="utf-8")
    return tmp_path


def write_vocabulary(folder: Path, tokens: list[str]) -> Path:
    path = folder / "vocab.txt"
    path.write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8", newline="")
    return path


def tokens_of(tokenizer: WordPiece, text: str) -> list[str]:
    return [tokenizer.id_to_token(id) for id in tokenizer.encode(text).ids]


def trained_description(folder: Path) -> dict[str, Any]:
    """The content of ``tokenizer.json`` of a trained tokenizer."""
    train(ENGLISH, vocab_size=99).save(folder / "trained")
    description: dict[str, Any] = json.loads((folder / "trained" / "tokenizer.json").read_text(encoding="utf-8"))
    return description


@pytest.mark.parametrize("lowercase", [True, False])
def test_a_saved_copy_has_the_same_fingerprint_where_accents_follow_upper_case(
    folder: Path, tmp_path: Path, lowercase: bool
) -> None:
    description = trained_description(folder)
    description["normalizer"] = {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": True,
        "strip_accents": None,
        "lowercase": lowercase,
    }
    file = tmp_path / "theirs" / "tokenizer.json"
    file.parent.mkdir()
    file.write_text(json.dumps(description), encoding="utf-8")
    loaded = WordPiece.load(file.parent)
    loaded.save(tmp_path / "saved")
    assert WordPiece.load(tmp_path / "saved").fingerprint == loaded.fingerprint
    assert (loaded.pre_tokenize("é") == ["e"]) is lowercase


def test_a_file_and_its_folder_give_the_same_tokenizer(folder: Path, tmp_path: Path) -> None:
    loaded = WordPiece.load(folder)
    assert WordPiece.load(folder / "vocab.txt").fingerprint == loaded.fingerprint
    loaded.save(tmp_path / "saved")
    assert WordPiece.load(str(tmp_path / "saved" / "tokenizer.json")).fingerprint == loaded.fingerprint


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({}, ["Été", ",", "中", "中"]),  # the vocabulary has a token with upper case
        ({"do_lower_case": True}, ["ete", ",", "中", "中"]),
        ({"do_lower_case": True, "strip_accents": False}, ["été", ",", "中", "中"]),
        ({"do_lower_case": False, "strip_accents": True}, ["Ete", ",", "中", "中"]),
        ({"do_lower_case": True, "strip_accents": None, "tokenize_chinese_chars": False}, ["ete", ",", "中中"]),
    ],
)
def test_flags_of_the_config_are_applied(
    folder: Path, tmp_path: Path, config: dict[str, Any], words: list[str]
) -> None:
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    loaded = WordPiece.load(folder)
    assert loaded.pre_tokenize("Été,中中") == words
    loaded.save(tmp_path / "saved")
    assert WordPiece.load(tmp_path / "saved").pre_tokenize("Été,中中") == words
    (tmp_path / "saved" / "tokenizer.json").unlink()
    assert WordPiece.load(tmp_path / "saved").pre_tokenize("Été,中中") == words


def test_flags_override_the_bert_normalizer_of_tokenizer_json(tmp_path: Path) -> None:
    description = trained_description(tmp_path)
    description["normalizer"] = {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": True,
        "strip_accents": None,
        "lowercase": True,
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(description), encoding="utf-8")
    assert WordPiece.load(tmp_path).pre_tokenize("Été") == ["ete"]
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}', encoding="utf-8")
    assert WordPiece.load(tmp_path).pre_tokenize("Été") == ["Été"]


def test_a_word_longer_than_the_limit_is_unknown(folder: Path) -> None:
    write_vocabulary(folder, [*SPECIAL_TOKENS, "a", "##a"])
    assert WordPiece.load(folder).unk_id not in WordPiece.load(folder).encode("a" * 200).ids
    assert tokens_of(WordPiece.load(folder), "a" * 201) == ["[UNK]"]
    (folder / "tokenizer_config.json").write_text('{"max_input_chars_per_word": 100}', encoding="utf-8")
    assert tokens_of(WordPiece.load(folder), "a" * 101) == ["[UNK]"]


def test_special_tokens_may_have_other_names(tmp_path: Path) -> None:
    names = {"pad_token": "<pad>", "unk_token": {"content": "<unk>", "lstrip": False}, "cls_token": "<s>"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(names), encoding="utf-8")
    loaded = WordPiece.load(write_vocabulary(tmp_path, ["a", "[MASK]", "[SEP]", "<s>", "<unk>", "<pad>"]))
    assert (loaded.pad_id, loaded.unk_id, loaded.cls_id, loaded.sep_id, loaded.mask_id) == (5, 4, 3, 2, 1)
    assert loaded.encode("b").ids == [4]
    loaded.save(tmp_path / "saved")
    assert WordPiece.load(tmp_path / "saved").fingerprint == loaded.fingerprint
    assert WordPiece.load(tmp_path / "saved").cls_id == 3


def test_a_byte_order_mark_and_windows_line_ends_are_ignored(tmp_path: Path) -> None:
    text = "\ufeff" + "\r\n".join(VOCABULARY) + "\r\n"
    (tmp_path / "vocab.txt").write_bytes(text.encode())
    assert WordPiece.load(tmp_path).vocabulary == VOCABULARY


def test_a_token_may_be_white_space_of_another_script(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("\n".join([*VOCABULARY, "\u3000"]), encoding="utf-8")
    assert WordPiece.load(tmp_path).vocabulary == [*VOCABULARY, "\u3000"]


def test_a_vocabulary_without_mask_and_padding_splits_texts(tmp_path: Path) -> None:
    """It is refused where a mask is needed only; a saved copy does not name tokens that the vocabulary lacks."""
    (tmp_path / "vocab.txt").write_text("[UNK]\n[CLS]\n[SEP]\na\n##b\n", encoding="utf-8")
    tokenizer = WordPiece.load(tmp_path)
    assert tokenizer.encode("ab [MASK] [PAD]").ids[:2] == [3, 4]
    assert tokenizer.mask_id == tokenizer.pad_id == tokenizer.unk_id == 0
    tokenizer.save(tmp_path / "copy")
    config = json.loads((tmp_path / "copy" / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert config["sep_token"] == "[SEP]" and not {"mask_token", "pad_token"} & set(config)
    assert WordPiece.load(tmp_path / "copy").fingerprint == tokenizer.fingerprint
    assert len(AutoTokenizer.from_pretrained(tmp_path / "copy")) == 5


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\nb\n", r"has no \[UNK\], \[CLS\], \[SEP\]; BERT needs"),
        ("[PAD]\n[UNK]\n[CLS]\n[MASK]\na\n", r"vocab.txt has no \[SEP\]; BERT needs"),
        ("[PAD]\n\n[UNK]\n", "line 2 is blank"),
        ("[PAD]\n[UNK]\n\n", "line 3 is blank"),
        ("[PAD]\n \t\n[UNK]\n", "line 2 is blank"),
        ("", "line 1 is blank"),
        ("[PAD]\na\nb\na\n", 'line 4: "a" is already in line 2'),
        (b"[PAD]\n\xff\xfea\n", "not UTF-8 text: byte 6 is 0xff"),
    ],
)
def test_a_bad_vocabulary_is_an_error(tmp_path: Path, content: str | bytes, message: str) -> None:
    (tmp_path / "vocab.txt").write_bytes(content if isinstance(content, bytes) else content.encode())
    fail_to_load(tmp_path, message)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not readable JSON"),
        ("[]", 'it has no "model"'),
        ("{}", 'it has no "model"'),
        ('{"model": {"type": "BPE", "vocab": {}, "merges": []}}', "is a BPE tokenizer; BERT's is WordPiece"),
        ('{"model": {"type": "WordPiece", "vocab": 3}}', "is not a tokenizer"),
    ],
)
def test_a_bad_tokenizer_json_is_an_error(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "tokenizer.json").write_text(content, encoding="utf-8")
    fail_to_load(tmp_path, message)


def test_ids_with_a_gap_are_an_error(tmp_path: Path) -> None:
    description = trained_description(tmp_path)
    description["model"]["vocab"]["gap"] = 137
    (tmp_path / "tokenizer.json").write_text(json.dumps(description), encoding="utf-8")
    size = len(description["model"]["vocab"])
    fail_to_load(tmp_path, f"has {size} tokens whose ids are not 0 to {size - 1}")


@pytest.mark.parametrize(
    ("content", "message"),
    [("[1]", "is not a JSON object"), ('{"mask_token": 4}', '"mask_token" is 4; it must be a token')],
)
def test_a_bad_config_is_an_error(folder: Path, content: str, message: str) -> None:
    (folder / "tokenizer_config.json").write_text(content, encoding="utf-8")
    fail_to_load(folder, message)


def test_a_missing_tokenizer_is_an_error(tmp_path: Path) -> None:
    fail_to_load(tmp_path, "has neither tokenizer.json nor vocab.txt")
    fail_to_load(tmp_path / "nowhere", "nowhere: it does not exist")


def fail_to_load(path: Path, message: str) -> None:
    with pytest.raises(BertkitError, match=message) as caught:
        WordPiece.load(path)
    assert caught.value.exit_code == 3
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "lowercase"),
    [
        ("uncased_L-12_H-768_A-12", True),
        ("cased_L-12_H-768_A-12", False),
        ("wwm_uncased_L-24_H-1024_A-16", True),
        ("wwm_cased_L-24_H-1024_A-16", False),
        ("multilingual_L-12_H-768_A-12", True),
        ("multi_cased_L-12_H-768_A-12", False),
        ("chinese_L-12_H-768_A-12", True),
    ],
)
def test_the_name_of_a_folder_of_google_says_whether_it_is_cased(tmp_path: Path, name: str, lowercase: bool) -> None:
    for words in (["fox", "Fox"], ["fox", "foxes"]):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        file = write_vocabulary(folder, [*SPECIAL_TOKENS, *words])
        assert guess_case(file) == (lowercase, f"the name of its folder, {name}")
        assert (tokens_of(WordPiece.load(folder), "Fox") == ["fox"]) is lowercase or "Fox" not in words


def test_a_vocabulary_without_a_telling_name_is_cased_by_its_subwords(tmp_path: Path) -> None:
    words = [f"word{number}" for number in range(1_000)]
    few = write_vocabulary(tmp_path, [*SPECIAL_TOKENS, *words, "Ⅱ"])
    assert guess_case(few) == (True, "1 of its 1,001 subwords have upper case")
    many = write_vocabulary(tmp_path, [*SPECIAL_TOKENS, *words, *map(str.capitalize, words[:9])])
    assert guess_case(many) == (False, "9 of its 1,009 subwords have upper case")


def test_published_vocabularies_are_told_apart(data_folder: Path) -> None:
    found = {}
    for file in sorted((data_folder / "vocab").rglob("vocab.txt")):
        subwords = file.read_text(encoding="utf-8").split("\n")
        found[len(subwords) - 1] = guess_case(file)[0]
    assert found.pop(30_522)
    assert found
    assert not any(found.values())
