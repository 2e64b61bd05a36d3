"""Training a vocabulary: words are counted here, and the library's trainers merge characters into subwords.

Given raw text, the library's trainer numbers characters in the order of a randomly seeded hash table, so two runs on
one text give two vocabularies; and if the text has more distinct characters than the vocabulary may have subwords, the
vocabulary becomes too large. So the trainer is given the characters, in a fixed order, and every word as often as it
occurs.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from bertkit.errors import data_error
from bertkit.text.bpe_files import Merge
from bertkit.text.normalization import CONTINUATION_PREFIX, END_OF_WORD, LONGEST_WORD
from bertkit.text.tokenizer_files import ModelDescription

_COVERAGE = 0.9999
"""Share of all characters of the text that the alphabet covers. The rest are a third of the distinct characters of
Wikipedia; each would take two subwords and occur only a few times."""

_SMALL_ALPHABET = 256
"""Subwords. The characters of one script fit into any vocabulary; larger alphabets may take half of it."""

_MOST_WORDS = 500_000
"""Distinct words in memory, about 300 MB with what the trainer makes of them; beyond it, the rarest are dropped."""

_CHARACTERS_AT_ONCE = 8_000_000
_LEAST_COUNT = 2
_REPEATS = 1000


def train_wordpiece(texts: Iterable[str], rules: Tokenizer, *, size: int, first: Iterable[str]) -> list[str]:
    """At most ``size`` subwords in the order of their ids: those of ``first``, single characters, and merged ones.

    ``rules`` is any tokenizer with the wanted normalizer and pre-tokenizer. If ``texts`` have no word, the result is
    ``first``.
    """

    def forms(character: str) -> list[str]:
        return [character, CONTINUATION_PREFIX + character] if _can_continue(character, rules) else [character]

    words = count_words(texts, rules, rules.model.max_input_chars_per_word)
    characters, subwords = _choose_alphabet(words, forms, list(first), size)
    trainer = _trainer(
        trainers.WordPieceTrainer, characters, subwords, size, continuing_subword_prefix=CONTINUATION_PREFIX
    )
    return _in_order(_train(Tokenizer(models.WordPiece()), trainer, words, characters))


def train_bpe(
    texts: Iterable[str], rules: Tokenizer, *, size: int, first: Iterable[str]
) -> tuple[list[str], list[Merge]]:
    """``train_wordpiece`` for byte-pair encoding, which marks the last subword of a word: subwords and ordered merges.

    Every character has both forms, with and without ``</w>``, as in the published vocabulary.
    """

    def forms(character: str) -> list[str]:
        return [character, character + END_OF_WORD]

    words = count_words(texts, rules, LONGEST_WORD)
    characters, subwords = _choose_alphabet(words, forms, list(first), size)
    trainer = _trainer(trainers.BpeTrainer, characters, subwords, size, end_of_word_suffix=END_OF_WORD)
    model = _train(Tokenizer(models.BPE()), trainer, words, characters)
    return _in_order(model), [(left, right) for left, right in model["merges"]]


def train_byte_bpe(
    texts: Iterable[str], rules: Tokenizer, *, size: int, first: Iterable[str]
) -> tuple[list[str], list[Merge]]:
    """``train_bpe`` for byte-level BPE, whose alphabet is all 256 bytes; ``rules`` write bytes as characters.

    A word is counted with one space before it, whatever white space preceded it.
    """
    words = count_words(texts, rules, LONGEST_WORD)
    characters = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = _trainer(trainers.BpeTrainer, characters, [*first, *characters], size)
    model = _train(Tokenizer(models.BPE()), trainer, words, characters)
    return _in_order(model), [(left, right) for left, right in model["merges"]]


def most_frequent_words(texts: Iterable[str], rules: Tokenizer, *, size: int) -> list[str]:
    """The ``size`` most frequent words, the most frequent first; words of equal frequency in alphabetical order."""
    words = count_words(texts, rules, LONGEST_WORD)
    return sorted(words, key=lambda word: (-words[word], word))[:size]


def _trainer(
    kind: Callable[..., trainers.Trainer],
    characters: list[str],
    first: list[str],
    size: int,
    **marks: str,
) -> trainers.Trainer:
    """A trainer that puts ``first`` before the subwords that it makes; ``marks`` are what distinguishes their forms."""
    return kind(
        vocab_size=size,
        min_frequency=_LEAST_COUNT,
        # Special tokens come first in the vocabulary and in this order, which the alphabet of the library does not.
        special_tokens=first,
        initial_alphabet=characters,
        limit_alphabet=len(characters),
        show_progress=False,
        **marks,
    )


def _train(
    backend: Tokenizer, trainer: trainers.Trainer, words: Counter[str], characters: list[str]
) -> ModelDescription:
    """Train ``backend`` and return the ``model`` of its ``tokenizer.json``."""
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.train_from_iterator(_repeat(words, set(characters)), trainer)
    model: ModelDescription = json.loads(backend.to_str())["model"]
    return model


def _in_order(model: ModelDescription) -> list[str]:
    vocabulary = model["vocab"]
    return sorted(vocabulary, key=lambda subword: vocabulary[subword])


def count_words(texts: Iterable[str], rules: Tokenizer, longest: int) -> Counter[str]:
    """How often each word occurs; words of more than ``longest`` characters, which no subword covers, are left out.

    A data error if there are words and all are longer, as in sequences of DNA without spaces.

    Under all rules white space ends a word. So the stretches between white space are counted first, and the rules,
    which are far slower than ``str.split``, are applied to each distinct stretch once.
    """
    words: Counter[str] = Counter()
    stretches: Counter[str] = Counter()
    size, left_out = 0, False
    for text in texts:
        stretches.update(text.split())
        size += len(text)
        if size > _CHARACTERS_AT_ONCE:
            left_out |= _add_words(stretches, rules, words, longest)
            stretches.clear()
            size = 0
    left_out |= _add_words(stretches, rules, words, longest)
    if left_out and not words:
        raise data_error(
            f"every word of the text has more than {longest} characters, and would be unknown. Put spaces into them, "
            "such as between each 6 letters of DNA."
        )
    return words


def _add_words(stretches: Counter[str], rules: Tokenizer, words: Counter[str], longest: int) -> bool:
    """Add the words of ``stretches`` to ``words``, and drop rare ones when there are too many.

    Whether a word is left out because it is longer than ``longest``.
    """
    left_out = False
    normalize = str if rules.normalizer is None else rules.normalizer.normalize_str
    for stretch, count in stretches.items():
        for word, _ in rules.pre_tokenizer.pre_tokenize_str(normalize(stretch)):
            if len(word) <= longest:
                words[word] += count
            else:
                left_out = True
    if len(words) > _MOST_WORDS:
        # Down to half of the limit, so that the next texts do not exceed it at once.
        kept = words.most_common(_MOST_WORDS // 2)
        words.clear()
        words.update(dict(kept))
    return left_out


def _choose_alphabet(
    words: Counter[str], forms: Callable[[str], list[str]], first: list[str], size: int
) -> tuple[list[str], list[str]]:
    """The characters that are frequent enough for a subword, and ``first`` followed by the ``forms`` of each of
    them."""
    limit = max(size // 2, min(_SMALL_ALPHABET, size - len(first)))
    characters = _choose_characters(words, forms, limit=limit)
    subwords = sorted((form for each in characters for form in forms(each)), key=lambda form: (len(form), form))
    return characters, [*first, *subwords]


def _choose_characters(words: Counter[str], forms: Callable[[str], list[str]], *, limit: int) -> list[str]:
    """The most frequent characters that have at most ``limit`` ``forms`` together, in alphabetical order."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            counts[character] += count
    uncovered = _COVERAGE * counts.total()
    kept: list[str] = []
    for character, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        limit -= len(forms(character))
        if uncovered <= 0 or limit < 0:
            break
        kept.append(character)
        uncovered -= count
    return sorted(kept)


def _can_continue(character: str, rules: Tokenizer) -> bool:
    return len(rules.pre_tokenizer.pre_tokenize_str(f"a{character}")) == 1


def _repeat(words: Counter[str], alphabet: set[str]) -> Iterator[str]:
    """Every word as often as it was counted, as the trainer takes no counts; without words that will be [UNK]."""
    for word, count in words.items():
        if alphabet.issuperset(word):
            for start in range(0, count, _REPEATS):
                yield f"{word} " * min(_REPEATS, count - start)
