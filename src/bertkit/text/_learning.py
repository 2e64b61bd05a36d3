"""Learning a vocabulary: words are counted here, pieces are merged by the library.

Given raw text, the library's trainer numbers letters in the order of a randomly seeded hash table, so two runs on one
text give two vocabularies; and where there are more letters than pieces are wanted, it exceeds what was asked. So it
is given the letters, in our order, and the words as often as they occur.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from bertkit.text._rules import CONTINUES

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


def learn_pieces(texts: Iterable[str], rules: Tokenizer, *, size: int, first: Iterable[str]) -> list[str]:
    """At most ``size`` pieces in the order of their ids: those of ``first``, letters, and what they merge to.

    ``rules`` is any tokenizer with the normalizer and the pre-tokenizer wanted. Without a word in ``texts`` there are
    only the ``first``.
    """
    first = list(first)
    words = _count_words(texts, rules)
    room = max(size // 2, min(_SMALL_ALPHABET, size - len(first)))
    letters = _choose_letters(words, rules, room=room)
    alphabet = [letter for letter in letters if len(letter) == 1]
    learner = Tokenizer(models.WordPiece())
    learner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        min_frequency=_LEAST_COUNT,
        special_tokens=[*first, *letters],
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        continuing_subword_prefix=CONTINUES,
        show_progress=False,
    )
    learner.train_from_iterator(_repeat(words, set(alphabet)), trainer)
    vocabulary: dict[str, int] = learner.get_vocab()
    return sorted(vocabulary, key=lambda piece: vocabulary[piece])


def _count_words(texts: Iterable[str], rules: Tokenizer) -> Counter[str]:
    """How often each word occurs; a word too long for any piece is none.

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
            _count_parts(chunks, rules, words)
            chunks.clear()
            size = 0
    _count_parts(chunks, rules, words)
    return words


def _count_parts(chunks: Counter[str], rules: Tokenizer, words: Counter[str]) -> None:
    """Add the words of ``chunks`` to ``words``, and let go of rare ones when there are too many."""
    longest = rules.model.max_input_chars_per_word
    for chunk, count in chunks.items():
        for word, _ in rules.pre_tokenizer.pre_tokenize_str(rules.normalizer.normalize_str(chunk)):
            if len(word) <= longest:
                words[word] += count
    if len(words) > _MOST_WORDS:
        least = sorted(words.values(), reverse=True)[_MOST_WORDS // 2]
        for word in [word for word, count in words.items() if count <= least]:
            del words[word]


def _choose_letters(words: Counter[str], rules: Tokenizer, *, room: int) -> list[str]:
    """The most frequent letters, each at the beginning of a word and, where it can stand there, inside one."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for letter in word:
            counts[letter] += count
    wanted = _COVERAGE * counts.total()
    kept: list[str] = []
    for letter, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        forms = [letter, CONTINUES + letter] if _can_continue(letter, rules) else [letter]
        if wanted <= 0 or len(kept) + len(forms) > room:
            break
        kept += forms
        wanted -= count
    return sorted(kept, key=lambda form: (len(form), form))


def _can_continue(letter: str, rules: Tokenizer) -> bool:
    return len(rules.pre_tokenizer.pre_tokenize_str(f"a{letter}")) == 1


def _repeat(words: Counter[str], alphabet: set[str]) -> Iterator[str]:
    """Every word of these letters as often as it was counted; a word with another letter will be [UNK]."""
    for word, count in words.items():
        if alphabet.issuperset(word):
            for start in range(0, count, _REPEATS):
                yield f"{word} " * min(_REPEATS, count - start)
