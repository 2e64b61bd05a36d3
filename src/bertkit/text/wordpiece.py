"""WordPiece, BERT's tokenizer: loading, training, encoding.

The steps are those of google-research/bert ``tokenization.py``: drop control characters, split at white space and
around Chinese characters, lower-case, strip accents, split at punctuation, then take the longest subword that matches,
again and again. Gotchas:

* Stripping accents decomposes the text (NFD), which splits Hangul syllables into Jamo. The published uncased
  vocabularies were made that way and are read that way; a vocabulary trained here is composed again (NFC) by default.
* A cased tokenizer does not normalize at all: a letter with an accent and the same letter with a combining mark differ.
* ``[MASK]`` in a text is six characters of text, as in the original; ``specials=True`` makes it the special token.
* A ``tokenizer.json`` is used with the rules that it contains. Hugging Face's differ from the original in rare
  characters.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from tokenizers import AddedToken, Tokenizer

from bertkit.errors import data_error, usage_error
from bertkit.text.added_tokens import AddedTokens
from bertkit.text.base import BaseTokenizer, replace_surrogates
from bertkit.text.marks import remove_marks
from bertkit.text.normalization import (
    CONTINUATION_PREFIX,
    LONGEST_WORD,
    BertSpecialTokens,
    NormalizationRules,
    UnicodeForm,
    build_tokenizer,
)
from bertkit.text.training import count_words, train_wordpiece
from bertkit.text.wordpiece_files import VOCABULARY, read_folder, wordpiece_config

_SMALLEST = 2 * len(BertSpecialTokens._fields)


class WordPiece(BaseTokenizer):
    """BERT's tokenizer. The ids of special tokens are looked up by name in the vocabulary.

    A vocabulary may lack [MASK] and [PAD]: ``mask_id`` and ``pad_id`` are then ``unk_id``. Padding is never read, and
    what needs a mask refuses such a tokenizer.
    """

    cls_id: int
    sep_id: int

    def __init__(
        self,
        backend: Tokenizer,
        specials: BertSpecialTokens | None = None,
        source: str = "the vocabulary",
        added: AddedTokens | None = None,
    ) -> None:
        self._specials = specials or BertSpecialTokens()
        optional = (self._specials.pad, self._specials.mask)
        required = [
            token for token in self._specials if token not in optional or backend.token_to_id(token) is not None
        ]
        super().__init__(backend, required, model="BERT", source=source, added=added)
        self.unk_id, self.cls_id, self.sep_id = self.tokens_to_ids(self._specials[1:4])
        self.pad_id, self.mask_id = (self._ids.get(token, self.unk_id) for token in optional)
        self.start_id, self.between_ids, self.end_id = self.cls_id, [self.sep_id], self.sep_id

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a folder with ``tokenizer.json`` or ``vocab.txt`` and optionally ``tokenizer_config.json``, or one file.

        A bare ``vocab.txt`` is read as ``guess_case`` says.
        """
        found = read_folder(Path(path))
        return cls(found.backend, found.specials, str(found.file), found.added)

    def save(self, folder: Path | str) -> None:
        """Write ``tokenizer.json``, ``tokenizer_config.json`` and ``vocab.txt``; Hugging Face reads them."""
        flags = {
            "do_lower_case": not self.cased,
            "strip_accents": self.pre_tokenize("é") == ["e"],
            "tokenize_chinese_chars": len(self.pre_tokenize("中中")) == 2,
        }
        config = wordpiece_config(self._specials, self._ids, **flags)
        self._save(folder, config, {VOCABULARY: "\n".join(self.vocabulary) + "\n"})

    def surface_form(self, id: int) -> tuple[str, bool]:
        """The characters of a subword without its ``##``, and whether it had one, so that it continues a word."""
        token = self.id_to_token(id)
        return token.removeprefix(CONTINUATION_PREFIX), token.startswith(CONTINUATION_PREFIX)

    def count_words(self, texts: Iterable[str]) -> Counter[str]:
        """How often each word occurs in ``texts``, before it is split into subwords."""
        return count_words(map(replace_surrogates, texts), self._backend, LONGEST_WORD)

    def add_tokens(self, words: Iterable[str]) -> WordPiece:
        """A tokenizer that also has ``words``, each as one token, with new ids after the existing ones.

        A word that the rules would split (``C++``, ``[E1]``) is looked for in a text before they apply.
        """
        new: dict[str, list[str]] = {}
        for word in words:
            parts = self.pre_tokenize(word)
            if not parts or any(character.isspace() for character in word):
                raise usage_error(f'cannot add "{word}" to the vocabulary: it is blank or contains white space.')
            if "".join(parts) not in self._ids:
                new["".join(parts)] = parts
        description = self._describe()
        # All tokens, because the library gives those that only added_tokens has the first ids after the model's.
        added = {token: self.vocab_size + number for number, token in enumerate(new)}
        description["model"]["vocab"] = {**self._ids, **added}
        backend = Tokenizer.from_str(json.dumps(description))
        backend.add_tokens(
            [
                # A word that begins and ends with letters or digits is not looked for inside of others: tree-mailing.
                AddedToken(token, normalized=True, single_word=token[0].isalnum() and token[-1].isalnum())
                for token, parts in new.items()
                if len(parts) > 1
            ]
        )
        return WordPiece(backend, self._specials, added=self._added)


def train_more(texts: Iterable[str], base: WordPiece, *, vocab_size: int) -> WordPiece:
    """``base`` with words of ``texts`` added, at most ``vocab_size`` entries in all.

    Words of letters that ``base`` splits or does not know are added, those first that save the most tokens, where an
    unknown word counts as one per letter. ``texts`` are read once. Raises a data error if there is no such word.
    """
    if vocab_size <= base.vocab_size:
        raise usage_error(
            f"--vocab-size is {vocab_size:,}, and --from has {base.vocab_size:,} subwords already: "
            f"give a larger number, such as {base.vocab_size + 1000}."
        )
    counts = base.count_words(texts)
    saved = {
        word: counts[word] * (len(word) if base.unk_id in ids else len(ids) - 1)
        for word, ids in zip(counts, base.encode_ids_batch(list(counts)), strict=True)
        if remove_marks(word).isalpha() and (len(ids) > 1 or base.unk_id in ids)
    }
    if not saved:
        raise data_error("there is no word to add: --from has a subword for every word of these files.")
    best = sorted(saved, key=lambda word: (-saved[word], word))
    return base.add_tokens(best[: vocab_size - base.vocab_size])


def train(
    texts: Iterable[str],
    *,
    vocab_size: int = 30_000,
    cased: bool = False,
    strip_accents: bool | None = None,
    unicode_form: UnicodeForm | None = None,
) -> WordPiece:
    """Train a vocabulary of at most ``vocab_size`` subwords; its ``vocab_size`` is smaller for a small corpus.

    ``strip_accents`` None strips them unless ``cased``. ``unicode_form`` None is NFC where accents are stripped, which
    keeps Hangul syllables whole, and no change elsewhere; NFD with stripped accents is the original BERT. ``texts`` are
    read once, and only one is in memory at a time.
    """
    if vocab_size < _SMALLEST:
        raise usage_error(f"--vocab-size is {vocab_size}; it must be at least {_SMALLEST}.")
    strip = not cased if strip_accents is None else strip_accents
    form = "NFC" if strip and unicode_form is None else unicode_form
    rules = NormalizationRules(lowercase=not cased, strip_accents=strip, form=form)
    specials = BertSpecialTokens()
    clean_texts = map(replace_surrogates, texts)
    subwords = train_wordpiece(clean_texts, build_tokenizer({}, rules, specials), size=vocab_size, first=specials)
    if len(subwords) == len(specials):
        raise data_error("there is no text to train a vocabulary on: the input has nothing but white space.")
    return WordPiece(build_tokenizer({subword: id for id, subword in enumerate(subwords)}, rules, specials))
