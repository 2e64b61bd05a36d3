"""WordPiece equals a slow reference of the original's rules, and transformers' BertTokenizer.

The reference is written from google-research/bert ``tokenization.py``, without libraries, one step after the other.
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
"""Characters that have another category or decomposition since Unicode 16."""


def reference_words(text: str, *, uncased: bool) -> list[str]:
    """The words of a text by the original's BasicTokenizer."""
    spaced = ""
    for character in text:
        category = unicodedata.category(character)
        if character in " \t\n\r" or category == "Zs":
            spaced += " "
        elif character in "\0�" or category in ("Cc", "Cf"):
            continue
        elif any(first <= ord(character) <= last for first, last in IDEOGRAPHS):
            spaced += f" {character} "
        else:
            spaced += character
    words = []
    for word in spaced.split():
        if uncased:
            decomposed = unicodedata.normalize("NFD", word.lower())
            word = "".join(character for character in decomposed if unicodedata.category(character) != "Mn")
        words += "".join(f" {character} " if is_punctuation(character) else character for character in word).split()
    return words


def is_punctuation(character: str) -> bool:
    visible_ascii = "!" <= character <= "~"
    return unicodedata.category(character)[0] == "P" or (visible_ascii and not character.isalnum())


def reference_subwords(word: str, vocabulary: set[str]) -> list[str]:
    """The subwords of a word by the original's WordpieceTokenizer: the longest one, then the longest of the rest."""
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
    return [token for word in words for token in reference_subwords(word, known)]


@cache
def vocabulary_of(tokenizer: WordPiece) -> set[str]:
    return set(tokenizer.vocabulary)


@cache
def load(folder: Path) -> WordPiece:
    return WordPiece.load(folder)


def subwords_of(tokenizer: WordPiece, text: str) -> list[str]:
    return [tokenizer.id_to_token(number) for number in tokenizer.encode(text).ids]


UNUSUAL = [
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

TROUBLE = st.sampled_from(sorted(set("".join(UNUSUAL) + " .,[]#\u0345ςσ\u0300\u05bfṩ각\u11a8ำ")))
LETTERS = st.characters(exclude_categories=["Cs", "Cn"]).filter(lambda character: character not in CHANGED_SINCE)
TEXTS = st.text(st.one_of(st.characters(min_codepoint=32, max_codepoint=126), TROUBLE, LETTERS), max_size=40)


@pytest.fixture(scope="module", params=VOCABULARIES)
def tokenizer(request: pytest.FixtureRequest, data_folder: Path) -> WordPiece:
    return load(data_folder / "vocab" / request.param)


@pytest.mark.parametrize("text", UNUSUAL, ids=ascii)
def test_unusual_text_is_tokenized_as_by_the_original(tokenizer: WordPiece, text: str) -> None:
    assert subwords_of(tokenizer, text) == reference(text, tokenizer)


def test_every_character_is_tokenized_as_by_the_original(tokenizer: WordPiece) -> None:
    """Each character that this Python knows: alone, inside a word, and after a capital letter."""
    code_points = map(chr, range(sys.maxunicode + 1))
    known = [
        each for each in code_points if unicodedata.category(each) not in ("Cn", "Cs") and each not in CHANGED_SINCE
    ]
    # The 100,000 characters of private use behave alike; Hangul and ideographs are 80 % of the rest.
    sample = [
        each for index, each in enumerate(known) if unicodedata.category(each) not in ("Lo", "Co") or not index % 37
    ]
    texts = [f"a{character}b A{character} {character}" for character in sample]
    for text, ids in zip(texts, tokenizer.encode_ids_batch(texts), strict=True):
        assert [tokenizer.id_to_token(each) for each in ids] == reference(text, tokenizer), ascii(text)


@settings(max_examples=300, deadline=None)
@given(text=TEXTS)
def test_any_text_is_tokenized_as_by_the_original(data_folder: Path, text: str) -> None:
    for name in ("bert-base-uncased", "bert-base-multilingual-cased"):
        tokenizer = load(data_folder / "vocab" / name)
        assert subwords_of(tokenizer, text) == reference(text, tokenizer)


def test_half_a_surrogate_pair_is_an_unknown_character(tokenizer: WordPiece) -> None:
    assert subwords_of(tokenizer, "the a\ud800b end") == reference("the a\ud800b end", tokenizer)


HF_DIFFERS = ("𫠠", "Σ", "\ue000", "a" * 101, "e\u0301" * 100)
"""Texts that transformers tokenizes wrongly: ideographs of extension E, final sigma, private use, long words."""


def build_hf_tokenizer(tokenizer: WordPiece) -> Any:
    vocabulary = {token: number for number, token in enumerate(tokenizer.vocabulary)}
    return BertTokenizer(vocabulary, do_lower_case=not tokenizer.cased)


def assert_same(tokenizer: WordPiece, hf_tokenizer: Any, texts: list[str]) -> None:
    expected = hf_tokenizer(texts, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    for text, ours, ids, offsets in zip(
        texts, tokenizer.encode_batch(texts), expected["input_ids"], expected["offset_mapping"], strict=True
    ):
        assert ours.ids == ids, text
        if not any(unicodedata.category(each) == "Mn" or "\u1160" <= each <= "\u11ff" for each in text):
            assert ours.offsets == offsets, text  # otherwise the offsets of transformers end before the marks


def test_real_text_is_tokenized_as_by_transformers(tokenizer: WordPiece, data_folder: Path) -> None:
    files = [data_folder / "glue" / "SST-2" / "dev.tsv", data_folder / "korean" / "nsmc-dev-2k.tsv"]
    texts = [line for file in files for line in file.read_text(encoding="utf-8").split("\n")[:500]]
    assert_same(tokenizer, build_hf_tokenizer(tokenizer), texts)


def test_unusual_text_is_tokenized_as_by_transformers_except_for_its_faults(tokenizer: WordPiece) -> None:
    texts = [text for text in UNUSUAL if not any(each in text for each in HF_DIFFERS) and "[MASK]" not in text]
    assert len(texts) > 15
    assert_same(tokenizer, build_hf_tokenizer(tokenizer), texts)


def test_special_tokens_are_found_as_by_transformers(tokenizer: WordPiece) -> None:
    text = "A [MASK] is[MASK] here [SEP] or [mask]."
    expected = build_hf_tokenizer(tokenizer)(text, add_special_tokens=False, return_offsets_mapping=True)
    assert tokenizer.encode(text, specials=True) == (expected["input_ids"], expected["offset_mapping"])


@pytest.mark.parametrize("cased", [False, True])
@pytest.mark.parametrize("form", [None, "NFC", "NFD"])
def test_transformers_loads_a_trained_vocabulary(
    tmp_path: Path, data_folder: Path, cased: bool, form: Literal["NFC", "NFD"] | None
) -> None:
    lines = (data_folder / "korean" / "nsmc-dev-2k.tsv").read_text(encoding="utf-8").split("\n")[:300]
    trained = train(lines, vocab_size=700, cased=cased, unicode_form=form)
    trained.save(tmp_path)
    hf_tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    assert_same(trained, hf_tokenizer, [*lines, *(text for text in UNUSUAL if "[MASK]" not in text)])
    both = hf_tokenizer("영화", "좋다 [MASK]")
    inner = [trained.encode("영화").ids, [*trained.encode("좋다").ids, trained.mask_id]]
    assert both["input_ids"] == [trained.cls_id, *inner[0], trained.sep_id, *inner[1], trained.sep_id]
    assert both["token_type_ids"] == [0] * (len(inner[0]) + 2) + [1] * (len(inner[1]) + 1)
    assert (hf_tokenizer.pad_token_id, hf_tokenizer.mask_token_id, len(hf_tokenizer)) == (0, 4, trained.vocab_size)
