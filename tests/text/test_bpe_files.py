from __future__ import annotations

import json
from pathlib import Path

import pytest

from bertkit.errors import BertkitError
from bertkit.text.bpe_files import HUGGING_FACE, OPENAI, read_folder, vocabulary_and_merges

VOCABULARY = {"f": 0, "o": 1, "x": 2, "fo": 3, "fox": 4}
MERGES = [("f", "o"), ("fo", "x")]


def write(folder: Path, names: tuple[str, str], merges: str) -> None:
    vocabulary_file, merges_file = names
    (folder / vocabulary_file).write_text(json.dumps(VOCABULARY), encoding="utf-8")
    (folder / merges_file).write_text(merges, encoding="utf-8")


@pytest.mark.parametrize("names", [HUGGING_FACE, OPENAI])
@pytest.mark.parametrize("version", ["", "#version: 0.2\n"])
def test_a_vocabulary_with_merges(tmp_path: Path, names: tuple[str, str], version: str) -> None:
    write(tmp_path, names, f"{version}f o\nfo x\n")
    found = read_folder(tmp_path, "GPT", (HUGGING_FACE, OPENAI))
    assert (found.vocabulary, found.merges) == (VOCABULARY, MERGES)
    assert (found.file, found.rules, found.added.tokens) == (tmp_path / names[0], {}, ())


@pytest.mark.parametrize("merges", [["f o", "fo x"], [["f", "o"], ["fo", "x"]]], ids=["strings", "lists"])
def test_tokenizer_json_takes_precedence(tmp_path: Path, merges: list[str]) -> None:
    write(tmp_path, HUGGING_FACE, "x x\n")
    description = {
        "model": {"vocab": VOCABULARY, "merges": merges, "end_of_word_suffix": ""},
        "added_tokens": [{"id": 5, "content": "<pad>"}],
        "normalizer": None,
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(description), encoding="utf-8")
    found = read_folder(tmp_path, "GPT", (HUGGING_FACE,))
    assert (found.vocabulary, found.merges) == ({**VOCABULARY, "<pad>": 5}, MERGES)
    assert [token.content for token in found.added.tokens] == ["<pad>"]
    assert found.rules == {"normalizer": None, "pre_tokenizer": None, "end_of_word_suffix": None}


def test_written_files_are_read_back(tmp_path: Path) -> None:
    files = vocabulary_and_merges({"model": {"vocab": VOCABULARY, "merges": [["f", "o"], ["fo", "x"]]}})
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = read_folder(tmp_path, "RoBERTa", (HUGGING_FACE,))
    assert (found.vocabulary, found.merges) == (VOCABULARY, MERGES)


@pytest.mark.parametrize("merge", ["fox", "f o x", ["f"], 3])
def test_a_merge_needs_two_tokens(tmp_path: Path, merge: object) -> None:
    description = {"model": {"vocab": VOCABULARY, "merges": ["f o", merge]}}
    (tmp_path / "tokenizer.json").write_text(json.dumps(description), encoding="utf-8")
    with pytest.raises(BertkitError, match=r"merge 2: .* is not a merge of two tokens"):
        read_folder(tmp_path, "GPT", ())


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"merges": []}, "is not a vocabulary"),
        ({"merges": [], "vocab": None}, "is not a vocabulary"),
        ({"merges": [], "vocab": ["f"]}, "is not a vocabulary"),
        ({"merges": None, "vocab": VOCABULARY}, 'has no "model" with merges'),
    ],
)
def test_a_damaged_model_is_one_line(tmp_path: Path, model: object, message: str) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": model}), encoding="utf-8")
    with pytest.raises(BertkitError, match=message):
        read_folder(tmp_path, "RoBERTa", ())


def test_a_line_that_is_no_merge_is_named(tmp_path: Path) -> None:
    write(tmp_path, OPENAI, "#version: 0.2\nf o\nfox\n")
    with pytest.raises(BertkitError, match=r'vocab_40000\.bpe, line 3: "fox" is not a merge of two tokens'):
        read_folder(tmp_path, "GPT", (OPENAI,))


def test_a_missing_tokenizer_names_the_files_that_are_read(tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match=r"has neither tokenizer\.json nor vocab\.json with merges\.txt\.") as caught:
        read_folder(tmp_path, "RoBERTa", (HUGGING_FACE,))
    assert caught.value.exit_code == 3


UNUSED = {"ignore_merges": False, "byte_fallback": False, "dropout": None, "continuing_subword_prefix": ""}


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("ignore_merges", True, "true"),
        ("byte_fallback", True, "true"),
        ("dropout", 0.1, "0.1"),
        ("continuing_subword_prefix", "##", '"##"'),
    ],
)
def test_settings_that_would_change_the_ids_are_refused(tmp_path: Path, name: str, value: object, shown: str) -> None:
    model = {"vocab": VOCABULARY, "merges": ["f o", "fo x"], **UNUSED}
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": model}), encoding="utf-8")
    assert read_folder(tmp_path, "RoBERTa", ()).merges == MERGES
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {**model, name: value}}), encoding="utf-8")
    with pytest.raises(BertkitError, match=f'its model has "{name}": {shown}, which tokenizers of RoBERTa do not have'):
        read_folder(tmp_path, "RoBERTa", ())
