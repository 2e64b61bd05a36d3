from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertkit.contracts import Tokenizer
from bertkit.errors import BertkitError
from bertkit.text.wordpiece import WordPiece, train, train_more

SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ENGLISH = ["The quick brown fox jumps over the lazy dog, naïvely.", "A fox's résumé: quick jumps; lazier dogs!"] * 3
KOREAN = ["한국어를 공부합니다. 한국 사람은 한국말을 합니다.", "공부는 어렵지만 재미있습니다!"] * 3
VOCABULARY = [*SPECIAL_TOKENS, "the", "naive", "fox", "##es", "##s", "an", ",", ".", "[", "]", "mask", "中", "é", "Fox"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An uncased tokenizer as other programs save it: ``vocab.txt`` and ``tokenizer_config.json``."""
    write_vocabulary(tmp_path, VOCABULARY)
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true}', encoding="utf-8")
    return tmp_path


@pytest.fixture
def tokenizer(folder: Path) -> WordPiece:
    return WordPiece.load(folder)


def write_vocabulary(folder: Path, tokens: list[str]) -> Path:
    path = folder / "vocab.txt"
    path.write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8", newline="")
    return path


def tokens_of(tokenizer: WordPiece, text: str, **options: bool) -> list[str]:
    return [tokenizer.id_to_token(id) for id in tokenizer.encode(text, **options).ids]


class TestUse:
    def test_it_implements_the_tokenizer_protocol(self, tokenizer: WordPiece) -> None:
        assert isinstance(tokenizer, Tokenizer)
        assert tokenizer.vocab_size == len(tokenizer.vocabulary) == len(VOCABULARY)
        assert tokenizer.vocabulary == VOCABULARY
        assert tokenizer.encode("Naïve foxes").offsets == [(0, 5), (6, 9), (9, 11)]

    def test_special_tokens_in_a_text_are_text_by_default(self, tokenizer: WordPiece) -> None:
        assert tokens_of(tokenizer, "the [MASK].") == ["the", "[", "mask", "]", "."]
        assert tokens_of(tokenizer, "the [MASK].", specials=True) == ["the", "[MASK]", "."]
        assert tokenizer.encode("the [MASK].", specials=True).offsets == [(0, 3), (4, 10), (10, 11)]

    def test_decoding_joins_the_subwords_of_a_word(self, tokenizer: WordPiece) -> None:
        ids = tokenizer.tokens_to_ids(["[CLS]", "the", "fox", "##es", "[MASK]", ".", "[SEP]"])
        assert tokenizer.decode(ids) == "[CLS] the foxes [MASK]. [SEP]"

    def test_continues_word_is_true_for_subwords_with_a_prefix(self, tokenizer: WordPiece) -> None:
        assert np.array(VOCABULARY)[tokenizer.continues_word].tolist() == ["##es", "##s"]


class TestTraining:
    def test_special_tokens_get_the_first_ids(self) -> None:
        trained = train(ENGLISH, vocab_size=67)
        assert trained.vocabulary[:5] == SPECIAL_TOKENS
        assert (trained.pad_id, trained.unk_id, trained.cls_id, trained.sep_id, trained.mask_id) == (0, 1, 2, 3, 4)
        assert trained.vocab_size == len(set(trained.vocabulary)) == 67

    def test_the_training_text_has_no_unknown_token(self) -> None:
        trained = train(iter(ENGLISH), vocab_size=137)
        assert not any(trained.unk_id in ids for ids in trained.encode_ids_batch(ENGLISH))
        assert "".join(trained.decode(trained.encode(ENGLISH[1]).ids).split()) == "afox'sresume:quickjumps;lazierdogs!"

    def test_hangul_syllables_stay_whole_by_default(self) -> None:
        trained = train(KOREAN, vocab_size=99)
        assert tokens_of(trained, "한국")[0][0] == "한"
        assert not any("\u1100" <= character <= "\u11ff" for token in trained.vocabulary for character in token)
        decomposed = unicodedata.normalize("NFD", KOREAN[0])
        assert trained.encode(decomposed).ids == trained.encode(KOREAN[0]).ids
        assert trained.encode(unicodedata.normalize("NFD", "한국")).offsets[-1][1] == 6
        assert trained.encode("nai\u0308ve\u0301 e\u0301\u200b").offsets[-1] == (8, 10)

    def test_nfd_decomposes_hangul(self) -> None:
        trained = train(KOREAN, vocab_size=99, unicode_form="NFD")
        assert any("\u1100" <= character <= "\u11ff" for token in trained.vocabulary for character in token)

    def test_lone_surrogates_in_the_text_are_replaced(self) -> None:
        assert "fox" in train([*ENGLISH, "\ud800 a\udfff"]).vocabulary

    @pytest.mark.parametrize("texts", [[], [""], [" \n", "\u200b\0"]])
    def test_training_without_text_is_an_error(self, texts: list[str]) -> None:
        with pytest.raises(BertkitError, match="no text to train a vocabulary on") as caught:
            train(texts)
        assert caught.value.exit_code == 3

    def test_a_vocabulary_must_be_larger_than_its_special_tokens(self) -> None:
        with pytest.raises(BertkitError, match="--vocab-size is 7; it must be at least 10"):
            train(ENGLISH, vocab_size=7)


class TestFiles:
    @pytest.mark.parametrize("cased", [False, True])
    @pytest.mark.parametrize("form", [None, "NFD", "NFC"])
    def test_a_saved_tokenizer_is_loaded_unchanged(self, tmp_path: Path, cased: bool, form: Any) -> None:
        trained = train(ENGLISH + KOREAN, vocab_size=99, cased=cased, unicode_form=form)
        trained.save(tmp_path / "tok")
        loaded = WordPiece.load(tmp_path / "tok")
        assert loaded.fingerprint == trained.fingerprint
        assert loaded.vocabulary == trained.vocabulary
        assert loaded.cased == cased
        assert loaded.encode(KOREAN[0]) == trained.encode(KOREAN[0])
        loaded.save(tmp_path / "again")
        for file in ("tokenizer.json", "tokenizer_config.json", "vocab.txt"):
            assert (tmp_path / "tok" / file).read_bytes() == (tmp_path / "again" / file).read_bytes()

    def test_the_fingerprint_depends_on_rules_and_vocabulary(self, tmp_path: Path) -> None:
        prints = {train(ENGLISH, vocab_size=99, cased=cased).fingerprint for cased in (False, True)}
        for flags in ({}, {"strip_accents": False}, {"max_input_chars_per_word": 100}, {"do_lower_case": False}):
            (tmp_path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True, **flags}))
            prints.add(WordPiece.load(write_vocabulary(tmp_path, VOCABULARY)).fingerprint)
        prints.add(WordPiece.load(write_vocabulary(tmp_path, [*VOCABULARY[:-1], "box"])).fingerprint)
        assert len(prints) == 7

    def test_saving_over_a_file_is_an_error(self, tokenizer: WordPiece, tmp_path: Path) -> None:
        with pytest.raises(BertkitError, match=r"cannot write .*vocab.txt: File exists"):
            tokenizer.save(tmp_path / "vocab.txt")


class TestAddedTokens:
    def test_added_words_get_ids_after_the_existing_ones(self, tokenizer: WordPiece) -> None:
        larger = tokenizer.add_tokens(["Vulpine", "fox", "VULPINE", "C++", "[E1]", "a.b"])
        assert larger.vocabulary == [*VOCABULARY, "vulpine", "c++", "[e1]", "a.b"]
        assert tokenizer.vocab_size == len(VOCABULARY)
        assert tokens_of(larger, "the Vulpine foxes") == ["the", "vulpine", "fox", "##es"]

    def test_an_added_word_that_the_rules_split_is_one_token(self, tokenizer: WordPiece) -> None:
        larger = tokenizer.add_tokens(["C++", "[E1]"])
        tokens = larger.encode("[E1]Fox, C++.")
        assert [larger.id_to_token(id) for id in tokens.ids] == ["[e1]", "fox", ",", "c++", "."]
        assert tokens.offsets == [(0, 4), (4, 7), (7, 8), (9, 12), (12, 13)]

    def test_an_added_word_is_not_looked_for_inside_of_others(self, tokenizer: WordPiece) -> None:
        larger = tokenizer.add_tokens(["e-mail"])
        assert tokens_of(larger, "the e-mail, E-Mail.") == ["the", "e-mail", ",", "e-mail", "."]
        assert tokens_of(larger, "tree-mailing") == tokens_of(tokenizer, "tree-mailing")

    def test_added_words_are_saved(self, tokenizer: WordPiece, tmp_path: Path) -> None:
        larger = tokenizer.add_tokens(["Vulpine", "[E1]"]).add_tokens(["C++", "canine"])
        larger.save(tmp_path / "saved")
        loaded = WordPiece.load(tmp_path / "saved")
        assert loaded.fingerprint == larger.fingerprint != tokenizer.fingerprint
        assert loaded.vocabulary[-4:] == ["vulpine", "[e1]", "c++", "canine"]
        assert tokens_of(loaded, "canine [E1] C++ [MASK]", specials=True) == ["canine", "[e1]", "c++", "[MASK]"]

    @pytest.mark.parametrize("word", ["", " ", "\u200b", "two words"])
    def test_a_blank_word_is_an_error(self, tokenizer: WordPiece, word: str) -> None:
        with pytest.raises(BertkitError, match="it is blank or contains white space") as caught:
            tokenizer.add_tokens(["fine", word])
        assert caught.value.exit_code == 2


def test_the_words_that_save_the_most_tokens_are_added() -> None:
    base = train(["the mill ran by the river and the mill"] * 9, vocab_size=60)
    texts = ["riverman riverman riverman millman millman the 1985 man-made"]
    larger = train_more(texts, base, vocab_size=base.vocab_size + 2)
    assert larger.vocabulary == [*base.vocabulary, "riverman", "millman"]
    assert larger.encode("Riverman").ids == [base.vocab_size]


def test_words_with_marks_are_words_of_letters() -> None:
    base = train(["the mill"] * 9, vocab_size=60)
    words = [
        "\u0939\u093f\u0928\u094d\u0926\u0940",
        "\u09ac\u09be\u0982\u09b2\u09be",
    ]  # Hindi and Bengali, with vowel signs
    larger = train_more([" ".join(words)], base, vocab_size=base.vocab_size + 2)
    assert larger.vocab_size == base.vocab_size + 2
    assert all(len(larger.encode(word).ids) == 1 for word in words)


def test_there_must_be_a_word_to_add() -> None:
    base = train(["the mill"] * 9, vocab_size=60)
    with pytest.raises(BertkitError, match="there is no word to add"):
        train_more(["The mill 2001!"], base, vocab_size=99)
    with pytest.raises(BertkitError, match="already: give a larger number"):
        train_more(["A river"], base, vocab_size=base.vocab_size)
