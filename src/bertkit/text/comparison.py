"""How well several vocabularies fit the same text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain

import numpy as np

from bertkit.batch import id_of
from bertkit.contracts import SubwordTokenizer
from bertkit.errors import data_error
from bertkit.results import Result, Results


@dataclass(frozen=True, slots=True, repr=False)
class TokenizerFit(Result):
    """What a tokenizer makes of a text.

    ``tokens_per_word`` is its fertility, for words between white space; ``unknown`` the share of unknown tokens.
    ``characters_per_token`` counts white space too.
    """

    tokenizer: str
    vocab_size: int
    tokens_per_word: float
    characters_per_token: float
    unknown: float


def compare_tokenizers(tokenizers: Mapping[str, SubwordTokenizer], texts: Iterable[str]) -> Results[TokenizerFit]:
    """The fit of each tokenizer by its name; one text is in memory at a time. Without any word it is a data error."""
    words = characters = 0
    tokens, unknown = dict.fromkeys(tokenizers, 0), dict.fromkeys(tokenizers, 0)
    for text in texts:
        lines = text.splitlines()
        words += sum(len(line.split()) for line in lines)
        characters += len(text)
        for name, tokenizer in tokenizers.items():
            encoded = tokenizer.encode_batch(lines)
            ids = np.fromiter(map(id_of, chain.from_iterable(each.ids for each in encoded)), dtype=np.int64)
            tokens[name] += len(ids)
            unknown[name] += int(np.count_nonzero(ids == tokenizer.unk_id))
    if not words:
        raise data_error("there is no word in the text on which the tokenizers are compared.")
    return Results(
        TokenizerFit(
            tokenizer=name,
            vocab_size=tokenizer.vocab_size,
            tokens_per_word=tokens[name] / words,
            characters_per_token=characters / max(1, tokens[name]),
            unknown=unknown[name] / max(1, tokens[name]),
        )
        for name, tokenizer in tokenizers.items()
    )
