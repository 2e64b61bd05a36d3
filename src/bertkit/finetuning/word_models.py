"""A rival of BERT as a model folder: a network that reads words, with ELMo's weights and word vectors copied into it.

Nothing else of it is trained yet. ``finetune`` takes the folder like one that was pre-trained, and draws what was not
copied anew for every seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from bertkit import lookup as names
from bertkit.checkpoint import model_folder
from bertkit.data.shards import Corpus
from bertkit.data.vectors import Vectors, read_vectors, train_vectors
from bertkit.encoder_types import HuggingFaceSpec, WordEncoder, WordReaderConfig, configure
from bertkit.encoders.elmo import Elmo
from bertkit.errors import did_you_mean, usage_error
from bertkit.model import Model
from bertkit.text.words import Words

ASSEMBLED = "assembled"
"""The ``kind`` of such a folder in ``bertkit.json``."""

_WIDTH = 100
"""Numbers of a vector that is learned where nobody says how many."""


def rivals() -> dict[str, HuggingFaceSpec]:
    """The networks that can be assembled, by the names of their files."""
    found = names.values("encoders", HuggingFaceSpec).items()
    return {name.partition(":")[0]: each for name, each in found if issubclass(each.encoder, WordEncoder)}


def assemble(
    name: str,
    output: Path,
    *,
    elmo: Path | None = None,
    vectors: Path | None = None,
    words: Words | None = None,
    reads: Mapping[str, Any] | None = None,
    changes: Mapping[str, Any] | None = None,
) -> Path:
    """Write the model folder ``output`` of the encoder ``name``, and return it.

    ``elmo`` is the model folder of an ELMo, and ``vectors`` a file in GloVe's text format, or a corpus prepared as
    words to learn them on; the network reads words without what is not given. ``words`` is the vocabulary, if it is not
    ELMo's. ``reads`` are fields of ``WordReaderConfig`` that are not to be those of the published network, such as a
    ``vector_size`` to learn, and ``changes`` fields of its configuration.
    """
    kind = _find(name)
    read = None if elmo is None else _load_elmo(elmo)
    words = words or _find_words(elmo, vectors)
    wanted = {**kind.encoder.reads, **(reads or {})}
    table = None if vectors is None else _find_vectors(vectors, words, wanted.get("vector_size") or _WIDTH)
    wanted |= {"vector_size": 0 if table is None else table.table.shape[1]}
    wanted |= {"vocab_size": words.vocab_size, "word_length": words.word_length, "elmo": read and read.config}
    reader = configure(WordReaderConfig, "a reader of words", wanted)
    encoder: WordEncoder = kind.encoder(configure(kind.config, name, {"words": reader, **(changes or {})}))
    with torch.no_grad():
        if encoder.words.vectors is not None and table is not None:
            encoder.words.vectors.weight.copy_(torch.from_numpy(table.table))
        if encoder.words.elmo is not None and read is not None:
            encoder.words.elmo.load_state_dict(read.state_dict())
    model_folder.save_model(output, Model(encoder, {}), words, about=_describe(name, elmo, vectors, table))
    return output


def _find(name: str) -> Any:
    known = rivals()
    if name not in known:
        raise usage_error(f'"{name}" cannot be assembled.{did_you_mean(name, known)} There are: {", ".join(known)}.')
    return known[name]


def _load_elmo(folder: Path) -> Elmo:
    encoder = model_folder.load_encoder(folder)
    if not isinstance(encoder, Elmo):
        raise usage_error(f"{folder} is no ELMo. Pre-train one, and name its folder.")
    return encoder


def _find_words(elmo: Path | None, vectors: Path | None) -> Words:
    """The vocabulary that comes with what is given."""
    tokenizer: object = None
    if elmo is not None:
        tokenizer = model_folder.load_tokenizer(elmo)
    elif vectors is not None and vectors.is_dir():
        tokenizer = Corpus.open(vectors).load_tokenizer()
    if not isinstance(tokenizer, Words):
        raise usage_error("there is no vocabulary of words: give an ELMo, or `words`.")
    return tokenizer


def _find_vectors(source: Path, words: Words, width: int) -> Vectors:
    """Those of a file, or learned on a prepared corpus."""
    if not source.is_dir():
        return read_vectors(source, words.pieces)
    corpus = Corpus.open(source)
    if corpus.load_tokenizer().fingerprint != words.fingerprint:
        raise usage_error(f"{source} was prepared with other words than those that the network reads.")
    return train_vectors(corpus, width)


def _describe(name: str, elmo: Path | None, vectors: Path | None, table: Vectors | None) -> dict[str, Any]:
    """What ``bertkit.json`` says: what was copied from where, and for how many words there was a vector."""
    about: dict[str, Any] = {"kind": ASSEMBLED, "encoder": name, "elmo": elmo and str(elmo)}
    if table is not None:
        about["vectors"] = {
            "from": str(vectors),
            "learned": vectors is not None and vectors.is_dir(),
            "found": int(table.found.sum()),
            "words": len(table.found),
        }
    return about
