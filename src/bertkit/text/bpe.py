"""Byte-pair encoding as in OpenAI GPT (Sennrich et al. 2016, arXiv 1508.07909): loading, training, encoding.

A text is normalized and split by BERT's rules as the ``tokenizers`` library implements them: control characters are
dropped, Chinese characters are separated, upper case and accents are removed, and white space and punctuation separate
words. Hugging Face reads GPT's vocabulary in the same way. OpenAI's own program splits with spaCy and repairs the text
with ftfy instead, which differs in a few contractions. Then the characters of a word, the last one marked ``</w>``, are
merged pair by pair, in the order in which training found the merges.

* ``_start_``, ``_delimiter_`` and ``_classify_`` are not in the published vocabulary: fine-tuning adds them after its
  40,478 subwords (openai/finetune-transformer-lm ``train.py``). A folder without them is read as if it had them.
* GPT has no mask and no padding token; ``mask_id`` and ``pad_id`` are those of ``<unk>``. Padding at the end of a row
  has no effect, because a causal network does not attend to later positions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

from bertkit.errors import data_error, usage_error
from bertkit.text.added_tokens import AddedTokens
from bertkit.text.base import BaseTokenizer, replace_surrogates
from bertkit.text.bpe_files import HUGGING_FACE, OPENAI, Merge, read_folder, vocabulary_and_merges
from bertkit.text.normalization import END_OF_WORD
from bertkit.text.training import train_bpe


class SpecialTokens(NamedTuple):
    """The tokens that no text becomes."""

    unk: str = "<unk>"
    start: str = "_start_"
    delimiter: str = "_delimiter_"
    extract: str = "_classify_"


class BPE(BaseTokenizer):
    """GPT's tokenizer. ``cls_id`` is ``_classify_``: it ends a row, and its hidden state represents the row."""

    cls_id: int
    sep_id: int

    def __init__(self, backend: Tokenizer, source: str = "the vocabulary", added: AddedTokens | None = None) -> None:
        super().__init__(backend, SpecialTokens(), model="GPT", source=source, added=added)
        self.unk_id, self.start_id, self.sep_id, self.cls_id = self.tokens_to_ids(SpecialTokens())
        # GPT has neither; see the module docstring.
        self.pad_id = self.mask_id = self.unk_id
        self.between_ids, self.end_id = [self.sep_id], self.cls_id

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a folder with ``tokenizer.json``, or with a vocabulary and merges as OpenAI or Hugging Face name them.

        Special tokens that the vocabulary lacks get the next ids.
        """
        found = read_folder(Path(path), "GPT", (HUGGING_FACE, OPENAI))
        # Compared with the rules of an empty tokenizer: another normalizer would give other ids without an error.
        expected = json.loads(_build({}, []).to_str()) | {"end_of_word_suffix": END_OF_WORD}
        for part, rule in found.rules.items():
            if rule != expected[part]:
                raise data_error(f"{found.file} has another {part} than GPT; bertkit reads GPT's only.")
        return cls(_build(found.vocabulary, found.merges, str(found.file)), str(found.file), found.added)

    def save(self, folder: Path | str) -> None:
        """Write ``tokenizer.json`` and its configuration, ``vocab.json`` and ``merges.txt``; Hugging Face reads
        them."""
        self._save(folder, _config(), vocabulary_and_merges(self._describe()))


def train(texts: Iterable[str], *, vocab_size: int = 40_000) -> BPE:
    """Train a vocabulary of at most ``vocab_size`` subwords, special tokens included; a small corpus gives fewer.

    ``texts`` are read once, and only one is in memory at a time.
    """
    smallest = 2 * len(SpecialTokens._fields)
    if vocab_size < smallest:
        raise usage_error(f"--vocab-size is {vocab_size}; it must be at least {smallest}.")
    specials = SpecialTokens()
    subwords, merges = train_bpe(map(replace_surrogates, texts), _build({}, []), size=vocab_size, first=specials)
    if len(subwords) == len(specials):
        raise data_error("there is no text to train a vocabulary on: the input has nothing but white space.")
    return BPE(_build({subword: id for id, subword in enumerate(subwords)}, merges))


def _build(vocabulary: Mapping[str, int], merges: Sequence[Merge], source: str = "the vocabulary") -> Tokenizer:
    """The tokenizer with this vocabulary and these merges; special tokens that it lacks get the next ids."""
    specials = SpecialTokens()
    absent = [token for token in specials if token not in vocabulary]
    subwords = {**vocabulary, **{token: len(vocabulary) + number for number, token in enumerate(absent)}}
    try:
        model = models.BPE(subwords, list(merges), unk_token=specials.unk, end_of_word_suffix=END_OF_WORD)
    except Exception as error:  # the library raises nothing narrower
        raise data_error(f"{source}: the merges do not belong to the vocabulary: {error}.") from error
    backend = Tokenizer(model)
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    spaces = [decoders.Replace(token, f"{token} ") for token in specials]
    backend.decoder = decoders.Sequence(
        [decoders.Replace(END_OF_WORD, " "), *spaces, decoders.Fuse(), decoders.Strip(" ", 0, 1)]
    )
    backend.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in specials])
    return backend


def _config() -> dict[str, object]:
    """The content of ``tokenizer_config.json``; Hugging Face's generic class takes the rules from tokenizer.json."""
    specials = SpecialTokens()
    return {
        "unk_token": specials.unk,
        "pad_token": specials.unk,
        "bos_token": specials.start,
        "sep_token": specials.delimiter,
        "cls_token": specials.extract,
        "model_max_length": 512,
        "model_input_names": ["input_ids", "attention_mask"],
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
