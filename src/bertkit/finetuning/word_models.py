"""Word-level baselines of BERT as model folders: networks of words, with ELMo's weights and word vectors copied in.

Nothing else in such a folder is trained yet. ``finetune`` takes it like a pre-trained model, and initialises with every
seed whatever was not copied.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch

from bertkit import lookup as names
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.checkpoint.save_model import save_model
from bertkit.data.shards import Corpus
from bertkit.data.word_vectors import WordVectors, read_vectors, train_vectors
from bertkit.encoder_types.settings import configure
from bertkit.encoder_types.spec import EncoderSpec
from bertkit.encoder_types.words import WordEncoder, WordReaderConfig
from bertkit.encoders.elmo import Elmo
from bertkit.errors import did_you_mean, usage_error
from bertkit.model import Model
from bertkit.text.words import WordLevel

WORD_MODEL = "word-model"
"""The ``kind`` of such a folder in ``bertkit.json``."""

_VECTOR_SIZE = 100
"""Size of the vectors that are trained here, if the published network has none."""


def list_word_models() -> dict[str, EncoderSpec]:
    """The networks that read words, by the names of their files."""
    found = names.values("encoders", EncoderSpec).items()
    return {name.partition(":")[0]: each for name, each in found if issubclass(each.encoder, WordEncoder)}


def build_word_model(
    name: str,
    output: Path,
    *,
    elmo: Path | None = None,
    vectors: Path | None = None,
    words: WordLevel | None = None,
    settings: Mapping[str, object] | None = None,
) -> Path:
    """Write the model folder ``output`` of the encoder ``name``, and return it.

    ``elmo`` is the model folder of an ELMo; ``vectors`` is a file in GloVe's text format, or a corpus prepared as words
    to train vectors on. The network has no input for the one that is not given. ``words`` is the vocabulary, if it is
    not ELMo's. ``settings`` are fields of the encoder's configuration that differ from the published network.
    """
    spec = _find(name)
    elmo_folder = None if elmo is None else ModelFolder.open(elmo)
    elmo_encoder = None if elmo_folder is None else _load_elmo(elmo_folder)
    words = words or _find_words(elmo_folder, vectors)
    assert issubclass(spec.encoder, WordEncoder)
    fields = dict(spec.encoder.reader_defaults)
    size = fields.get("vector_size") or _VECTOR_SIZE
    assert isinstance(size, int)
    table = None if vectors is None else _find_vectors(vectors, words, size)
    fields |= {"vector_size": 0 if table is None else table.table.shape[1]}
    fields |= {"vocab_size": words.vocab_size, "word_length": words.word_length}
    fields |= {"elmo": elmo_encoder and elmo_encoder.config}
    reader = configure(WordReaderConfig, "a reader of words", fields)
    encoder = spec.encoder(configure(spec.config, name, {"words": reader, **(settings or {})}))
    with torch.no_grad():
        if encoder.words.vectors is not None and table is not None:
            encoder.words.vectors.weight.copy_(torch.from_numpy(table.table))
        if encoder.words.elmo is not None and elmo_encoder is not None:
            encoder.words.elmo.load_state_dict(elmo_encoder.state_dict())
    save_model(output, Model(encoder, {}), words, metadata=_describe(name, elmo, vectors, table))
    return output


def _find(name: str) -> EncoderSpec:
    known = list_word_models()
    if name not in known:
        raise usage_error(f'no word model named "{name}".{did_you_mean(name, known)} There are: {", ".join(known)}.')
    return known[name]


def _load_elmo(folder: ModelFolder) -> Elmo:
    encoder = folder.load_encoder()
    if not isinstance(encoder, Elmo):
        raise usage_error(f"{folder.path} is not an ELMo. Pre-train one, and name its folder.")
    return encoder


def _find_words(elmo: ModelFolder | None, vectors: Path | None) -> WordLevel:
    """The vocabulary of the ELMo, or else of the corpus."""
    tokenizer: object = None
    if elmo is not None:
        tokenizer = elmo.tokenizer
    elif vectors is not None and vectors.is_dir():
        tokenizer = Corpus.open(vectors).load_tokenizer()
    if not isinstance(tokenizer, WordLevel):
        raise usage_error("a word model needs a vocabulary of words: give an ELMo, or `words`.")
    return tokenizer


def _find_vectors(source: Path, words: WordLevel, size: int) -> WordVectors:
    """The vectors in a file, or vectors of this size trained on a prepared corpus."""
    if not source.is_dir():
        return read_vectors(source, words.vocabulary)
    corpus = Corpus.open(source)
    if corpus.load_tokenizer().fingerprint != words.fingerprint:
        raise usage_error(f"{source} was prepared with another vocabulary than the one of the model.")
    return train_vectors(corpus, size)


def _describe(name: str, elmo: Path | None, vectors: Path | None, table: WordVectors | None) -> dict[str, object]:
    """For ``bertkit.json``: which weights come from where, and how many words have a vector."""
    metadata: dict[str, object] = {"kind": WORD_MODEL, "encoder": name, "elmo": elmo and str(elmo)}
    if table is not None:
        metadata["vectors"] = {
            "from": str(vectors),
            "trained": vectors is not None and vectors.is_dir(),
            "found": int(table.found.sum()),
            "words": len(table.found),
        }
    return metadata
