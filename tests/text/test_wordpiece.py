from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertkit.contracts import Tokenizer, Tokens
from bertkit.errors import BertkitError
from bertkit.text.wordpiece import WordPiece, train

SPECIAL_PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ENGLISH = ["The quick brown fox jumps over the lazy dog, naïvely.", "A fox's résumé: quick jumps; lazier dogs!"] * 3
KOREAN = ["한국어를 공부합니다. 한국 사람은 한국말을 합니다.", "공부는 어렵지만 재미있습니다!"] * 3
VOCABULARY = [*SPECIAL_PIECES, "the", "naive", "fox", "##es", "##s", "an", ",", ".", "[", "]", "mask", "中", "é", "Fox"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An uncased tokenizer of another maker: ``vocab.txt`` and ``tokenizer_config.json``."""
    write_vocabulary(tmp_path, VOCABULARY)
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true}', encoding="utf-8")
    return tmp_path


@pytest.fixture
def tokenizer(folder: Path) -> WordPiece:
    return WordPiece.load(folder)


def write_vocabulary(folder: Path, pieces: list[str]) -> Path:
    path = folder / "vocab.txt"
    path.write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8", newline="")
    return path


def pieces_of(tokenizer: WordPiece, text: str, **options: bool) -> list[str]:
    return [tokenizer.id_to_token(number) for number in tokenizer.encode(text, **options).ids]


class TestUse:
    def test_it_keeps_the_contract(self, tokenizer: WordPiece) -> None:
        assert isinstance(tokenizer, Tokenizer)
        assert tokenizer.vocab_size == len(tokenizer.vocabulary) == len(VOCABULARY)
        assert tokenizer.vocabulary == VOCABULARY
        assert tokenizer.encode("Naïve foxes").offsets == [(0, 5), (6, 9), (9, 11)]

    def test_special_pieces_in_a_text_are_text(self, tokenizer: WordPiece) -> None:
        assert pieces_of(tokenizer, "the [MASK].") == ["the", "[", "mask", "]", "."]
        assert pieces_of(tokenizer, "the [MASK].", specials=True) == ["the", "[MASK]", "."]
        assert tokenizer.encode("the [MASK].", specials=True).offsets == [(0, 3), (4, 10), (10, 11)]

    def test_a_batch_is_its_texts(self, tokenizer: WordPiece) -> None:
        texts = ["the fox", "", "naïve foxes, the", "\ud800 the"]
        assert tokenizer.encode_batch(texts) == [tokenizer.encode(text) for text in texts]
        assert tokenizer.encode_ids_batch(tuple(texts)) == [tokenizer.encode(text).ids for text in texts]
        assert tokenizer.encode_batch([]) == []

    def test_decoding_joins_what_belongs_together(self, tokenizer: WordPiece) -> None:
        ids = tokenizer.tokens_to_ids(["[CLS]", "the", "fox", "##es", "[MASK]", ".", "[SEP]"])
        assert tokenizer.decode(ids) == "[CLS] the foxes [MASK]. [SEP]"

    def test_pieces_that_continue_a_word_are_known(self, tokenizer: WordPiece) -> None:
        assert np.array(VOCABULARY)[tokenizer.continues_word].tolist() == ["##es", "##s"]

    def test_an_unknown_piece_has_no_id(self, tokenizer: WordPiece) -> None:
        with pytest.raises(BertkitError, match='no piece "foxes"'):
            tokenizer.tokens_to_ids(["the", "foxes"])

    def test_a_megabyte_is_one_text(self, tokenizer: WordPiece) -> None:
        assert len(tokenizer.encode("the " * 250_000).ids) == 250_000
        assert tokenizer.encode("x" * 1_000_000) == Tokens([tokenizer.unk_id], [(0, 1_000_000)])

    def test_another_process_gets_the_same(self, tokenizer: WordPiece) -> None:
        copy = WordPiece.from_json(tokenizer.to_json())
        assert copy.fingerprint == tokenizer.fingerprint
        assert copy.encode("Naïve [MASK]") == tokenizer.encode("Naïve [MASK]")


HARD_LETTERS = st.sampled_from(
    [*" \tİΣß\u0301\u200b\0\ufffd한\u1112\u1161\ue000中\U0002f800ﬁ👍\u200d\ud800[]MASK#é.'", "[MASK]"]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(HARD_LETTERS, st.characters()), max_size=40).map("".join), st.booleans())
def test_offsets_are_in_the_text_and_in_order(text: str, specials: bool) -> None:
    for tokenizer in trained_once():
        tokens = tokenizer.encode(text, specials=specials)
        assert len(tokens.ids) == len(tokens.offsets)
        before = (0, 0)
        for number, (start, end) in zip(*tokens, strict=True):
            assert 0 <= number < tokenizer.vocab_size
            assert before[0] <= start <= end <= len(text)
            assert before[1] <= end
            assert start < end
            before = (start, end)


@cache
def trained_once() -> list[WordPiece]:
    """A tokenizer of each kind."""
    texts = ENGLISH + KOREAN
    return [
        train(texts, vocab_size=199),
        train(texts, vocab_size=199, unicode_form="NFD"),
        train(texts, vocab_size=199, cased=True),
    ]


class TestTraining:
    def test_special_pieces_come_first(self) -> None:
        trained = train(ENGLISH, vocab_size=67)
        assert trained.vocabulary[:5] == SPECIAL_PIECES
        assert (trained.pad_id, trained.unk_id, trained.cls_id, trained.sep_id, trained.mask_id) == (0, 1, 2, 3, 4)
        assert trained.vocab_size == len(set(trained.vocabulary)) == 67

    def test_all_of_the_text_is_known(self) -> None:
        trained = train(iter(ENGLISH), vocab_size=137)
        assert not any(trained.unk_id in ids for ids in trained.encode_ids_batch(ENGLISH))
        assert "".join(trained.decode(trained.encode(ENGLISH[1]).ids).split()) == "afox'sresume:quickjumps;lazierdogs!"

    def test_a_letter_may_stand_anywhere_in_a_word(self) -> None:
        assert train(["abc"] * 2, vocab_size=99).unk_id not in train(["abc"] * 2, vocab_size=99).encode("cab bca").ids

    def test_a_small_text_gives_a_small_vocabulary(self) -> None:
        assert train(["ab ab ab"], vocab_size=99).vocabulary == [*SPECIAL_PIECES, "a", "b", "##a", "##b", "ab"]

    @pytest.mark.parametrize("size", [10, 13, 37])
    def test_it_is_never_larger_than_asked(self, size: int) -> None:
        letters = "".join(map(chr, range(0xAC00, 0xAC00 + 137)))
        assert train([letters, *ENGLISH], vocab_size=size).vocab_size <= size

    def test_the_same_text_gives_the_same_vocabulary(self) -> None:
        """The trainer of the library, given texts, makes another one at almost every call."""
        assert len({train(ENGLISH + KOREAN, vocab_size=99).fingerprint for _ in range(7)}) == 1

    def test_hangul_stays_whole(self) -> None:
        trained = train(KOREAN, vocab_size=99)
        assert pieces_of(trained, "한국")[0][0] == "한"
        assert not any("\u1100" <= letter <= "\u11ff" for piece in trained.vocabulary for letter in piece)
        decomposed = unicodedata.normalize("NFD", KOREAN[0])
        assert trained.encode(decomposed).ids == trained.encode(KOREAN[0]).ids
        assert trained.encode(unicodedata.normalize("NFD", "한국")).offsets[-1][1] == 6
        assert trained.encode("nai\u0308ve\u0301 e\u0301\u200b").offsets[-1] == (8, 10)

    def test_hangul_is_torn_on_request(self) -> None:
        trained = train(KOREAN, vocab_size=99, unicode_form="NFD")
        assert any("\u1100" <= letter <= "\u11ff" for piece in trained.vocabulary for letter in piece)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({}, ["naive", "fox", ",", "중", "中", "国"]),
            ({"strip_accents": False}, ["naïve", "fox", ",", "중", "中", "国"]),
            ({"cased": True}, ["Naïve", "Fox", ",", "중", "中", "国"]),
            ({"cased": True, "strip_accents": True}, ["Naive", "Fox", ",", "중", "中", "国"]),
            ({"cased": True, "unicode_form": "NFD"}, ["Nai\u0308ve", "Fox", ",", "\u110c\u116e\u11bc", "中", "国"]),
            ({"unicode_form": "NFD"}, ["naive", "fox", ",", "\u110c\u116e\u11bc", "中", "国"]),
        ],
    )
    def test_options(self, options: dict[str, Any], words: list[str]) -> None:
        assert train(ENGLISH, vocab_size=99, **options).pre_tokenize("Naïve\u200b Fox,중\t中国") == words

    def test_cased_leaves_marks_apart_as_they_are(self) -> None:
        trained = train(ENGLISH, vocab_size=99, cased=True)
        assert trained.pre_tokenize("e\u0301 é") == ["e\u0301", "é"]

    def test_half_a_surrogate_pair_is_survived(self) -> None:
        assert "fox" in train([*ENGLISH, "\ud800 a\udfff"]).vocabulary

    def test_words_too_long_for_a_piece_teach_nothing(self) -> None:
        assert train([*ENGLISH, "q" * 201]).fingerprint == train(ENGLISH).fingerprint

    def test_texts_are_read_one_at_a_time(self) -> None:
        def texts() -> Iterator[str]:
            for number in range(3):
                waiting.append(number)
                yield "some words"
                assert waiting.pop() == number

        waiting: list[int] = []
        train(texts(), vocab_size=99)

    def test_rare_words_are_let_go_when_memory_would_not_do(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("bertkit.text.training._MOST_WORDS", 13)
        monkeypatch.setattr("bertkit.text.training._CHARACTERS_AT_ONCE", 99)
        rare = [chr(0xAC00 + number) for number in range(100)]
        trained = train((f"{word} frequent frequent" for word in rare), vocab_size=999)
        assert "frequent" in trained.vocabulary
        assert sum(piece in trained.vocabulary for piece in rare) < 50

    @pytest.mark.parametrize("texts", [[], [""], [" \n", "\u200b\0"]])
    def test_nothing_to_learn_from(self, texts: list[str]) -> None:
        with pytest.raises(BertkitError, match="no text to learn") as caught:
            train(texts)
        assert caught.value.exit_code == 3

    def test_no_room_for_a_piece(self) -> None:
        with pytest.raises(BertkitError, match="--vocab-size is 7; it must be 10 or more"):
            train(ENGLISH, vocab_size=7)


class TestFiles:
    @pytest.mark.parametrize("cased", [False, True])
    @pytest.mark.parametrize("form", [None, "NFD", "NFC"])
    def test_what_is_saved_comes_back(self, tmp_path: Path, cased: bool, form: Any) -> None:
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

    def test_the_fingerprint_tells_rules_and_pieces_apart(self, tmp_path: Path) -> None:
        prints = {train(ENGLISH, vocab_size=99, cased=cased).fingerprint for cased in (False, True)}
        for flags in ({}, {"strip_accents": False}, {"max_input_chars_per_word": 100}, {"do_lower_case": False}):
            (tmp_path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True, **flags}))
            prints.add(WordPiece.load(write_vocabulary(tmp_path, VOCABULARY)).fingerprint)
        prints.add(WordPiece.load(write_vocabulary(tmp_path, [*VOCABULARY[:-1], "box"])).fingerprint)
        assert len(prints) == 7

    def test_a_file_is_as_good_as_its_folder(self, folder: Path, tmp_path: Path) -> None:
        loaded = WordPiece.load(folder)
        assert WordPiece.load(folder / "vocab.txt").fingerprint == loaded.fingerprint
        loaded.save(tmp_path / "saved")
        assert WordPiece.load(str(tmp_path / "saved" / "tokenizer.json")).fingerprint == loaded.fingerprint

    @pytest.mark.parametrize(
        ("config", "words"),
        [
            ({}, ["Été", ",", "中", "中"]),  # the vocabulary has a piece with a capital
            ({"do_lower_case": True}, ["ete", ",", "中", "中"]),
            ({"do_lower_case": True, "strip_accents": False}, ["été", ",", "中", "中"]),
            ({"do_lower_case": False, "strip_accents": True}, ["Ete", ",", "中", "中"]),
            ({"do_lower_case": True, "strip_accents": None, "tokenize_chinese_chars": False}, ["ete", ",", "中中"]),
        ],
    )
    def test_flags_are_heeded(self, folder: Path, tmp_path: Path, config: dict[str, Any], words: list[str]) -> None:
        (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
        loaded = WordPiece.load(folder)
        assert loaded.pre_tokenize("Été,中中") == words
        loaded.save(tmp_path / "saved")
        assert WordPiece.load(tmp_path / "saved").pre_tokenize("Été,中中") == words
        (tmp_path / "saved" / "tokenizer.json").unlink()
        assert WordPiece.load(tmp_path / "saved").pre_tokenize("Été,中中") == words

    def test_flags_are_heeded_beside_the_rules_of_hugging_face(self, tmp_path: Path) -> None:
        description = json.loads(train(ENGLISH, vocab_size=99).to_json())["rules"]
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

    def test_the_longest_word(self, folder: Path) -> None:
        write_vocabulary(folder, [*SPECIAL_PIECES, "a", "##a"])
        assert WordPiece.load(folder).unk_id not in WordPiece.load(folder).encode("a" * 200).ids
        assert pieces_of(WordPiece.load(folder), "a" * 201) == ["[UNK]"]
        (folder / "tokenizer_config.json").write_text('{"max_input_chars_per_word": 100}', encoding="utf-8")
        assert pieces_of(WordPiece.load(folder), "a" * 101) == ["[UNK]"]

    def test_special_pieces_of_other_names(self, tmp_path: Path) -> None:
        names = {"pad_token": "<pad>", "unk_token": {"content": "<unk>", "lstrip": False}, "cls_token": "<s>"}
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(names), encoding="utf-8")
        loaded = WordPiece.load(write_vocabulary(tmp_path, ["a", "[MASK]", "[SEP]", "<s>", "<unk>", "<pad>"]))
        assert (loaded.pad_id, loaded.unk_id, loaded.cls_id, loaded.sep_id, loaded.mask_id) == (5, 4, 3, 2, 1)
        assert loaded.encode("b").ids == [4]
        loaded.save(tmp_path / "saved")
        assert WordPiece.load(tmp_path / "saved").fingerprint == loaded.fingerprint
        assert WordPiece.from_json(loaded.to_json()).cls_id == 3

    def test_windows_wrote_the_vocabulary(self, tmp_path: Path, tokenizer: WordPiece) -> None:
        text = "\ufeff" + "\r\n".join(VOCABULARY) + "\r\n"
        (tmp_path / "vocab.txt").write_bytes(text.encode())
        assert WordPiece.load(tmp_path).vocabulary == VOCABULARY

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("a\nb\n", r"has no \[PAD\], \[UNK\], \[CLS\], \[SEP\], \[MASK\]; BERT needs"),
            ("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n", r"vocab.txt has no \[MASK\]; BERT needs"),
            ("[PAD]\n\n[UNK]\n", "line 2 is blank"),
            ("[PAD]\n[UNK]\n\n", "line 3 is blank"),
            ("", "line 1 is blank"),
            ("[PAD]\na\nb\na\n", 'line 4: "a" is in line 2 already'),
            (b"[PAD]\n\xff\xfea\n", "not UTF-8 text: byte 6 is 0xff"),
        ],
    )
    def test_a_vocabulary_that_is_none(self, tmp_path: Path, content: str | bytes, message: str) -> None:
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
    def test_rules_that_are_none(self, tmp_path: Path, content: str, message: str) -> None:
        (tmp_path / "tokenizer.json").write_text(content, encoding="utf-8")
        fail_to_load(tmp_path, message)

    def test_rules_with_a_hole_in_the_ids(self, tmp_path: Path) -> None:
        description = json.loads(train(ENGLISH, vocab_size=99).to_json())["rules"]
        description["model"]["vocab"]["hole"] = 137
        (tmp_path / "tokenizer.json").write_text(json.dumps(description), encoding="utf-8")
        pieces = len(description["model"]["vocab"])
        fail_to_load(tmp_path, f"has {pieces} pieces whose ids are not 0 to {pieces - 1}")

    @pytest.mark.parametrize(
        ("content", "message"),
        [("[1]", "is not a JSON object"), ('{"mask_token": 4}', '"mask_token" is 4; it must be a piece')],
    )
    def test_a_config_that_is_none(self, folder: Path, content: str, message: str) -> None:
        (folder / "tokenizer_config.json").write_text(content, encoding="utf-8")
        fail_to_load(folder, message)

    def test_nothing_there(self, tmp_path: Path) -> None:
        fail_to_load(tmp_path, "has neither tokenizer.json nor vocab.txt")
        fail_to_load(tmp_path / "nowhere", "nowhere: it does not exist")

    def test_a_file_is_no_folder(self, tokenizer: WordPiece, tmp_path: Path) -> None:
        with pytest.raises(BertkitError, match=r"cannot write to .*vocab.txt: File exists"):
            tokenizer.save(tmp_path / "vocab.txt")


def fail_to_load(path: Path, message: str) -> None:
    with pytest.raises(BertkitError, match=message) as caught:
        WordPiece.load(path)
    assert caught.value.exit_code == 3
    assert "\n" not in str(caught.value)


class TestAddedTokens:
    def test_words_get_ids_after_the_old_ones(self, tokenizer: WordPiece) -> None:
        larger = tokenizer.add_tokens(["Vulpine", "fox", "VULPINE", "C++", "[E1]", "a.b"])
        assert larger.vocabulary == [*VOCABULARY, "vulpine", "c++", "[e1]", "a.b"]
        assert tokenizer.vocab_size == len(VOCABULARY)
        assert pieces_of(larger, "the Vulpine foxes") == ["the", "vulpine", "fox", "##es"]

    def test_what_the_rules_would_cut_is_one_token(self, tokenizer: WordPiece) -> None:
        larger = tokenizer.add_tokens(["C++", "[E1]"])
        tokens = larger.encode("[E1]Fox, C++.")
        assert [larger.id_to_token(number) for number in tokens.ids] == ["[e1]", "fox", ",", "c++", "."]
        assert tokens.offsets == [(0, 4), (4, 7), (7, 8), (9, 12), (12, 13)]

    def test_they_are_saved(self, tokenizer: WordPiece, tmp_path: Path) -> None:
        larger = tokenizer.add_tokens(["Vulpine", "[E1]"]).add_tokens(["C++", "canine"])
        larger.save(tmp_path / "saved")
        loaded = WordPiece.load(tmp_path / "saved")
        assert loaded.fingerprint == larger.fingerprint != tokenizer.fingerprint
        assert loaded.vocabulary[-4:] == ["vulpine", "[e1]", "c++", "canine"]
        assert pieces_of(loaded, "canine [E1] C++ [MASK]", specials=True) == ["canine", "[e1]", "c++", "[MASK]"]

    @pytest.mark.parametrize("word", ["", " ", "\u200b", "two words"])
    def test_what_is_no_word(self, tokenizer: WordPiece, word: str) -> None:
        with pytest.raises(BertkitError, match="it is blank or has white space in it") as caught:
            tokenizer.add_tokens(["fine", word])
        assert caught.value.exit_code == 2
