"""BERT (Devlin et al., arXiv 1810.04805): configuration, network, and its names in Hugging Face's files.

Letters: B examples, T tokens, L tokens of all examples without padding, H hidden width.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from bertkit.contracts import Batch, Encoder, EncoderOutput
from bertkit.errors import did_you_mean, usage_error
from bertkit.nn.activation import ACTIVATIONS
from bertkit.nn.attention import SelfAttention
from bertkit.nn.block import PostNormBlock, ResidualNorm
from bertkit.nn.dropout import Dropout
from bertkit.nn.embeddings import Embeddings
from bertkit.nn.feed_forward import FeedForward
from bertkit.nn.init import fill_sinusoids, initialize
from bertkit.nn.layout import Choice, Layout, round_up
from bertkit.nn.pooler import FirstTokenPooler

SIZES: Mapping[str, tuple[int, int, int]] = {
    "tiny": (2, 128, 2),
    "mini": (4, 256, 4),
    "small": (4, 512, 8),
    "medium": (8, 512, 8),
    "base": (12, 768, 12),
    "large": (24, 1024, 16),
}
"""Layers, hidden width and heads of the published models (google-research/bert README)."""

_WORTH_CHOOSING = 0.75
"""Above this share of the tokens, picking them out costs what it saves."""


@dataclass(frozen=True, kw_only=True)
class BertConfig:
    """Everything the network's shape and behaviour depend on. The defaults are the paper's.

    ``dropout`` acts on the embeddings and on every sub-layer's output, ``attention_dropout`` on the
    attention probabilities. ``layer_norm_eps`` and ``initializer_range`` are google-research/bert's.
    ``first_positions`` are what the learned positions start from; sinusoids are learned from sooner.
    """

    vocab_size: int
    hidden_size: int = 768
    num_layers: int = 12
    num_heads: int = 12
    intermediate_size: int = 3072
    max_positions: int = 512
    num_segments: int = 2
    dropout: float = 0.1
    attention_dropout: float = 0.1
    activation: str = "gelu"
    layer_norm_eps: float = 1e-12
    initializer_range: float = 0.02
    first_positions: Literal["drawn", "sinusoids"] = "drawn"
    pad_id: int = 0

    def __post_init__(self) -> None:
        for name in (
            "vocab_size",
            "hidden_size",
            "num_layers",
            "num_heads",
            "intermediate_size",
            "max_positions",
            "num_segments",
        ):
            if getattr(self, name) < 1:
                raise usage_error(f"{name} is {getattr(self, name)}; it must be 1 or more.")
        if self.hidden_size % self.num_heads:
            raise usage_error(
                f"hidden_size {self.hidden_size} is not a multiple of num_heads {self.num_heads}; "
                f"every head has the same width."
            )
        for name in ("dropout", "attention_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise usage_error(f"{name} is {getattr(self, name)}; it must be at least 0 and below 1.")
        for name in ("layer_norm_eps", "initializer_range"):
            if getattr(self, name) <= 0:
                raise usage_error(f"{name} is {getattr(self, name)}; it must be above 0.")
        if self.activation not in ACTIVATIONS:
            raise usage_error(
                f'activation "{self.activation}" is unknown.{did_you_mean(self.activation, ACTIVATIONS)} '
                f"There are: {', '.join(ACTIVATIONS)}."
            )
        if not 0 <= self.pad_id < self.vocab_size:
            raise usage_error(f"pad_id is {self.pad_id}; the vocabulary has the ids 0 to {self.vocab_size - 1}.")


def size(name: str, *, vocab_size: int, **changes: Any) -> BertConfig:
    """The configuration of a published size, or of any layers/width/heads such as ``"4/256/4"``.

    The intermediate width is four times the hidden width unless ``changes``, fields of BertConfig, say
    otherwise.
    """
    num_layers, hidden_size, num_heads = _read_size(name)
    fields: dict[str, Any] = {
        "num_layers": num_layers,
        "hidden_size": hidden_size,
        "num_heads": num_heads,
        "intermediate_size": 4 * hidden_size,
        **changes,
    }
    for field in fields:
        if field not in BertConfig.__dataclass_fields__:
            known = BertConfig.__dataclass_fields__
            raise usage_error(f'BERT has no setting "{field}".{did_you_mean(field, known)} It has: {", ".join(known)}.')
    return BertConfig(vocab_size=vocab_size, **fields)


def _read_size(name: str) -> tuple[int, int, int]:
    if name in SIZES:
        return SIZES[name]
    parts = name.split("/")
    if len(parts) == 3 and all(part.isdecimal() for part in parts):
        num_layers, hidden_size, num_heads = map(int, parts)
        return num_layers, hidden_size, num_heads
    raise usage_error(
        f'no size named "{name}".{did_you_mean(name, SIZES)} There are: {", ".join(SIZES)}, '
        f"or layers/width/heads such as 4/256/4."
    )


class Bert(Encoder):
    """Embeddings, a stack of post-norm blocks, and the [CLS] pooler."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config
        self.hidden_size = config.hidden_size
        self.num_layers = config.num_layers
        self.embeddings = Embeddings(
            word=nn.Embedding(config.vocab_size, config.hidden_size),
            position=nn.Embedding(config.max_positions, config.hidden_size),
            segment=nn.Embedding(config.num_segments, config.hidden_size),
            norm=nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps),
            dropout=Dropout(config.dropout),
        )
        self.layers = nn.ModuleList(_build_block(config) for _ in range(config.num_layers))
        self.pooler = FirstTokenPooler(nn.Linear(config.hidden_size, config.hidden_size))
        initialize(self, config.initializer_range)
        if config.first_positions == "sinusoids":
            fill_sinusoids(self.embeddings.position.weight, config.initializer_range)

    def depth(self, name: str) -> int:
        """The layer that a parameter belongs to: embeddings 0, blocks from 1, and the pooler above the last block."""
        part, number, *_ = name.split(".")
        if part == "layers":
            return 1 + int(number)
        return 0 if part == "embeddings" else self.num_layers + 1

    def redraw(self, blocks: int) -> None:
        """Draw the last ``blocks`` blocks and the pooler anew."""
        for part in (*self.layers[self.num_layers - blocks :], self.pooler):
            initialize(part, self.config.initializer_range)

    def forward(self, batch: Batch, wanted: Bool[Tensor, "B T"] | None = None) -> EncoderOutput:
        """States of the ``wanted`` tokens, or of all; raises a usage error where a row is too long.

        Padding is never computed: all but attention works on a list of the real tokens. The last layer raises the
        wanted ones alone (and [CLS], which the pooler reads): with masked words a sixth of them, with a classifier
        next to none.
        """
        tokens = batch.input_ids.shape[1]
        if tokens > self.config.max_positions:
            raise usage_error(
                f"a batch has rows of {tokens} tokens and the model has {self.config.max_positions} positions; "
                f"cut the text shorter."
            )
        real, device = batch.on_host.attention_mask, batch.input_ids.device
        layout = Layout.of(real).to(device)
        choice = None if wanted is None or self.keep_layers else _choose_places(wanted, real)
        if choice is not None:
            choice = choice.to(device)
        states = layout.collect(self.embeddings(batch.input_ids, batch.segment_ids))
        kept: list[Tensor] = []
        for layer in self.layers:
            if self.keep_layers:
                kept.append(layout.spread(states))
            states = self._raise(layer, states, layout, choice if layer is self.layers[-1] else None)
        hidden = _put_back(states, layout, choice)
        if self.keep_layers:
            kept.append(hidden)
        return EncoderOutput(hidden_states=hidden, pooled=self.pooler(hidden), layers=tuple(kept))

    def _raise(
        self, block: nn.Module, states: Float[Tensor, "L H"], layout: Layout, choice: Choice | None
    ) -> Float[Tensor, "M H"]:
        """The states one layer higher. The random state is put back before a block is computed again."""
        if self.gradient_checkpointing and states.requires_grad:
            raised: Tensor = checkpoint(block, states, layout, choice, use_reentrant=False)
        else:
            raised = block(states, layout, choice)
        return raised


def _choose_places(wanted: Bool[Tensor, "B T"], real: Bool[Tensor, "B T"]) -> Choice | None:
    """The first token and the wanted ones of every row; None where it is hardly fewer than all.

    Up to a round number (see ``nn/layout.py``) others come along, from the beginnings of all rows.
    """
    asked = wanted.clone()
    asked[:, 0] = True
    count = int(asked.sum())
    if count > _WORTH_CHOOSING * int(real.sum()):
        return None
    others = (real & ~asked).T.nonzero()[: round_up(count) - count]
    asked[others[:, 1], others[:, 0]] = True
    return Choice.of(asked, real)


def _put_back(states: Float[Tensor, "L H"], layout: Layout, choice: Choice | None) -> Float[Tensor, "B T H"]:
    """The raised states where their tokens stand; elsewhere what nobody reads."""
    if choice is None:
        return layout.spread(states)
    slots = choice.index if layout.slots is None else layout.slots[choice.index]
    return Layout(layout.rows, layout.width, slots).spread(states)


def _build_block(config: BertConfig) -> PostNormBlock:
    hidden = config.hidden_size
    return PostNormBlock(
        attention=SelfAttention(
            qkv=nn.Linear(hidden, 3 * hidden),
            output=nn.Linear(hidden, hidden),
            num_heads=config.num_heads,
            dropout=config.attention_dropout,
        ),
        attention_norm=ResidualNorm(hidden, eps=config.layer_norm_eps, dropout=Dropout(config.dropout)),
        feed_forward=FeedForward(
            inner=nn.Linear(hidden, config.intermediate_size),
            activation=ACTIVATIONS[config.activation](),
            outer=nn.Linear(config.intermediate_size, hidden),
        ),
        feed_forward_norm=ResidualNorm(hidden, eps=config.layer_norm_eps, dropout=Dropout(config.dropout)),
    )


FOREIGN_PREFIX = "bert."
"""What stands before the foreign names in a file that also has heads; a bare encoder's file has none."""

_LAYER = "encoder.layer.{layer}."

FOREIGN_NAMES: Mapping[str, tuple[str, ...]] = {
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
"""Our name -> Hugging Face's, read in both directions. ``{layer}`` counts from 0.

Several foreign names are one tensor of ours, joined in this order along dimension 0.
"""


def specimen() -> Bert:
    """A small network of odd sizes: what the shelf's tests run on."""
    return Bert(size("3/12/2", vocab_size=99, intermediate_size=37, max_positions=41, num_segments=3))
