"""What encoders like BERT are built from, and Hugging Face's names for its parts.

Letters: B examples, T tokens, H hidden width.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from bertkit.batch import Batch, EncoderOutput
from bertkit.contracts import Encoder, EncoderConfig
from bertkit.encoder_types.settings import PositionInit
from bertkit.errors import usage_error
from bertkit.nn.activation import ACTIVATIONS
from bertkit.nn.attention import SelfAttention
from bertkit.nn.block import PostNormBlock, ResidualNorm
from bertkit.nn.dropout import Dropout
from bertkit.nn.embeddings import Embeddings, InputEmbeddings
from bertkit.nn.feed_forward import FeedForward
from bertkit.nn.init import fill_sinusoids, initialize
from bertkit.nn.linear import Linear
from bertkit.nn.lstm import BiLstm
from bertkit.nn.neighbour_heads import fill_heads, fill_positions
from bertkit.nn.pooler import Pooler, pick_tokens, pool_directions
from bertkit.nn.stack import BlockStack

_SEGMENT_SHARE = 0.2
"""Factor of segment embeddings with neighbour heads: in most rows there is only one segment."""


@runtime_checkable
class _TransformerConfig(EncoderConfig, Protocol):
    """The fields of a configuration that a transformer reads."""

    @property
    def hidden_size(self) -> int: ...
    @property
    def num_layers(self) -> int: ...
    @property
    def num_heads(self) -> int: ...
    @property
    def intermediate_size(self) -> int: ...
    @property
    def max_positions(self) -> int: ...
    @property
    def dropout(self) -> float: ...
    @property
    def attention_dropout(self) -> float: ...
    @property
    def layer_norm_eps(self) -> float: ...
    @property
    def initializer_range(self) -> float: ...
    @property
    def position_init(self) -> PositionInit: ...
    @property
    def activation(self) -> str: ...


def build_post_norm_block(config: _TransformerConfig, *, causal: bool = False) -> PostNormBlock:
    """A post-norm transformer block with the sizes and dropout rates of ``config``."""
    hidden = config.hidden_size
    return PostNormBlock(
        attention=SelfAttention(
            qkv=Linear(hidden, 3 * hidden),
            output=Linear(hidden, hidden),
            num_heads=config.num_heads,
            dropout=config.attention_dropout,
            causal=causal,
        ),
        attention_norm=ResidualNorm(hidden, eps=config.layer_norm_eps, dropout=Dropout(config.dropout)),
        feed_forward=FeedForward(
            inner=Linear(hidden, config.intermediate_size),
            activation=ACTIVATIONS[config.activation](),
            outer=Linear(config.intermediate_size, hidden),
        ),
        feed_forward_norm=ResidualNorm(hidden, eps=config.layer_norm_eps, dropout=Dropout(config.dropout)),
    )


def _count_block_macs(
    config: _TransformerConfig, real: Bool[Tensor, "B T"], read: Bool[Tensor, "B T"], *, causal: bool
) -> int:
    """The multiply-accumulates of a stack of blocks on ``real`` tokens, of which the last block computes only ``read``.

    For n tokens that attend to s tokens each, r tokens read, L layers, width H and intermediate width I, a row needs::

        (L - 1) * n * (4 H^2 + 2 H I + 2 s H)             layers below the last
        + 2 n H^2 + r * (2 H^2 + 2 H I + 2 s H)           the last: keys and values of all n, the rest of r
    """
    hidden, inner = config.hidden_size, config.intermediate_size
    attended = real.cumsum(dim=1) if causal else real.sum(dim=1, keepdim=True).expand(real.shape)
    num_real, num_read = int(real.sum()), int(read.sum())
    real_pairs, read_pairs = int((attended * real).sum()), int((attended * read).sum())
    per_token = 2 * hidden * hidden + 2 * hidden * inner
    lower_block = num_real * (per_token + 2 * hidden * hidden) + 2 * hidden * real_pairs
    last_block = num_real * 2 * hidden * hidden + num_read * per_token + 2 * hidden * read_pairs
    return int((config.num_layers - 1) * lower_block + last_block)


class Transformer(Encoder):
    """Embeddings and a stack of blocks; the pooled state is that of the first token of a row.

    With causal blocks it is that of the last token, because the first one attends to no other. A subclass says in
    ``embed`` how a batch becomes the states of the first block, and in ``finish`` what is above the last. The reset of
    parameters and the count of operations are those of post-norm blocks; ``depth`` and ``reinitialize_top`` are for
    layers that share no weights.
    """

    config: _TransformerConfig
    embeddings: InputEmbeddings

    def __init__(
        self,
        config: _TransformerConfig,
        embeddings: InputEmbeddings,
        blocks: Iterable[nn.Module],
        *,
        causal: bool = False,
    ) -> None:
        super().__init__()
        self.config = config
        self.hidden_size = config.hidden_size
        self.num_layers = config.num_layers
        self.causal = causal
        self.embeddings = embeddings
        self.layers = BlockStack(blocks)

    @property
    def token_embedding(self) -> nn.Embedding:
        """The table of token embeddings."""
        return self.embeddings.word

    @abstractmethod
    def embed(self, batch: Batch) -> Float[Tensor, "B T H"]:
        """The states that the first block reads; raises a usage error if a row is too long."""

    def finish(self, output: EncoderOutput, batch: Batch) -> EncoderOutput:
        """What the encoder computes from the ``output`` of its blocks, such as a pooled state."""
        return output

    @property
    def finish_reads_all(self) -> bool:
        """Whether ``finish`` reads the states of all positions, and not those alone that an objective reads."""
        return False

    def forward(
        self, batch: Batch, positions: Bool[Tensor, "B T"] | None = None, *, output_hidden_states: bool = False
    ) -> EncoderOutput:
        """States at ``positions`` and the pooled state; raises a usage error if a row is too long."""
        states, real = self.embed(batch), batch.on_host.attention_mask
        pooled_positions = self._pooled_positions(real)
        if self.finish_reads_all:
            positions = None
        elif positions is not None:
            positions = positions.scatter(1, pooled_positions[:, None], value=True)
        hidden, layers = self.layers(
            states,
            real,
            positions,
            output_hidden_states=output_hidden_states,
            gradient_checkpointing=self.gradient_checkpointing,
        )
        # A view is 0.2 ms faster than a list of indices, of the 8 ms of a text alone (MiniLM, Zen 3 at 2.4 GHz).
        pooled = pick_tokens(hidden, pooled_positions) if self.causal else hidden[:, 0]
        output = EncoderOutput(hidden_states=hidden, pooled=pooled, layers=layers, embeddings=states)
        return self.finish(output, batch)

    def reset_parameters(self) -> None:
        """Initialise all parameters; position embeddings as ``position_init`` says."""
        initialize(self, self.config.initializer_range)
        if self.config.position_init == "sinusoidal":
            fill_sinusoids(self._learned_positions().weight, self.config.initializer_range)
        elif self.config.position_init == "neighbour_heads":
            self._look_at_neighbours(self._learned_positions())

    def _learned_positions(self) -> nn.Embedding:
        """The table of positions; a usage error if there is none, or if something else than its sum with the token
        embeddings reaches the first block."""
        position = getattr(self.embeddings, "position", None)
        if not isinstance(position, nn.Embedding) or position.embedding_dim != self.hidden_size:
            raise usage_error(
                f"encoder.position_init is {self.config.position_init}, which needs embeddings.position, a table of "
                f"positions that are {self.hidden_size} wide: give position_init=normal."
            )
        return position

    def _look_at_neighbours(self, position: nn.Embedding) -> None:
        """Point the first heads at neighbouring tokens.

        Every block begins as the identity, so that the positions reach the later layers as they are.
        """
        width = self.hidden_size // self.config.num_heads
        others = [self.embeddings.word.weight]
        blocks = [block for block in self.layers if isinstance(block, PostNormBlock)]
        with torch.no_grad():
            if isinstance(segment := getattr(self.embeddings, "segment", None), nn.Embedding):
                others.append(segment.weight.mul_(_SEGMENT_SHARE))
            for block in blocks:
                block.attention.output.weight.zero_()
                block.feed_forward.outer.weight.zero_()
        fill_positions(position.weight, others, width=width, sigma=self.config.initializer_range)
        fill_heads([block.attention.qkv for block in blocks], num_heads=self.config.num_heads)

    def depth(self, name: str) -> int:
        """0 for embeddings, blocks from 1, everything else above the last block."""
        part, number, *_ = name.split(".")
        if part == "layers":
            return 1 + int(number)
        return 0 if part == "embeddings" else self.num_layers + 1

    def reinitialize_top(self, layers: int) -> None:
        """Initialise the last ``layers`` blocks again, and everything above them."""
        above = [part for name, part in self.named_children() if name not in ("embeddings", "layers")]
        for part in (*self.layers[self.num_layers - layers :], *above):
            initialize(part, self.config.initializer_range)

    def count_macs(self, batch: Batch, positions: Bool[Tensor, "B T"], *, pooled: bool) -> int | None:
        """The multiply-accumulates of the blocks."""
        real = batch.attention_mask
        if pooled:
            positions = positions.scatter(1, self._pooled_positions(real)[:, None], value=True)
        return _count_block_macs(self.config, real, positions, causal=self.causal)

    def _pooled_positions(self, real: Bool[Tensor, "B T"]) -> Int[Tensor, " B"]:
        """The position whose state is pooled, in each row."""
        return real.sum(dim=1) - 1 if self.causal else torch.zeros(real.shape[0], dtype=torch.long)


class PooledTransformer(Transformer):
    """A transformer with a pooler.

    With ``lstm_layers`` a BiLSTM as wide as the blocks is on top of them (paper, section 5.1). Hidden states are then
    those of the LSTM, and the pooler takes the final state of each direction. ``layers`` remain those of the blocks.
    """

    embeddings: Embeddings

    def __init__(
        self, config: _TransformerConfig, embeddings: Embeddings, *, causal: bool = False, lstm_layers: int = 0
    ) -> None:
        blocks = (build_post_norm_block(config, causal=causal) for _ in range(config.num_layers))
        # An LSTM reads the states of causal blocks in both directions.
        super().__init__(config, embeddings, blocks, causal=causal and not lstm_layers)
        self.lstm: BiLstm | None = None
        if lstm_layers:
            self.lstm = BiLstm(config.hidden_size, config.hidden_size, lstm_layers, config.dropout)
        self.pooler = Pooler(nn.Linear(config.hidden_size, config.hidden_size))
        self.reset_parameters()

    def reinitialize_top(self, layers: int) -> None:
        """Initialise the last ``layers`` blocks again, and everything above them."""
        super().reinitialize_top(layers)
        if self.lstm is not None:
            self.lstm.reset_parameters()

    def count_macs(self, batch: Batch, positions: Bool[Tensor, "B T"], *, pooled: bool) -> int | None:
        """The multiply-accumulates of the blocks, and of the pooler if its state is needed; None with an LSTM."""
        below = super().count_macs(batch, positions, pooled=pooled)
        if below is None or self.lstm is not None:
            return None
        return below + int(pooled) * len(batch) * self.hidden_size**2

    @property
    def finish_reads_all(self) -> bool:
        """The LSTM does."""
        return self.lstm is not None

    def finish(self, output: EncoderOutput, batch: Batch) -> EncoderOutput:
        """The LSTM, if there is one, and the pooler."""
        if self.lstm is None:
            return replace(output, pooled=self.pooler(output.pooled))
        real = batch.on_host.attention_mask
        hidden = self.lstm(output.hidden_states, real)
        return replace(output, hidden_states=hidden, pooled=self.pooler(pool_directions(hidden, real)))


_LAYER = "encoder.layer.{layer}."

NAMES: Mapping[str, tuple[str, ...]] = {
    "embeddings.word.weight": ("embeddings.word_embeddings.weight",),
    "embeddings.position.weight": ("embeddings.position_embeddings.weight",),
    "embeddings.segment.weight": ("embeddings.token_type_embeddings.weight",),
    "embeddings.norm.weight": ("embeddings.LayerNorm.weight",),
    "embeddings.norm.bias": ("embeddings.LayerNorm.bias",),
    "layers.{layer}.attention.qkv.weight": tuple(
        f"{_LAYER}attention.self.{part}.weight" for part in ("query", "key", "value")
    ),
    "layers.{layer}.attention.qkv.bias": tuple(
        f"{_LAYER}attention.self.{part}.bias" for part in ("query", "key", "value")
    ),
    "layers.{layer}.attention.output.weight": (f"{_LAYER}attention.output.dense.weight",),
    "layers.{layer}.attention.output.bias": (f"{_LAYER}attention.output.dense.bias",),
    "layers.{layer}.attention_norm.weight": (f"{_LAYER}attention.output.LayerNorm.weight",),
    "layers.{layer}.attention_norm.bias": (f"{_LAYER}attention.output.LayerNorm.bias",),
    "layers.{layer}.feed_forward.inner.weight": (f"{_LAYER}intermediate.dense.weight",),
    "layers.{layer}.feed_forward.inner.bias": (f"{_LAYER}intermediate.dense.bias",),
    "layers.{layer}.feed_forward.outer.weight": (f"{_LAYER}output.dense.weight",),
    "layers.{layer}.feed_forward.outer.bias": (f"{_LAYER}output.dense.bias",),
    "layers.{layer}.feed_forward_norm.weight": (f"{_LAYER}output.LayerNorm.weight",),
    "layers.{layer}.feed_forward_norm.bias": (f"{_LAYER}output.LayerNorm.bias",),
    "pooler.dense.weight": ("pooler.dense.weight",),
    "pooler.dense.bias": ("pooler.dense.bias",),
}
"""Our name of a weight -> Hugging Face's; see ``HuggingFaceSpec``."""

SETTINGS: Mapping[str, tuple[str, ...]] = {
    "vocab_size": ("vocab_size",),
    "hidden_size": ("hidden_size",),
    "num_layers": ("num_hidden_layers",),
    "num_heads": ("num_attention_heads",),
    "intermediate_size": ("intermediate_size",),
    "num_segments": ("type_vocab_size",),
    "dropout": ("hidden_dropout_prob",),
    "attention_dropout": ("attention_probs_dropout_prob",),
    "layer_norm_eps": ("layer_norm_eps",),
    "initializer_range": ("initializer_range",),
    "pad_id": ("pad_token_id",),
    "activation": ("hidden_act",),
}
"""Our field -> Hugging Face's keys; see ``HuggingFaceSpec``. The number of positions differs by model."""

ACTIVATION_NAMES: Mapping[str, str] = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "relu": "relu",
}
"""Hugging Face's name of an activation -> ours."""

_CLASSES: Mapping[str, str] = {
    "mlm": "MaskedLM",
    "class": "SequenceClassification",
    "labels": "SequenceClassification",
    "number": "SequenceClassification",
    "tags": "TokenClassification",
    "span": "QuestionAnswering",
    "choice": "MultipleChoice",
}
"""Label of a head -> what Hugging Face calls its task."""


def name_classes(model: str) -> dict[frozenset[str], str]:
    """Hugging Face's classes of ``model``, such as "Bert", by the labels of their heads; see ``HuggingFaceSpec``."""
    heads = {frozenset({label}): f"{model}For{task}" for label, task in _CLASSES.items()}
    return {frozenset(): f"{model}Model", **heads}
