"""The cache of words gives the ids that the library gives for whole texts."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

from bertkit.errors import BertkitError
from bertkit.text import byte_bpe, word_cache, wordpiece
from bertkit.text.normalization import BertSpecialTokens, NormalizationRules, build_tokenizer
from bertkit.text.word_cache import BREAK, TextEncoder, splits_at_spaces

TEXTS = [
    "The cats sat on a mat, the dogs did not.",
    "Ὀδυσσεύς ΟΔΟΣ και ὁδός",
    "한국어 문장도 있다.",
    "naïve café 中文字 don't",
] * 3
CHARACTERS = [
    *"abcdeéΣσςΑΒ.,'’:!?-_[]()$+한국가다中文가",
    " ",
    " ",
    "  ",
    "\n",
    "\t",
    "\r",
    "\u00a0",
    "\u2003",
    "\u0301",
    "\u200b",
    "\u00ad",
    "ﬁ",
    "İ",
    "\ufffd",
    "\x1c",
    "\x85",
    "[MASK]",
    "[SEP]",
    "the",
    "cats",
    "mat",
]


def bert_tokenizer(*, lowercase: bool = True, strip_accents: bool | None = None) -> Tokenizer:
    """A tokenizer with the library's own rules for BERT, as most published models have."""
    vocabulary = wordpiece.train(TEXTS, vocab_size=160, cased=not lowercase).vocabulary
    backend = Tokenizer(models.WordPiece({token: id for id, token in enumerate(vocabulary)}, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=lowercase, strip_accents=strip_accents)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return backend


def own_tokenizer(*, lowercase: bool, strip_accents: bool, chinese: bool = True) -> Tokenizer:
    """A tokenizer with bertkit's rules."""
    vocabulary = wordpiece.train(TEXTS, vocab_size=160, cased=not lowercase).vocabulary
    rules = NormalizationRules(lowercase=lowercase, strip_accents=strip_accents, chinese=chinese, longest_word=9)
    return build_tokenizer({token: id for id, token in enumerate(vocabulary)}, rules, BertSpecialTokens())


TOKENIZERS = {
    "the library's rules": lambda: bert_tokenizer(),
    "the library's rules, cased": lambda: bert_tokenizer(lowercase=False, strip_accents=False),
    "bertkit's rules": lambda: own_tokenizer(lowercase=True, strip_accents=True),
    "bertkit's rules, cased": lambda: own_tokenizer(lowercase=False, strip_accents=False, chinese=False),
}


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("most_words", [6, 1000])
def test_ids_are_those_of_whole_texts(name: str, most_words: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_cache, "_MOST_WORDS", most_words)
    monkeypatch.setattr(word_cache, "_LONGEST_WORD", 5)
    whole = TOKENIZERS[name]()
    assert splits_at_spaces(whole)
    whole.encode_special_tokens = True
    encoder = TextEncoder(TOKENIZERS[name]())
    draw = random.Random(3)
    for _ in range(60):
        texts = ["".join(draw.choices(CHARACTERS, k=draw.randint(0, 60))) for _ in range(draw.randint(1, 4))]
        found = encoder.encode([f"{text}{BREAK}" for text in texts])
        for text, ids in zip(texts, found, strict=True):
            assert [*whole.encode(text, add_special_tokens=False).ids, encoder.break_id] == ids.tolist(), repr(text)


def test_breaks_separate_what_is_encoded_apart() -> None:
    encoder = TextEncoder(bert_tokenizer())
    (cats, _), (on, *_) = (each.tolist() for each in encoder.encode([f"cats{BREAK}", f"on a{BREAK}"]))
    (found,) = encoder.encode([f"cats{BREAK}on{BREAK}{BREAK}"])
    assert found.tolist() == [cats, encoder.break_id, on, encoder.break_id, encoder.break_id]


def test_a_word_is_split_once() -> None:
    encoder = TextEncoder(bert_tokenizer())
    first = encoder.encode([f"the cats{BREAK}"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoder, "_split_into_subwords", None)
        again = encoder.encode([f"the cats{BREAK}", f"cats the{BREAK}"])
    assert again[0].tolist() == first[0].tolist()
    assert sorted(again[1].tolist()) == sorted(first[0].tolist())


def with_normalizer(*rules: normalizers.Normalizer) -> Tokenizer:
    backend = bert_tokenizer()
    backend.normalizer = normalizers.Sequence(list(rules))
    return backend


def with_pre_tokenizer(rule: pre_tokenizers.PreTokenizer) -> Tokenizer:
    backend = bert_tokenizer()
    backend.pre_tokenizer = rule
    return backend


def test_rules_that_look_beyond_a_space_are_not_cached(tmp_path: Path) -> None:
    byte_bpe.train(TEXTS, vocab_size=300).save(tmp_path)
    spaced, accented = bert_tokenizer(), with_normalizer(normalizers.NFKC())
    spaced.add_tokens([AddedToken("two words")])
    accented.add_tokens([AddedToken("\u00b4", normalized=True)])  # NFKC makes a space and a combining accent of it
    others = [
        Tokenizer.from_file(str(tmp_path / "tokenizer.json")),
        spaced,
        accented,
        with_normalizer(normalizers.Lowercase(), normalizers.Replace(Regex("a +b"), "c")),
        with_normalizer(normalizers.Prepend("x")),
        with_pre_tokenizer(pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])),
        with_pre_tokenizer(
            pre_tokenizers.Sequence([pre_tokenizers.Split(" t", "isolated"), pre_tokenizers.Whitespace()])
        ),
        Tokenizer(models.WordPiece({"[UNK]": 0}, unk_token="[UNK]")),
    ]
    assert [splits_at_spaces(each) for each in others] == [False] * len(others)
    encoder = TextEncoder(spaced)
    (found,) = encoder.encode([f"two words{BREAK}"])
    assert found.tolist() == [spaced.token_to_id("two words"), encoder.break_id]
    assert found.dtype == np.uint32


def test_a_token_with_the_break_is_refused() -> None:
    backend = bert_tokenizer()
    backend.add_tokens([AddedToken("a\0b")])
    with pytest.raises(BertkitError, match="has a token with the character NUL"):
        TextEncoder(backend)
