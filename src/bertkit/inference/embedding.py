"""Vectors of texts: the hidden states of an encoder, pooled over the tokens of each text.

Letters: B texts of a batch, T tokens, H hidden width.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, get_args

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from bertkit.batch import Batch, EncoderOutput, Feature, Outputs
from bertkit.contracts import Encoder, Tokenizer
from bertkit.data.features import assemble
from bertkit.encoder_types.architectures import spec_of_encoder
from bertkit.encoder_types.settings import has_lstm
from bertkit.encoder_types.words import WordEncoder
from bertkit.errors import count_of, usage_error
from bertkit.inference.predict import run_features
from bertkit.machine.precision import Precision
from bertkit.nn.text_pooling import Pooling, pool_states
from bertkit.results import Result

Vectors = NDArray[np.float32]

CHUNK = 512
"""Texts that are in memory at a time; those of similar length share a batch. 2,048 are no faster (MiniLM, 8,192
sentences, Zen 4: 580 a second with both), and a signal would wait for four times as many."""


@dataclass(frozen=True, kw_only=True)
class EmbeddingSettings:
    """How the vector of a text is made: which ``layers`` are averaged, and how tokens are pooled.

    Layer 0 is the embeddings, layer k the output of the k-th layer, and -1 the last. ``pool`` is the ``mean`` or the
    elementwise ``max`` over all tokens, [CLS] and [SEP] included, or the state of [CLS] (``cls``). With ``normalize``
    vectors have length 1.
    """

    pool: Pooling = "mean"
    layers: tuple[int, ...] = (-1,)
    normalize: bool = False

    def __post_init__(self) -> None:
        if self.pool not in get_args(Pooling):
            raise usage_error(f"pool is {self.pool}; it must be mean, cls or max.")
        if not self.layers:
            raise usage_error("layers is empty; it must name a layer at least, such as -1 for the last.")


def check_layers(layers: object) -> tuple[int, ...]:
    """The numbers of layers that a caller gives, one or several; a usage error for anything else."""
    chosen: list[Any] = list(layers) if isinstance(layers, Iterable) else [layers]
    if all(isinstance(layer, int | np.integer) and not isinstance(layer, bool) for layer in chosen):
        return tuple(map(int, chosen))
    raise usage_error(f"layers is {layers!r}; it must be a list of whole numbers, such as [-1] for the last.")


class TextEmbedder(nn.Module):
    """An encoder whose output is one vector per row."""

    def __init__(self, encoder: Encoder, settings: EmbeddingSettings) -> None:
        super().__init__()
        if settings.layers != (-1,):
            _require_layers(encoder)
        for layer in settings.layers:
            if not -encoder.num_layers - 1 <= layer <= encoder.num_layers:
                raise usage_error(
                    f"layer {layer} does not exist: the model has {count_of(encoder.num_layers, 'layer')}, from 1 to "
                    f"{encoder.num_layers}; 0 is its embeddings, -1 the last."
                )
        if settings.pool == "cls" and encoder.causal:
            raise usage_error("pool is cls, and the first token of a left-to-right model has read no other: use mean.")
        self.encoder = encoder
        self.settings = settings

    def forward(self, batch: Batch) -> dict[str, Outputs]:
        """``vector`` (B, H) in float32."""
        vectors = pool_states(self._average_layers(batch).float(), batch.attention_mask, self.settings.pool)
        return {"embedding": {"vector": F.normalize(vectors, dim=1) if self.settings.normalize else vectors}}

    def _average_layers(self, batch: Batch) -> Float[Tensor, "B T H"]:
        if set(self.settings.layers) <= {-1, self.encoder.num_layers}:
            output: EncoderOutput = self.encoder(batch)
            return output.hidden_states
        layers = self.encoder(batch, output_hidden_states=True).layers
        return torch.stack([layers[layer] for layer in self.settings.layers]).mean(dim=0)


def _require_layers(encoder: Encoder) -> None:
    """Raise a usage error for an encoder whose last states are not those of the last of equally wide layers."""
    if isinstance(encoder, WordEncoder):
        raise usage_error("a word model has no states of layers, only those at its end: leave the layers out.")
    if has_lstm(encoder.config):
        raise usage_error("a BERT with a BiLSTM on top gives the states of the BiLSTM only: leave the layers out.")


class TokenEmbedder(nn.Module):
    """An encoder whose output is one vector per token."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, batch: Batch) -> dict[str, Outputs]:
        """``states`` (B, T, H), those of the last layer, in float32."""
        output: EncoderOutput = self.encoder(batch)
        return {"embedding": {"states": output.hidden_states.float()}}


def embed(
    embedder: TextEmbedder,
    tokenizer: Tokenizer,
    texts: Iterable[str],
    *,
    max_length: int,
    batch_size: int = 32,
    precision: Precision = "float32",
) -> Iterator[tuple[Vectors, int]]:
    """Chunks (n, H) of the vectors of ``texts``, in order, each with the number of its texts that were cut off.

    A text keeps its first ``max_length`` tokens. The input may be endless: one chunk is in memory at a time.
    """
    remaining = iter(texts)
    while chunk := list(islice(remaining, CHUNK)):
        features = [assemble(tokenizer, tokens, max_length=max_length) for tokens in tokenizer.encode_batch(chunk)]
        rows = run_features(embedder, features, tokenizer.pad_id, batch_size, precision)
        vectors = np.stack([row["vector"] for row in rows]).astype(np.float32, copy=False)
        yield vectors, sum(feature.num_truncated > 0 for feature in features)


def encoder_fingerprint(encoder: Encoder) -> str:
    """A hash of the weights that hidden states depend on: without the pooler, which may be absent from a folder."""
    pooler = spec_of_encoder(encoder).huggingface.optional_part
    digest = hashlib.sha256()
    for name, tensor in sorted(encoder.state_dict().items()):
        if pooler is None or not name.startswith(f"{pooler}."):
            digest.update(f"{name} {tuple(tensor.shape)}\n".encode())
            digest.update(tensor.detach().float().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TokenStates(Result):
    """The hidden states of one text: ``states`` (L + 1, T, H) are the embeddings and the output of each of L layers.

    ``tokens`` (T) are spelled as in the vocabulary; ``offsets`` (T, 2) are their characters in the text, (0, 0) for
    special tokens.
    """

    tokens: tuple[str, ...]
    offsets: NDArray[np.integer]
    states: NDArray[np.float32]

    def __repr__(self) -> str:
        return f"TokenStates({len(self.tokens):,} tokens, states {self.states.shape})"


def hidden_states(encoder: Encoder, feature: Feature, pad_id: int, precision: Precision) -> NDArray[np.float32]:
    """The states (L + 1, T, H) of all layers of one feature, in float32."""
    _require_layers(encoder)
    (row,) = run_features(_AllLayers(encoder), [feature], pad_id, 1, precision)
    return np.asarray(row["states"], dtype=np.float32)


class _AllLayers(nn.Module):
    """An encoder whose output is the states of all layers."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, batch: Batch) -> Mapping[str, Outputs]:
        """``states`` (B, L + 1, T, H)."""
        output = self.encoder(batch, output_hidden_states=True)
        return {"layers": {"states": torch.stack(output.layers, dim=1)}}
