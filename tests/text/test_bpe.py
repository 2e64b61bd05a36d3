from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Library
from tokenizers import normalizers

from bertkit.contracts import Tokenizer
from bertkit.errors import BertkitError
from bertkit.text.bpe import BPE, train

SPECIAL_TOKENS = ["<unk>", "_start_", "_delimiter_", "_classify_"]
VOCABULARY = ["<unk>", ".</w>", "f", "o", "x", "x</w>", "e", "s</w>", "fo", "fox</w>", "fox", "es</w>", "foxes</w>"]
MERGES = ["f o", "fo x</w>", "fo x", "e s</w>", "fox es</w>"]
ENGLISH = ["The quick brown fox jumps over the lazy dog, naïvely.", "A fox's résumé: quick jumps; lazier dogs!"] * 3


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tokenizer as OpenAI publishes it, with a vocabulary for foxes."""
    write(tmp_path, "encoder_bpe_40000.json", json.dumps({token: id for id, token in enumerate(VOCABULARY)}))
    write(tmp_path, "vocab_40000.bpe", "\n".join(["#version: 0.2", *MERGES, ""]))
    return tmp_path


@pytest.fixture
def tokenizer(folder: Path) -> BPE:
    return BPE.load(folder)


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text, encoding="utf-8")


def tokens_of(tokenizer: BPE, text: str, **options: bool) -> list[str]:
    return [tokenizer.id_to_token(id) for id in tokenizer.encode(text, **options).ids]


class TestUse:
    def test_it_implements_the_tokenizer_protocol(self, tokenizer: BPE) -> None:
        assert isinstance(tokenizer, Tokenizer)
        assert tokenizer.vocabulary == [*VOCABULARY, *SPECIAL_TOKENS[1:]]
        assert tokenizer.vocab_size == 16
        assert (tokenizer.unk_id, tokenizer.start_id, tokenizer.sep_id, tokenizer.cls_id) == (0, 13, 14, 15)
        assert (tokenizer.pad_id, tokenizer.mask_id) == (0, 0)

    def test_pairs_are_merged_in_the_order_of_the_merges(self, tokenizer: BPE) -> None:
        assert tokens_of(tokenizer, "Fox foxes fo.") == ["fox</w>", "foxes</w>", "f", "<unk>", ".</w>"]
        assert tokenizer.encode("Fóx  foxes.").offsets == [(0, 3), (5, 10), (10, 11)]

    def test_special_tokens_in_a_text_are_text_by_default(self, tokenizer: BPE) -> None:
        assert "_classify_" not in tokens_of(tokenizer, "fox _classify_")
        assert tokens_of(tokenizer, "fox _classify_", specials=True) == ["fox</w>", "_classify_"]

    def test_decoding_joins_the_subwords_of_a_word(self, tokenizer: BPE) -> None:
        ids = tokenizer.tokens_to_ids(["_start_", "fox</w>", "_delimiter_", "fo", "x</w>", ".</w>", "_classify_"])
        assert tokenizer.decode(ids) == "_start_ fox _delimiter_ fox . _classify_"
        assert tokenizer.decode(ids[1:2]) == "fox"


@cache
def trained_once() -> BPE:
    return train([*ENGLISH, "한국말 中文"] * 2, vocab_size=199)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(" \tİΣß\u0301\u200b\0한中ﬁ\ud800_'.x"), st.characters())).map("".join))
def test_offsets_are_ordered_and_inside_the_text(text: str) -> None:
    tokens = trained_once().encode(text)
    end_before = 0
    for id, (start, end) in zip(*tokens, strict=True):
        assert 0 <= id < trained_once().vocab_size
        assert 0 <= start < end <= len(text)
        assert end_before <= end
        end_before = end


class TestTraining:
    def test_special_tokens_get_the_first_ids_and_the_size_is_exact(self) -> None:
        trained = train(ENGLISH, vocab_size=67)
        assert trained.vocabulary[:4] == SPECIAL_TOKENS
        assert trained.vocab_size == len(set(trained.vocabulary)) == 67

    def test_the_training_text_has_no_unknown_token(self) -> None:
        trained = train(iter(ENGLISH), vocab_size=137)
        assert not any(trained.unk_id in ids for ids in trained.encode_ids_batch(ENGLISH))
        assert "".join(trained.decode(trained.encode(ENGLISH[1]).ids).split()) == "afox'sresume:quickjumps;lazierdogs!"

    @pytest.mark.parametrize("size", [8, 13, 37])
    def test_it_is_never_larger_than_asked(self, size: int) -> None:
        letters = "".join(map(chr, range(0xAC00, 0xAC00 + 137)))
        assert train([letters, *ENGLISH], vocab_size=size).vocab_size <= size

    def test_bad_input_is_an_error(self) -> None:
        with pytest.raises(BertkitError, match="--vocab-size is 3; it must be at least 8"):
            train(ENGLISH, vocab_size=3)
        with pytest.raises(BertkitError, match="no text to train a vocabulary on"):
            train([" ", "\n"], vocab_size=99)


class TestFiles:
    def test_a_saved_tokenizer_is_loaded_unchanged(self, tmp_path: Path) -> None:
        trained = train(ENGLISH, vocab_size=99)
        trained.save(tmp_path / "new")
        for left_out in ("", "tokenizer.json"):  # which takes precedence
            if left_out:
                (tmp_path / "new" / left_out).unlink()
            loaded = BPE.load(tmp_path / "new")
            assert (loaded.fingerprint, loaded.vocabulary) == (trained.fingerprint, trained.vocabulary)
            assert loaded.encode_batch(ENGLISH) == trained.encode_batch(ENGLISH)

    def test_the_fingerprint_depends_on_the_merges(self, folder: Path, tokenizer: BPE) -> None:
        write(folder, "vocab_40000.bpe", "\n".join(["#version: 0.2", *MERGES[:-1]]))
        assert BPE.load(folder).fingerprint != tokenizer.fingerprint

    @pytest.mark.parametrize(
        ("name", "text", "message"),
        [
            (
                "vocab_40000.bpe",
                "#version: 0.2\nf o\nfox\n",
                'vocab_40000.bpe, line 3: "fox" is not a merge of two tokens',
            ),
            ("vocab_40000.bpe", "f z\n", "the merges do not belong to the vocabulary"),
            ("encoder_bpe_40000.json", '["fox"]', "is not a vocabulary"),
            ("encoder_bpe_40000.json", '{"<unk>": 0, "f": 2}', "whose ids are not 0 to"),
            ("encoder_bpe_40000.json", "{", "is not readable JSON"),
            ("tokenizer.json", '{"model": {"type": "WordPiece"}}', "is not a tokenizer of GPT"),
        ],
    )
    def test_a_bad_file_is_an_error(self, folder: Path, name: str, text: str, message: str) -> None:
        if name != "vocab_40000.bpe":
            write(folder, "vocab_40000.bpe", "")
        write(folder, name, text)
        with pytest.raises(BertkitError, match=message):
            BPE.load(folder)

    def test_a_missing_file_is_an_error(self, folder: Path) -> None:
        (folder / "vocab_40000.bpe").unlink()
        with pytest.raises(BertkitError, match=r"vocab_40000\.bpe cannot be read"):
            BPE.load(folder)
        (folder / "encoder_bpe_40000.json").unlink()
        with pytest.raises(BertkitError, match=r"neither tokenizer\.json nor vocab\.json with merges\.txt or encoder"):
            BPE.load(folder)

    def test_rules_other_than_gpts_are_an_error(self, tokenizer: BPE, tmp_path: Path) -> None:
        tokenizer.save(tmp_path / "cased")
        library = Library.from_file(str(tmp_path / "cased" / "tokenizer.json"))
        library.normalizer = normalizers.BertNormalizer(lowercase=False)
        library.save(str(tmp_path / "cased" / "tokenizer.json"))
        with pytest.raises(BertkitError, match="another normalizer than GPT"):
            BPE.load(tmp_path / "cased")
