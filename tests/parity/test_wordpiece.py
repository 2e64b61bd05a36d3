"""WordPiece beside a slow reference of the original's rules, and beside transformers' BertTokenizer.

The reference is written from what google-research/bert ``tokenization.py`` does: no library, one step after the other.
"""

from __future__ import annotations

import sys
import unicodedata
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer, BertTokenizer

from bertkit.text.wordpiece import WordPiece, train

LONGEST_WORD = 200
VOCABULARIES = ["bert-base-uncased", "bert-base-cased", "bert-base-multilingual-cased", "koelectra"]
IDEOGRAPHS = [
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
]
CHANGED_SINCE = {"\U0001171e", "\U00011938"}
"""Assigned before, but of another class or decomposition since Unicode 16."""


def reference_words(text: str, *, uncased: bool) -> list[str]:
    """What the original's BasicTokenizer makes of a text."""
    spaced = ""
    for letter in text:
        category = unicodedata.category(letter)
        if letter in " \t\n\r" or category == "Zs":
            spaced += " "
        elif letter in "\0�" or category in ("Cc", "Cf"):
            continue
        elif any(first <= ord(letter) <= last for first, last in IDEOGRAPHS):
            spaced += f" {letter} "
        else:
            spaced += letter
    words = []
    for word in spaced.split():
        if uncased:
            decomposed = unicodedata.normalize("NFD", word.lower())
            word = "".join(letter for letter in decomposed if unicodedata.category(letter) != "Mn")
        words += "".join(f" {letter} " if is_punctuation(letter) else letter for letter in word).split()
    return words


def is_punctuation(letter: str) -> bool:
    visible_ascii = "!" <= letter <= "~"
    return unicodedata.category(letter)[0] == "P" or (visible_ascii and not letter.isalnum())


def reference_pieces(word: str, vocabulary: set[str]) -> list[str]:
    """What the original's WordpieceTokenizer makes of a word: the longest token, then the longest of the rest."""
    if len(word) > LONGEST_WORD:
        return ["[UNK]"]
    tokens: list[str] = []
    start = 0
    while start < len(word):
        prefix = "##" if start else ""
        ends = [end for end in range(len(word), start, -1) if prefix + word[start:end] in vocabulary]
        if not ends:
            return ["[UNK]"]
        tokens.append(prefix + word[start : ends[0]])
        start = ends[0]
    return tokens


def reference(text: str, tokenizer: WordPiece) -> list[str]:
    words = reference_words(text, uncased=not tokenizer.cased)
    known = vocabulary_of(tokenizer)
    return [token for word in words for token in reference_pieces(word, known)]


@cache
def vocabulary_of(tokenizer: WordPiece) -> set[str]:
    return set(tokenizer.vocabulary)


@cache
def load(folder: Path) -> WordPiece:
    return WordPiece.load(folder)


def pieces_of(tokenizer: WordPiece, text: str) -> list[str]:
    return [tokenizer.id_to_token(number) for number in tokenizer.encode(text).ids]


HARD = [
    "",
    " \t\r\n\u00a0\u3000\u2028\u2029 ",
    "Hello,world!don't (U.S.A.) $5.00 a+b=c `x` ~^|<>",
    "naïve résumé nai\u0308ve re\u0301sume\u0301",
    "a" + "\u0301" * 1000 + "b",
    "한국어를 공부합니다.",
    unicodedata.normalize("NFD", "한국어"),
    "ㄱㅏㅋㅋ \u1100\u1161 ﾊﾝ",
    "中文abc日本語カタカナ がぎ \uf900𫠠\U0002f800",
    "ΟΔΟΣ Σ ΑΣ. ΑΣ.Α ΑΣ'Σ ΣΣ 1Σ Α\u0301Σ\u0301",
    "İstanbul I\u0307 ı ß ﬁ \u01c5 ẞ \u2126 \u212b",
    "👨\u200d👩\u200d👧 🇰🇷 ❤\ufe0f 👍\U0001f3fd",
    "\u202eabc\u202c \u200f\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627\u064b \u0643\u0640\u062a",
    "Ｈｅｌｌｏ，１２３！",
    "\x00a\x01b\x7fc\x85d\x0be\x0cf\x1cg\u00adh\ufeffi\u200bj�k",
    "\ue000a \uf8ff\U000f0000 b\ufffe \uffff \u0378 \U0010ffff",
    "[MASK] [CLS] [SEP] [PAD] [UNK] [unused1] ##ing",
    "a" * 100,
    "a" * 101,
    "a" * 200,
    "a" * 201,
    "e\u0301" * 100,
    "e\u0301" * 201,
    "x" * 300 + "," + "y" * 300,
    "क\u094dष\u093f สว\u0e31สด\u0e35 க\u0bcd",
    "‘quoted’ “words” — … ¡olé! «» · § ¶ € ×",
]

TROUBLE = st.sampled_from(sorted(set("".join(HARD) + " .,[]#\u0345ςσ\u0300\u05bfṩ각\u11a8ำ")))
LETTERS = st.characters(exclude_categories=["Cs", "Cn"]).filter(lambda letter: letter not in CHANGED_SINCE)
TEXTS = st.text(st.one_of(st.characters(min_codepoint=32, max_codepoint=126), TROUBLE, LETTERS), max_size=40)


@pytest.fixture(scope="module", params=VOCABULARIES)
def tokenizer(request: pytest.FixtureRequest, data_folder: Path) -> WordPiece:
    return load(data_folder / "vocab" / request.param)


@pytest.mark.parametrize("text", HARD, ids=ascii)
def test_hard_text_is_cut_as_the_original_cuts_it(tokenizer: WordPiece, text: str) -> None:
    assert pieces_of(tokenizer, text) == reference(text, tokenizer)


def test_every_letter_is_what_it_was(tokenizer: WordPiece) -> None:
    """Alone, inside a word, and behind a capital: each character that this Python knows, in both places."""
    letters = map(chr, range(sys.maxunicode + 1))
    known = [each for each in letters if unicodedata.category(each) not in ("Cn", "Cs") and each not in CHANGED_SINCE]
    # Private use is a hundred thousand times the same; Hangul and ideographs are eight in ten of the rest.
    sample = [
        each for place, each in enumerate(known) if unicodedata.category(each) not in ("Lo", "Co") or not place % 37
    ]
    texts = [f"a{letter}b A{letter} {letter}" for letter in sample]
    for text, ids in zip(texts, tokenizer.encode_ids_batch(texts), strict=True):
        assert [tokenizer.id_to_token(each) for each in ids] == reference(text, tokenizer), ascii(text)


@settings(max_examples=300, deadline=None)
@given(text=TEXTS)
def test_any_text_is_cut_as_the_original_cuts_it(data_folder: Path, text: str) -> None:
    for name in ("bert-base-uncased", "bert-base-multilingual-cased"):
        tokenizer = load(data_folder / "vocab" / name)
        assert pieces_of(tokenizer, text) == reference(text, tokenizer)


def test_half_a_surrogate_pair_is_a_letter_of_no_vocabulary(tokenizer: WordPiece) -> None:
    assert pieces_of(tokenizer, "the a\ud800b end") == reference("the a\ud800b end", tokenizer)


THEIRS_DIFFER = ("𫠠", "Σ", "\ue000", "a" * 101, "e\u0301" * 100)
"""In ideographs of extension E, final sigma, private use, and words from 101 to 200 letters."""


def build_theirs(tokenizer: WordPiece) -> Any:
    vocabulary = {token: number for number, token in enumerate(tokenizer.vocabulary)}
    return BertTokenizer(vocabulary, do_lower_case=not tokenizer.cased)


def assert_same(tokenizer: WordPiece, theirs: Any, texts: list[str]) -> None:
    wanted = theirs(texts, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    for text, ours, ids, offsets in zip(
        texts, tokenizer.encode_batch(texts), wanted["input_ids"], wanted["offset_mapping"], strict=True
    ):
        assert ours.ids == ids, text
        if not any(unicodedata.category(each) == "Mn" or "\u1160" <= each <= "\u11ff" for each in text):
            assert ours.offsets == offsets, text  # else theirs stop before the marks


def test_real_text_is_cut_as_transformers_cuts_it(tokenizer: WordPiece, data_folder: Path) -> None:
    files = [data_folder / "glue" / "SST-2" / "dev.tsv", data_folder / "korean" / "nsmc-dev-2k.tsv"]
    texts = [line for file in files for line in file.read_text(encoding="utf-8").split("\n")[:500]]
    assert_same(tokenizer, build_theirs(tokenizer), texts)


def test_hard_text_is_cut_as_transformers_cuts_it_but_for_what_it_gets_wrong(tokenizer: WordPiece) -> None:
    texts = [text for text in HARD if not any(each in text for each in THEIRS_DIFFER) and "[MASK]" not in text]
    assert len(texts) > 15
    assert_same(tokenizer, build_theirs(tokenizer), texts)


def test_special_pieces_are_found_as_transformers_finds_them(tokenizer: WordPiece) -> None:
    text = "A [MASK] is[MASK] here [SEP] or [mask]."
    theirs = build_theirs(tokenizer)(text, add_special_tokens=False, return_offsets_mapping=True)
    assert tokenizer.encode(text, specials=True) == (theirs["input_ids"], theirs["offset_mapping"])


@pytest.mark.parametrize("cased", [False, True])
@pytest.mark.parametrize("form", [None, "NFC", "NFD"])
def test_a_trained_vocabulary_serves_transformers(
    tmp_path: Path, data_folder: Path, cased: bool, form: Literal["NFC", "NFD"] | None
) -> None:
    lines = (data_folder / "korean" / "nsmc-dev-2k.tsv").read_text(encoding="utf-8").split("\n")[:300]
    trained = train(lines, vocab_size=700, cased=cased, unicode_form=form)
    trained.save(tmp_path)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    assert_same(trained, theirs, [*lines, *(text for text in HARD if "[MASK]" not in text)])
    both = theirs("영화", "좋다 [MASK]")
    inner = [trained.encode("영화").ids, [*trained.encode("좋다").ids, trained.mask_id]]
    assert both["input_ids"] == [trained.cls_id, *inner[0], trained.sep_id, *inner[1], trained.sep_id]
    assert both["token_type_ids"] == [0] * (len(inner[0]) + 2) + [1] * (len(inner[1]) + 1)
    assert (theirs.pad_token_id, theirs.mask_token_id, len(theirs)) == (0, 4, trained.vocab_size)
