"""Initial weights that are computed from the corpus: token embeddings from co-occurrence counts.

The table is cached beside the shards: a trial run, a resume and a second run with the same width compute it once.

Letters: V vocabulary, H hidden width.
"""

from __future__ import annotations

import hashlib
import math
from contextlib import suppress
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import load, save
from torch import Tensor

from bertkit.contracts import Encoder, EncoderConfig
from bertkit.data.cooccurrence import count_cooccurrences, embed_tokens
from bertkit.data.mixture import Mixture
from bertkit.data.shards import Corpus
from bertkit.encoder_types.architectures import name_architecture
from bertkit.encoder_types.transformer import Transformer
from bertkit.errors import BertkitError, usage_error
from bertkit.model import Model
from bertkit.objectives.mlm import MaskedLanguageModel
from bertkit.storage.atomic import write_file

_IDENTITY_SHARE = 0.5
"""The transform of the masked-LM head begins half-way between its random weights and the identity."""


def token_statistics(mixture: Mixture, config: EncoderConfig) -> dict[str, NDArray[np.float32]]:
    """``vectors`` (V, D), the embeddings, and ``log_frequency`` (V,), from the counts of the text or from their cache.

    D is the hidden width, less the columns of positions if these have columns of their own.
    """
    corpus = mixture.joined()
    path = corpus.folder / f"cooccurrence-{dimensions(config)}.safetensors"
    with suppress(OSError):  # there is no cache yet, or it cannot be read
        content = path.read_bytes()
        if path.with_suffix(".sha256").read_bytes() == _stamp(content, corpus):
            return load(content)
    counts = count_cooccurrences(corpus)
    frequency = counts.frequency + 1.0
    statistics = {
        "vectors": embed_tokens(counts, dimensions(config)),
        "log_frequency": np.log(frequency / frequency.sum()).astype(np.float32),
    }
    with suppress(BertkitError):  # a folder that cannot be written to costs the next run the same seconds again
        _write_cache(path, statistics, corpus)
    return statistics


def _write_cache(path: Path, statistics: dict[str, NDArray[np.float32]], corpus: Corpus) -> None:
    content = save(statistics)
    write_file(path, lambda temporary: temporary.write_bytes(content))
    write_file(path.with_suffix(".sha256"), lambda temporary: temporary.write_bytes(_stamp(content, corpus)))


def _stamp(content: bytes, corpus: Corpus) -> bytes:
    """The hashes of the corpus and of the table: a table of other shards, or a damaged one, has another stamp.

    Not of the file: another run on the same folder with another --mix may have written its own table there.
    """
    return f"{corpus.manifest.content} {hashlib.sha256(content).hexdigest()}".encode()


def dimensions(config: EncoderConfig) -> int:
    """The columns of the embedding table that belong to tokens: with neighbour heads all but those of positions, which
    are as many as a head has unless the configuration says otherwise."""
    hidden = int(getattr(config, "hidden_size", 0))
    if getattr(config, "position_init", "") == "neighbour_heads":
        hidden -= int(getattr(config, "position_columns", hidden // int(getattr(config, "num_heads", 1))))
    return hidden


def check_token_table(encoder: Encoder) -> None:
    """Raise a usage error for an encoder whose token embeddings cannot start from counts."""
    name = name_architecture(encoder.config)
    if not isinstance(encoder, Transformer):
        raise usage_error(
            f"token_init is cooccurrence; that is for encoders that derive from Transformer, and {name} does not: "
            "give token_init=random."
        )
    table, hidden = encoder.token_embedding.weight.shape[1], encoder.hidden_size
    if table != hidden:
        raise usage_error(
            f"token_init is cooccurrence; the token embeddings of {name} are {table} wide, and must be as wide as its "
            f"layers, {hidden}: give token_init=random."
        )


@torch.no_grad()
def initialize_from_statistics(model: Model, statistics: dict[str, NDArray[np.float32]]) -> None:
    """Give the token embeddings, and the masked-LM head if there is one, their first values from the corpus.

    The embeddings have the root mean square of the other weights. The head predicts the frequencies of tokens, and
    its transform begins near the identity. ``check_token_table`` says which encoders can start so.
    """
    encoder = model.encoder
    assert isinstance(encoder, Transformer)
    vectors = torch.from_numpy(statistics["vectors"])
    table = encoder.token_embedding.weight
    width = vectors.shape[1]
    counted = (vectors * (encoder.config.initializer_range * math.sqrt(width))).to(table)
    if hasattr(encoder.config, "position_columns"):
        # The row of a token that the corpus lacks, such as [MASK], has no length: after the norm its constant column
        # would be 15 instead of 4 (at width 256), and all heads would look at the masks. It stays random.
        counted = torch.where(counted.any(dim=1, keepdim=True), counted, table[:, :width])
    table[:, :width] = counted
    for head in model.objectives.values():
        if isinstance(head, MaskedLanguageModel):
            head.bias.copy_(torch.from_numpy(statistics["log_frequency"]))
            weight = _transform_weight(encoder, head)
            if weight is not None:
                identity = torch.eye(*weight.shape, device=weight.device)
                weight.mul_(1 - _IDENTITY_SHARE).add_(identity, alpha=_IDENTITY_SHARE)


def _transform_weight(encoder: Transformer, head: MaskedLanguageModel) -> Tensor | None:
    """The matrix (H, H) before the output layer of a masked-LM head: its own, or that of the encoder, if any."""
    if head.transform is not None:
        return head.transform.weight
    return dict(encoder.named_parameters()).get("prediction_head.dense.weight")
