from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertkit.contracts import Tokenizer
from bertkit.errors import BertkitError
from bertkit.text.byte_bpe import ByteLevelBPE, train

SPECIAL_TOKENS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
ENGLISH = ["The quick brown fox jumps over the lazy dog, naïvely.", "A fox's résumé: quick jumps; lazier dogs!"] * 3


@cache
def trained_once() -> ByteLevelBPE:
    return train([*ENGLISH, "한국말 中文"] * 2, vocab_size=399)


@pytest.fixture
def tokenizer() -> ByteLevelBPE:
    return trained_once()


@pytest.fixture
def folder(tmp_path: Path, tokenizer: ByteLevelBPE) -> Path:
    tokenizer.save(tmp_path)
    return tmp_path


def tokens_of(tokenizer: ByteLevelBPE, text: str, **options: bool) -> list[str]:
    return [tokenizer.id_to_token(id) for id in tokenizer.encode(text, **options).ids]


class TestUse:
    def test_it_implements_the_tokenizer_protocol(self, tokenizer: ByteLevelBPE) -> None:
        assert isinstance(tokenizer, Tokenizer)
        assert (tokenizer.cls_id, tokenizer.pad_id, tokenizer.sep_id) == (0, 1, 2)
        assert (tokenizer.unk_id, tokenizer.mask_id, tokenizer.between_ids) == (3, 4, [2, 2])
        assert tokenizer.cased

    def test_a_space_belongs_to_the_next_word_and_not_to_its_offsets(self, tokenizer: ByteLevelBPE) -> None:
        tokens = tokenizer.encode("the's  the")
        assert [tokenizer.id_to_token(id) for id in tokens.ids] == ["the", "'s", "Ġ", "Ġthe"]
        assert tokens.offsets == [(0, 3), (3, 5), (6, 6), (7, 10)]

    def test_the_bytes_of_a_character_have_its_offsets(self, tokenizer: ByteLevelBPE) -> None:
        """A dash that is not in the training text has three bytes."""
        assert tokens_of(tokenizer, "a—") == ["a", "â", "Ģ", "Ķ"]
        assert tokenizer.encode("a—").offsets == [(0, 1), (1, 2), (1, 2), (1, 2)]

    def test_special_tokens_in_a_text_are_text_by_default(self, tokenizer: ByteLevelBPE) -> None:
        assert not {0, 4} & set(tokenizer.encode("<s> fox <mask>").ids)
        tokens = tokenizer.encode("the  <mask> fox", specials=True)
        assert [tokenizer.id_to_token(id) for id in tokens.ids] == ["the", "<mask>", "Ġfox"]
        assert tokens.offsets == [(0, 3), (5, 11), (12, 15)]

    def test_a_subword_without_a_space_continues_a_word(self, tokenizer: ByteLevelBPE) -> None:
        word, inner = tokenizer.tokens_to_ids(["Ġthe", "the"])
        assert (tokenizer.surface_form(word), tokenizer.surface_form(inner)) == (("the", False), ("the", True))
        assert tokenizer.continues_word[[word, inner]].tolist() == [False, True]
        assert len(tokenizer.continues_word) == tokenizer.vocab_size

    def test_a_batch_encodes_each_text_as_alone(self, tokenizer: ByteLevelBPE) -> None:
        assert tokenizer.encode_ids_batch(ENGLISH) == [tokens.ids for tokens in tokenizer.encode_batch(ENGLISH)]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(" \t\nİΣß\u0301\u200b\0한中ﬁ\ud800'.x"), st.characters())).map("".join))
def test_decoding_restores_any_text_and_offsets_are_ordered(text: str) -> None:
    tokens = trained_once().encode(text)
    end_before = 0
    for id, (start, end) in zip(*tokens, strict=True):
        assert 0 <= id < trained_once().vocab_size
        assert id != trained_once().unk_id
        assert 0 <= start <= end <= len(text)
        assert end_before <= end
        end_before = end
    expected = "".join("\uffff" if "\ud800" <= character <= "\udfff" else character for character in text)
    assert trained_once().decode(tokens.ids) == expected


class TestTraining:
    def test_special_tokens_and_bytes_come_first_and_the_size_is_exact(self) -> None:
        trained = train(ENGLISH, vocab_size=277)
        assert trained.vocabulary[:5] == SPECIAL_TOKENS
        assert trained.vocabulary[5:8] == ["!", '"', "#"]  # as in GPT-2's vocabulary
        assert [len(token) for token in trained.vocabulary[5:261]] == [1] * 256
        assert trained.vocab_size == len(set(trained.vocabulary)) == 277

    def test_merges_include_the_space_before_a_word(self) -> None:
        """`` ab`` three times, `` ba`` twice, `` c`` once, which merges with nothing."""
        trained = train(["ab ab\nab", "ba ba c"], vocab_size=299)
        assert trained.vocabulary[261:] == ["ab", "Ġab", "ba", "Ġba"]
        assert tokens_of(trained, " ab ba c") == ["Ġab", "Ġba", "Ġ", "c"]

    def test_bad_input_is_an_error(self) -> None:
        with pytest.raises(BertkitError, match="--vocab-size is 260; it must be at least 261: every byte is a token"):
            train(ENGLISH, vocab_size=260)
        with pytest.raises(BertkitError, match="no text to train a vocabulary on"):
            train([" ", "\n"], vocab_size=299)


class TestFiles:
    def test_a_saved_tokenizer_is_loaded_unchanged(self, folder: Path, tokenizer: ByteLevelBPE) -> None:
        for left_out in ("", "tokenizer.json"):  # which takes precedence
            if left_out:
                (folder / left_out).unlink()
            loaded = ByteLevelBPE.load(folder)
            assert (loaded.fingerprint, loaded.vocabulary) == (tokenizer.fingerprint, tokenizer.vocabulary)
            assert loaded.encode_batch(ENGLISH) == tokenizer.encode_batch(ENGLISH)

    def test_add_prefix_space_of_the_config_adds_a_leading_space(self, folder: Path, tokenizer: ByteLevelBPE) -> None:
        change(folder / "tokenizer_config.json", add_prefix_space=True)
        spaced = ByteLevelBPE.load(folder)
        assert (tokens_of(spaced, "fox fox"), spaced.encode("fox").offsets) == (["Ġfox", "Ġfox"], [(0, 3)])
        assert spaced.fingerprint != tokenizer.fingerprint
        assert spaced.cased
        spaced.save(folder / "again")
        (folder / "again" / "tokenizer_config.json").unlink()
        assert ByteLevelBPE.load(folder / "again").fingerprint == spaced.fingerprint

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"model": {"type": "WordPiece"}}, "is not a tokenizer of RoBERTa"),
            ({"normalizer": {"type": "Lowercase"}}, "has another normalizer than RoBERTa"),
            ({"pre_tokenizer": {"type": "Whitespace"}}, "has another pre_tokenizer than RoBERTa"),
            ({"pre_tokenizer": {"type": "ByteLevel", "use_regex": False}}, "has another pre_tokenizer"),
            ({"model": {"vocab": {"a": 0}, "merges": [], "end_of_word_suffix": "</w>"}}, "another end_of_word_suffix"),
            ({"added_tokens": [{"content": "<e1>"}]}, 'added_tokens must be a list of objects with "content" and "id"'),
            ({"added_tokens": [{"content": ["<e1>"], "id": 1}]}, "added_tokens must be a list of objects with"),
            ({"model": {"vocab": {"a": 0}, "merges": ["a b"]}}, "the merges do not belong to the vocabulary"),
            ({"model": {"vocab": {"a": 5}, "merges": ["a"]}}, 'merge 1: "a" is not a merge of two tokens'),
        ],
    )
    def test_rules_other_than_robertas_are_an_error(self, folder: Path, changes: dict[str, Any], message: str) -> None:
        change(folder / "tokenizer.json", **changes)
        with pytest.raises(BertkitError, match=message):
            ByteLevelBPE.load(folder)

    def test_missing_tokens_and_files_are_named(self, folder: Path) -> None:
        (folder / "tokenizer.json").unlink()
        change(folder / "vocab.json", **{"<mask>": None})
        with pytest.raises(BertkitError, match="has no <mask>; RoBERTa needs <s>, <pad>, </s>, <unk>, <mask>"):
            ByteLevelBPE.load(folder)
        (folder / "vocab.json").unlink()
        with pytest.raises(BertkitError, match=r"neither tokenizer\.json nor vocab\.json with merges\.txt\."):
            ByteLevelBPE.load(folder)


def change(file: Path, **changes: Any) -> None:
    """Change entries of a JSON file; None removes one."""
    content = {**json.loads(file.read_text(encoding="utf-8")), **changes}
    kept = {name: value for name, value in content.items() if value is not None or file.name == "tokenizer.json"}
    file.write_text(json.dumps(kept), encoding="utf-8")
