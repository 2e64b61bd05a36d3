"""Byte-level BPE gives the ids of transformers' RobertaTokenizerFast, loaded from the same files."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.texts import HARD, real_texts
from transformers import AddedToken, AutoTokenizer, RobertaTokenizerFast

from bertkit.data.features import assemble
from bertkit.text.byte_bpe import ByteLevelBPE, train


@pytest.fixture(scope="module")
def texts(data_folder: Path) -> list[str]:
    return real_texts(data_folder, 400)


@pytest.fixture(scope="module")
def folder(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    train(texts[::3], vocab_size=1999).save(folder)
    return folder


@pytest.fixture(scope="module")
def ours(folder: Path) -> ByteLevelBPE:
    return ByteLevelBPE.load(folder)


@pytest.fixture(scope="module")
def hf_tokenizer(folder: Path) -> Any:
    lines = (folder / "merges.txt").read_text(encoding="utf-8").split("\n")[1:-1]
    vocabulary = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    merges = [tuple(line.split(" ")) for line in lines]
    mask = AddedToken("<mask>", lstrip=True, special=True)  # as in the published tokenizer_config.json
    return RobertaTokenizerFast(vocab=vocabulary, merges=merges, mask_token=mask)


def assert_same(ours: ByteLevelBPE, hf_tokenizer: Any, texts: list[str]) -> None:
    expected = hf_tokenizer(texts, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    rows = zip(texts, ours.encode_batch(texts), expected["input_ids"], expected["offset_mapping"], strict=True)
    for text, tokens, ids, offsets in rows:
        assert tokens.ids == ids, ascii(text)
        assert tokens.offsets == offsets, ascii(text)
        assert ours.decode(ids) == text


def test_real_text_is_tokenized_as_by_transformers(ours: ByteLevelBPE, hf_tokenizer: Any, texts: list[str]) -> None:
    assert sum(map(len, texts)) > 100_000
    assert sum(any("HANGUL" in unicodedata.name(character, "") for character in text) for text in texts) > 300
    assert_same(ours, hf_tokenizer, texts)


def test_unusual_text_is_tokenized_as_by_transformers(ours: ByteLevelBPE, hf_tokenizer: Any) -> None:
    assert_same(ours, hf_tokenizer, HARD)


@settings(max_examples=200, deadline=None)
@given(text=st.lists(st.one_of(st.sampled_from([*HARD, "the ", "  "]), st.characters(codec="utf-8"))).map("".join))
def test_any_text_is_tokenized_as_by_transformers(ours: ByteLevelBPE, hf_tokenizer: Any, text: str) -> None:
    assert_same(ours, hf_tokenizer, [text])


def test_transformers_loads_a_saved_tokenizer(ours: ByteLevelBPE, folder: Path, texts: list[str]) -> None:
    hf_tokenizer = AutoTokenizer.from_pretrained(folder)
    assert isinstance(hf_tokenizer, RobertaTokenizerFast)
    assert_same(ours, hf_tokenizer, texts[:60] + HARD)
    assert len(hf_tokenizer) == ours.vocab_size == 1999
    names = ("cls", "pad", "sep", "unk", "mask")
    assert [getattr(hf_tokenizer, f"{name}_token_id") for name in names] == [0, 1, 2, 3, 4]


def test_a_tokenizer_saved_by_transformers_loads(ours: ByteLevelBPE, hf_tokenizer: Any, tmp_path: Path) -> None:
    hf_tokenizer.save_pretrained(tmp_path)
    assert ByteLevelBPE.load(tmp_path).encode_batch(HARD) == ours.encode_batch(HARD)


def test_rows_have_the_special_tokens_of_transformers(ours: ByteLevelBPE, hf_tokenizer: Any) -> None:
    first, second = "The <mask> ran.", "Who ran?"
    assert ours.encode(first, specials=True).ids == hf_tokenizer(first, add_special_tokens=False).input_ids
    tokens = ours.encode(first, specials=True)
    assert assemble(ours, tokens, max_length=37).input_ids.tolist() == hf_tokenizer(first).input_ids
    assert assemble(ours, tokens, second, max_length=37).input_ids.tolist() == hf_tokenizer(first, second).input_ids
