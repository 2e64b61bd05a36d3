"""A tokenizer that needs no training."""

from tests.word_hashes import tokenizer as tokenizer
