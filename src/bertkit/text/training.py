"""Learning a vocabulary: words are counted here, pieces are merged by the library.

Given raw text, the library's trainer numbers letters in the order of a randomly seeded hash table, so two runs on one
text give two vocabularies; and where there are more letters than pieces are wanted, it exceeds what was asked. So it
is given the letters, in our order, and the words as often as they occur.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from bertkit.text.normalization import CONTINUATION_PREFIX, END_OF_WORD, LONGEST_WORD

_COVERAGE = 0.9999
"""Share of all letters of the text that the alphabet covers; of the rest, a third of Wikipedia's letters, each would
take two pieces to be met a few times."""

_SMALL_ALPHABET = 256
"""Pieces. Letters, digits and punctuation of one script have room in any vocabulary, larger alphabets in half of it."""

_MOST_WORDS = 500_000
"""Different words kept in memory, about 300 MB with what the trainer makes of them; beyond, the rarest are let go."""

_CHARACTERS_AT_ONCE = 8_000_000
_LEAST_COUNT = 2
_REPEATS = 1000


def train_wordpiece(texts: Iterable[str], rules: Tokenizer, *, size: int, first: Iterable[str]) -> list[str]:
    """At most ``size`` pieces in the order of their ids: those of ``first``, letters, and what they merge to.

    ``rules`` is any tokenizer with the normalizer and the pre-tokenizer wanted. Without a word in ``texts`` there are
    only the ``first``.
    """

    def forms(letter: str) -> list[str]:
        return [letter, CONTINUATION_PREFIX + letter] if _can_continue(letter, rules) else [letter]

    words = _count_words(texts, rules, rules.model.max_input_chars_per_word)
    letters, pieces = _choose_alphabet(words, forms, list(first), size)
    learner, trainer = Tokenizer(models.WordPiece()), trainers.WordPieceTrainer
    return _in_order(
        _learn(learner, trainer, words, letters, pieces, size, continuing_subword_prefix=CONTINUATION_PREFIX)
    )


def train_bpe(
    texts: Iterable[str], rules: Tokenizer, *, size: int, first: Iterable[str]
) -> tuple[list[str], list[tuple[str, str]]]:
    """The same for byte pairs, where the last piece of a word is marked: pieces, and what is merged in which order.

    Every letter has both forms, as in the published vocabulary.
    """

    def forms(letter: str) -> list[str]:
        return [letter, letter + END_OF_WORD]

    words = _count_words(texts, rules, LONGEST_WORD)
    letters, pieces = _choose_alphabet(words, forms, list(first), size)
    learner, trainer = Tokenizer(models.BPE()), trainers.BpeTrainer
    model = _learn(learner, trainer, words, letters, pieces, size, end_of_word_suffix=END_OF_WORD)
    return _in_order(model), [(left, right) for left, right in model["merges"]]


def train_byte_bpe(
    texts: Iterable[str], rules: Tokenizer, *, size: int, first: Iterable[str]
) -> tuple[list[str], list[tuple[str, str]]]:
    """The same for pairs of bytes, all 256 of which are pieces; ``rules`` spell bytes as letters.

    A word is learned with one space before it, whatever white space stood there.
    """
    words = _count_words(texts, rules, LONGEST_WORD)
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    model = _learn(Tokenizer(models.BPE()), trainers.BpeTrainer, words, letters, [*first, *letters], size)
    return _in_order(model), [(left, right) for left, right in model["merges"]]


def most_frequent_words(texts: Iterable[str], rules: Tokenizer, *, size: int) -> list[str]:
    """The ``size`` most frequent words, the most frequent first; equals in alphabetical order."""
    words = _count_words(texts, rules, LONGEST_WORD)
    return sorted(words, key=lambda word: (-words[word], word))[:size]


def _learn(
    learner: Tokenizer,
    trainer: Callable[..., Any],
    words: Counter[str],
    letters: list[str],
    first: list[str],
    size: int,
    **marks: str,
) -> dict[str, Any]:
    """The ``model`` of the learner's ``tokenizer.json``; ``first`` are the pieces that are not learned."""
    learner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    rules = trainer(
        vocab_size=size,
        min_frequency=_LEAST_COUNT,
        special_tokens=first,
        initial_alphabet=letters,
        limit_alphabet=len(letters),
        show_progress=False,
        **marks,
    )
    learner.train_from_iterator(_repeat(words, set(letters)), rules)
    model: dict[str, Any] = json.loads(learner.to_str())["model"]
    return model


def _in_order(model: dict[str, Any]) -> list[str]:
    vocabulary: dict[str, int] = model["vocab"]
    return sorted(vocabulary, key=lambda piece: vocabulary[piece])


def _count_words(texts: Iterable[str], rules: Tokenizer, longest: int) -> Counter[str]:
    """How often each word occurs; one of more than ``longest`` characters, too long for any piece, is none.

    White space ends a word under all rules, so what stands between is counted as it is, and the rules are put to
    each kind of it once.
    """
    words: Counter[str] = Counter()
    chunks: Counter[str] = Counter()
    size = 0
    for text in texts:
        chunks.update(text.split())
        size += len(text)
        if size > _CHARACTERS_AT_ONCE:
            _count_parts(chunks, rules, words, longest)
            chunks.clear()
            size = 0
    _count_parts(chunks, rules, words, longest)
    return words


def _count_parts(chunks: Counter[str], rules: Tokenizer, words: Counter[str], longest: int) -> None:
    """Add the words of ``chunks`` to ``words``, and let go of rare ones when there are too many."""
    for chunk, count in chunks.items():
        for word, _ in rules.pre_tokenizer.pre_tokenize_str(rules.normalizer.normalize_str(chunk)):
            if len(word) <= longest:
                words[word] += count
    if len(words) > _MOST_WORDS:
        least = sorted(words.values(), reverse=True)[_MOST_WORDS // 2]
        for word in [word for word, count in words.items() if count <= least]:
            del words[word]


def _choose_alphabet(
    words: Counter[str], forms: Callable[[str], list[str]], first: list[str], size: int
) -> tuple[list[str], list[str]]:
    """The letters that are worth pieces, and ``first`` with these behind it: the ``forms`` of every letter."""
    room = max(size // 2, min(_SMALL_ALPHABET, size - len(first)))
    letters = _choose_letters(words, forms, room=room)
    pieces = sorted((form for letter in letters for form in forms(letter)), key=lambda form: (len(form), form))
    return letters, [*first, *pieces]


def _choose_letters(words: Counter[str], forms: Callable[[str], list[str]], *, room: int) -> list[str]:
    """The most frequent letters whose ``forms`` have room together, in alphabetical order."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for letter in word:
            counts[letter] += count
    wanted = _COVERAGE * counts.total()
    kept: list[str] = []
    for letter, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        room -= len(forms(letter))
        if wanted <= 0 or room < 0:
            break
        kept.append(letter)
        wanted -= count
    return sorted(kept)


def _can_continue(letter: str, rules: Tokenizer) -> bool:
    return len(rules.pre_tokenizer.pre_tokenize_str(f"a{letter}")) == 1


def _repeat(words: Counter[str], alphabet: set[str]) -> Iterator[str]:
    """Every word of these letters as often as it was counted; a word with another letter will be [UNK]."""
    for word, count in words.items():
        if alphabet.issuperset(word):
            for start in range(0, count, _REPEATS):
                yield f"{word} " * min(_REPEATS, count - start)
