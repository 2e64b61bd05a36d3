"""Byte-pair encoding as OpenAI GPT has it (Sennrich et al. 2016, arXiv 1508.07909): loading, training, use.

A text is cleaned, spaced around Chinese characters, put in lower case without accents and split at white space and
punctuation: BERT's rules as the ``tokenizers`` library has them, which is how Hugging Face reads GPT. OpenAI's own
program cuts words with spaCy and mends text with ftfy instead, and differs in a few contractions. Then the letters of
a word, the last one marked ``</w>``, are merged pair by pair in the order in which the merges were learned.

* ``_start_``, ``_delimiter_`` and ``_classify_`` are no words of the published vocabulary: GPT gets them when it is
  fine-tuned, after its 40,478 pieces (openai/finetune-transformer-lm ``train.py``). A folder without them is read so.
* GPT hides nothing and has no padding of its own: both are ``<unk>`` here. A causal network never reads what follows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

from bertkit.errors import data_error, usage_error
from bertkit.storage.atomic import explain_writing, make_folder, write_json
from bertkit.text.base import BaseTokenizer, replace_surrogates
from bertkit.text.bpe_files import HUGGING_FACE, OPENAI, read_folder, write_files
from bertkit.text.normalization import END_OF_WORD
from bertkit.text.tokenizer_files import CONFIG
from bertkit.text.training import train_bpe


class SpecialTokens(NamedTuple):
    """The pieces that no text becomes."""

    unk: str = "<unk>"
    start: str = "_start_"
    delimiter: str = "_delimiter_"
    extract: str = "_classify_"


class BPE(BaseTokenizer):
    """Pieces and merges; ``cls_id`` is ``_classify_``, at the end of the row, for which its state stands."""

    cls_id: int
    sep_id: int

    def __init__(self, backend: Tokenizer, source: str = "the vocabulary") -> None:
        super().__init__(backend, SpecialTokens(), model="GPT", source=source)
        self.unk_id, self._start_id, self.sep_id, self.cls_id = self.tokens_to_ids(SpecialTokens())
        self.pad_id = self.mask_id = self.unk_id

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a folder with ``tokenizer.json``, or with a vocabulary and merges as OpenAI or Hugging Face names them.

        Special pieces that it lacks get the next ids.
        """
        found = read_folder(Path(path), "GPT", (HUGGING_FACE, OPENAI))
        ours = json.loads(_assemble({}, []).to_str()) | {"end_of_word_suffix": END_OF_WORD}
        for part, rule in found.rules.items():
            if rule != ours[part]:
                raise data_error(f"{found.file} has another {part} than GPT; bertkit reads GPT's alone.")
        return cls(_assemble(found.vocabulary, found.merges, str(found.file)), str(found.file))

    @property
    def start_id(self) -> int:
        """``_start_``."""
        return self._start_id

    @property
    def end_id(self) -> int:
        """``_classify_``."""
        return self.cls_id

    def save(self, folder: Path) -> None:
        """Write ``tokenizer.json`` and its configuration, ``vocab.json`` and ``merges.txt``, for Hugging Face too."""
        with explain_writing(folder):
            make_folder(folder)
            write_files(folder, self._description())
            write_json(folder / CONFIG, _config())

    @classmethod
    def from_json(cls, saved: str) -> BPE:
        """The tokenizer that ``to_json`` wrote down."""
        return cls(Tokenizer.from_str(json.dumps(json.loads(saved)["rules"])))


def train(texts: Iterable[str], *, vocab_size: int = 40_000) -> BPE:
    """Learn at most ``vocab_size`` pieces, special ones included; a small corpus gives fewer.

    ``texts`` are read once, and one is in memory at a time.
    """
    smallest = 2 * len(SpecialTokens._fields)
    if vocab_size < smallest:
        raise usage_error(f"--vocab-size is {vocab_size}; it must be {smallest} or more.")
    specials = SpecialTokens()
    pieces, merges = train_bpe(map(replace_surrogates, texts), _assemble({}, []), size=vocab_size, first=specials)
    if len(pieces) == len(specials):
        raise data_error("there is no text to learn a vocabulary from: nothing but white space was read.")
    return BPE(_assemble({piece: number for number, piece in enumerate(pieces)}, merges))


def _assemble(
    vocabulary: Mapping[str, int], merges: Sequence[tuple[str, str]], source: str = "the vocabulary"
) -> Tokenizer:
    """The tokenizer with these pieces and merges, and the special pieces that are not among them."""
    specials = SpecialTokens()
    absent = [piece for piece in specials if piece not in vocabulary]
    pieces = {**vocabulary, **{piece: len(vocabulary) + place for place, piece in enumerate(absent)}}
    try:
        model = models.BPE(pieces, list(merges), unk_token=specials.unk, end_of_word_suffix=END_OF_WORD)
    except Exception as error:  # the library raises nothing narrower
        raise data_error(f"{source}: the merges do not belong to the vocabulary: {error}.") from error
    backend = Tokenizer(model)
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    spaces = [decoders.Replace(piece, f"{piece} ") for piece in specials]
    backend.decoder = decoders.Sequence(
        [decoders.Replace(END_OF_WORD, " "), *spaces, decoders.Fuse(), decoders.Strip(" ", 0, 1)]
    )
    backend.add_special_tokens([AddedToken(piece, special=True, normalized=False) for piece in specials])
    return backend


def _config() -> dict[str, Any]:
    """The content of ``tokenizer_config.json``; Hugging Face's generic class takes the rules as they are."""
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
