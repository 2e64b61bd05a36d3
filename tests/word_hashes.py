"""A tokenizer that needs no training: one token per word, its id a hash of the word."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence

import pytest

from bertkit.contracts import Tokenizer, Tokens


class WordHashes:
    vocab_size = 99
    pad_id, unk_id, cls_id, sep_id, mask_id = range(5)
    start_id, between_ids, end_id = cls_id, (sep_id,), sep_id

    def encode(self, text: str) -> Tokens:
        words = list(re.finditer(r"\w+|[^\w\s]", text))
        ids = [5 + zlib.crc32(word.group().lower().encode()) % (self.vocab_size - 5) for word in words]
        return Tokens(ids, [word.span() for word in words])

    def encode_batch(self, texts: Sequence[str]) -> list[Tokens]:
        return [self.encode(text) for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(map(str, ids))


@pytest.fixture
def tokenizer() -> Tokenizer:
    return WordHashes()
