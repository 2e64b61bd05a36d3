"""BPE gives the ids of transformers' OpenAIGPTTokenizer, and merges as openai/finetune-transformer-lm does."""

from __future__ import annotations

import itertools
import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.texts import HARD, real_texts
from transformers import AutoTokenizer, OpenAIGPTTokenizer

from bertkit.text.bpe import BPE, train


@pytest.fixture(scope="module")
def published(data_folder: Path) -> BPE:
    return BPE.load(data_folder / "vocab" / "gpt1-bpe")


@pytest.fixture(scope="module")
def hf_tokenizer(data_folder: Path) -> Any:
    folder = data_folder / "vocab" / "gpt1-bpe"
    lines = (folder / "vocab_40000.bpe").read_text(encoding="utf-8").split("\n")[1:-1]
    vocabulary = json.loads((folder / "encoder_bpe_40000.json").read_text(encoding="utf-8"))
    return OpenAIGPTTokenizer(vocab=vocabulary, merges=[tuple(line.split(" ")) for line in lines])


def assert_same(ours: BPE, hf_tokenizer: Any, texts: list[str]) -> None:
    expected = hf_tokenizer(texts, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    rows = zip(texts, ours.encode_batch(texts), expected["input_ids"], expected["offset_mapping"], strict=True)
    for text, tokens, ids, offsets in rows:
        assert tokens.ids == ids, ascii(text)
        if not any(unicodedata.category(each) == "Mn" or "\u1160" <= each <= "\u11ff" for each in text):
            assert tokens.offsets == offsets, ascii(text)  # else hf_tokenizer stop before the marks


def test_real_text_is_tokenized_as_by_transformers(published: BPE, hf_tokenizer: Any, data_folder: Path) -> None:
    texts = real_texts(data_folder, 400)
    assert sum(map(len, texts)) > 100_000
    assert_same(published, hf_tokenizer, texts)


def test_unusual_text_is_tokenized_as_by_transformers(published: BPE, hf_tokenizer: Any) -> None:
    assert_same(published, hf_tokenizer, HARD)


@settings(max_examples=200, deadline=None)
@given(text=st.lists(st.one_of(st.sampled_from([*HARD, "the "]), st.characters(codec="utf-8"))).map("".join))
def test_any_text_is_tokenized_as_by_transformers(published: BPE, hf_tokenizer: Any, text: str) -> None:
    if "<unk>" not in text:  # which hf_tokenizer finds in a text
        assert_same(published, hf_tokenizer, [text])


def test_words_are_merged_as_by_openai(published: BPE, data_folder: Path) -> None:
    """It merges the pair of the lowest rank everywhere in the word, until none is left (``text_utils.py``)."""
    lines = (data_folder / "vocab" / "gpt1-bpe" / "vocab_40000.bpe").read_text(encoding="utf-8").split("\n")[1:-1]
    ranks = {tuple(line.split(" ")): rank for rank, line in enumerate(lines)}
    words = {word for text in real_texts(data_folder, 40) for word in published.pre_tokenize(text)}
    assert len(words) > 1000
    known = set(published.vocabulary)
    for word in words:
        parts = [*word[:-1], word[-1] + "</w>"]
        while pairs := [pair for pair in itertools.pairwise(parts) if pair in ranks]:
            first = min(pairs, key=lambda pair: ranks[pair])
            merged: list[str] = []
            for part in parts:
                if merged and (merged[-1], part) == first:
                    merged[-1] += part
                else:
                    merged.append(part)
            parts = merged
        expected = [part if part in known else "<unk>" for part in parts]
        assert [published.id_to_token(number) for number in published.encode(word).ids] == expected


def test_the_published_vocabulary_is_complete(published: BPE) -> None:
    assert published.vocab_size == 40_478 + 3
    assert [published.id_to_token(40_478 + number) for number in range(3)] == ["_start_", "_delimiter_", "_classify_"]


def test_transformers_loads_a_trained_vocabulary(tmp_path: Path, data_folder: Path) -> None:
    texts = real_texts(data_folder, 60)
    trained = train(texts, vocab_size=700)
    trained.save(tmp_path)
    hf_tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    assert_same(trained, hf_tokenizer, texts + HARD)
    ids = trained.encode("the end").ids
    assert hf_tokenizer.decode(ids) == trained.decode(ids) == "the end"
    assert (hf_tokenizer.cls_token_id, hf_tokenizer.sep_token_id, hf_tokenizer.bos_token_id) == (3, 2, 1)
    assert len(hf_tokenizer) == trained.vocab_size == 700
