"""ModernBERT (Warner et al., arXiv 2412.13663): configuration, network, and its names in Hugging Face's files.

A BERT with rotary positions, norms before the sub-layers, gated feed-forward layers and no biases, in which most layers
attend to a sliding window only.

Letters: B examples, T tokens, H hidden width.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from bertkit.batch import Batch, EncoderOutput
from bertkit.encoder_types.settings import (
    MINIATURES,
    check_activation,
    check_heads,
    check_pad,
    configure,
    read_size,
)
from bertkit.encoder_types.spec import EncoderSpec, HuggingFaceSpec, PretrainingDefaults
from bertkit.encoder_types.transformer import ACTIVATION_NAMES, Transformer, name_classes
from bertkit.errors import data_error, usage_error
from bertkit.nn.activation import ACTIVATIONS
from bertkit.nn.attention import SelfAttention
from bertkit.nn.block import PreNormBlock
from bertkit.nn.dropout import Dropout
from bertkit.nn.embeddings import TokenEmbeddings, check_length
from bertkit.nn.feed_forward import GatedFeedForward
from bertkit.nn.init import initialize
from bertkit.nn.linear import Linear
from bertkit.nn.neighbour_heads import fill_constant, fill_rotary_heads, fits_rotary
from bertkit.nn.pooler import mean_pool
from bertkit.nn.prediction_head import PredictionHead
from bertkit.ranges import (
    Layers,
    Length,
    NonNegativeInt,
    PositiveFloat,
    Range,
    RotaryBase,
    ShareAboveZero,
    ShareBelowOne,
    VocabularySize,
    Width,
    check_ranges,
)
from bertkit.text.loading import load_tokenizer

SIZES: Mapping[str, tuple[int, int, int]] = {**MINIATURES, "base": (22, 768, 12), "large": (28, 1024, 16)}
"""Layers, hidden width and heads; base and large are the published models (section 2.1.3 and table 4)."""

_INTERMEDIATE = {"base": 1152, "large": 2624}
"""The published intermediate widths. Other sizes have 5/2 of the hidden width: as many parameters as BERT's layers."""


@dataclass(frozen=True, kw_only=True)
class ModernBertConfig:
    """The hyper-parameters of ModernBERT; defaults are those of the published base model.

    Every ``global_every``-th layer from the first on attends to the whole row, with rotary angles of ``global_theta``;
    the others attend to ``local_attention // 2`` tokens on each side, with ``local_theta``. ``pooling`` is the state
    that classifiers read: of [CLS], or the mean over the row. ``dropout`` acts on the embeddings and inside the
    feed-forward layers, ``attention_dropout`` on the attention probabilities and output. ``position_init`` may be
    ``neighbour_heads``: heads that start by looking at neighbouring tokens.
    """

    vocab_size: VocabularySize
    hidden_size: Width = 768
    num_layers: Layers = 22
    num_heads: Width = 12
    intermediate_size: Width = 1152
    max_positions: Length = 8192
    global_every: Length = 3
    local_attention: Annotated[int, Range(2, 1_000_000)] = 128
    global_theta: RotaryBase = 160_000.0
    local_theta: RotaryBase = 10_000.0
    pooling: Literal["cls", "mean"] = "cls"
    dropout: ShareBelowOne = 0.0
    attention_dropout: ShareBelowOne = 0.0
    activation: str = "gelu"
    layer_norm_eps: ShareAboveZero = 1e-5
    initializer_range: PositiveFloat = 0.02
    position_init: Literal["normal", "neighbour_heads"] = "normal"
    pad_id: NonNegativeInt = 0

    def __post_init__(self) -> None:
        check_ranges(self)
        check_heads(self.hidden_size, self.num_heads, self.position_init)
        check_activation(self.activation)
        check_pad(self.pad_id, self.vocab_size)
        if self.hidden_size // self.num_heads % 2:
            raise usage_error(
                f"hidden_size {self.hidden_size} in {self.num_heads} heads gives each an odd width; rotary positions "
                f"need an even one."
            )
        if self.position_init == "neighbour_heads" and not fits_rotary(self.hidden_size, self.num_heads):
            raise usage_error(
                f"position_init=neighbour_heads needs two heads or more of an even width of at least 16 with rotary "
                f"positions; hidden_size is {self.hidden_size} and num_heads {self.num_heads}: "
                "give position_init=normal."
            )

    @property
    def position_columns(self) -> int:
        """The columns of the word embeddings that ``neighbour_heads`` uses for positions."""
        return 1

    def is_global(self, layer: int) -> bool:
        """Whether this layer, counted from 0, attends to the whole row."""
        return layer % self.global_every == 0

    def theta(self, layer: int) -> float:
        """The base of the rotary angles of this layer."""
        return self.global_theta if self.is_global(layer) else self.local_theta

    def window(self, layer: int) -> int | None:
        """How many tokens on each side this layer attends to; None for all."""
        return None if self.is_global(layer) else self.local_attention // 2


def size(name: str, *, vocab_size: int, **changes: object) -> ModernBertConfig:
    """The configuration of a published size, or of any layers/width/heads such as ``"4/256/4"``.

    ``changes`` are fields of ModernBertConfig.
    """
    shape = read_size(name, SIZES)
    intermediate = _INTERMEDIATE.get(name, 5 * shape["hidden_size"] // 2)
    fields = {"vocab_size": vocab_size, **shape, "intermediate_size": intermediate, **changes}
    return configure(ModernBertConfig, "ModernBERT", fields)


def _build_block(config: ModernBertConfig, layer: int) -> PreNormBlock:
    hidden, inner = config.hidden_size, config.intermediate_size
    return PreNormBlock(
        attention=SelfAttention(
            qkv=Linear(hidden, 3 * hidden, bias=False),
            output=Linear(hidden, hidden, bias=False),
            num_heads=config.num_heads,
            dropout=config.attention_dropout,
            rope_theta=config.theta(layer),
            window=config.window(layer),
        ),
        # The embeddings that the first layer reads are normalised already.
        attention_norm=_build_norm(config) if layer else nn.Identity(),
        attention_dropout=Dropout(config.attention_dropout),
        feed_forward=GatedFeedForward(
            inner=Linear(hidden, 2 * inner, bias=False),
            activation=ACTIVATIONS[config.activation](),
            dropout=Dropout(config.dropout),
            outer=Linear(inner, hidden, bias=False),
        ),
        feed_forward_norm=_build_norm(config),
    )


def _build_norm(config: ModernBertConfig) -> nn.LayerNorm:
    return nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps, bias=False)


class ModernBert(Transformer):
    """Embeddings, pre-norm blocks, a final norm, and the prediction head that all objectives share.

    ``pooled`` is the state of [CLS], or the mean of a row, after that head. Segments are ignored.
    """

    config: ModernBertConfig
    embeddings: TokenEmbeddings

    def __init__(self, config: ModernBertConfig) -> None:
        hidden = config.hidden_size
        embeddings = TokenEmbeddings(
            word=nn.Embedding(config.vocab_size, hidden), norm=_build_norm(config), dropout=Dropout(config.dropout)
        )
        super().__init__(config, embeddings, (_build_block(config, layer) for layer in range(config.num_layers)))
        self.final_norm = _build_norm(config)
        self.prediction_head = PredictionHead(
            dense=Linear(hidden, hidden, bias=False),
            activation=ACTIVATIONS[config.activation](),
            norm=_build_norm(config),
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise all parameters; with ``neighbour_heads`` some heads look at the tokens beside them.

        Every block then begins as the identity, so that the constant column reaches the later layers as it is.
        """
        initialize(self, self.config.initializer_range)
        if self.config.position_init != "neighbour_heads":
            return
        blocks = [block for block in self.layers if isinstance(block, PreNormBlock)]
        with torch.no_grad():
            for block in blocks:
                block.attention.output.weight.zero_()
                block.feed_forward.outer.weight.zero_()
        fill_constant(self.embeddings.word.weight, sigma=self.config.initializer_range)
        thetas = [self.config.theta(layer) for layer in range(self.num_layers)]
        fill_rotary_heads([block.attention.qkv for block in blocks], num_heads=self.config.num_heads, thetas=thetas)

    def embed(self, batch: Batch) -> Float[Tensor, "B T H"]:
        """The embeddings of tokens, after LayerNorm and dropout; attention adds their positions."""
        check_length(batch.input_ids.shape[1], self.config.max_positions)
        states: Tensor = self.embeddings(batch.input_ids)
        return states

    @property
    def finish_reads_all(self) -> bool:
        """The mean of a row does."""
        return self.config.pooling == "mean"

    def finish(self, output: EncoderOutput, batch: Batch) -> EncoderOutput:
        """The final norm, and the prediction head on the pooled state."""
        hidden = self.final_norm(output.hidden_states)
        is_mean = self.config.pooling == "mean"
        pooled = mean_pool(hidden, batch.attention_mask) if is_mean else self.final_norm(output.pooled)
        return replace(
            output,
            hidden_states=hidden,
            pooled=self.prediction_head(pooled),
            layers=(*output.layers[:-1], hidden) if output.layers else (),
            head=self.prediction_head,
        )

    def count_macs(self, batch: Batch, positions: Bool[Tensor, "B T"], *, pooled: bool) -> int:
        """The multiply-accumulates of the blocks, and of the prediction head if the pooled state is needed.

        For n tokens that attend to s tokens each, width H and intermediate width I, a layer needs
        ``n * (4 H^2 + 3 H I + 2 s H)``; of the last layer only the needed positions are counted.
        """
        real, read, hidden = batch.attention_mask, positions, self.hidden_size
        if pooled:
            pooled_from = torch.arange(real.shape[1]) == 0 if self.config.pooling == "cls" else True
            read = read | (real & pooled_from)
        per_token = 2 * hidden**2 + 3 * hidden * self.config.intermediate_size
        total = int(pooled) * len(batch) * hidden**2
        for layer in range(self.num_layers):
            computed = read if layer == self.num_layers - 1 else real
            attended = _count_attended(real, self.config.window(layer))
            total += int(real.sum()) * 2 * hidden**2 + int(computed.sum()) * per_token
            total += 2 * hidden * int((attended * computed).sum())
        return total


def _count_attended(real: Bool[Tensor, "B T"], window: int | None) -> Tensor:
    """(B, T) how many tokens each token of a row attends to."""
    lengths, columns = real.sum(dim=1, keepdim=True), torch.arange(real.shape[1])
    if window is None:
        return lengths.expand(real.shape)
    return (columns + window + 1).minimum(lengths) - (columns - window).clamp(min=0)


_LAYER = "layers.{layer}."

HF_NAMES: Mapping[str, tuple[str, ...]] = {
    "embeddings.word.weight": ("embeddings.tok_embeddings.weight",),
    "embeddings.norm.weight": ("embeddings.norm.weight",),
    "layers.{layer}.attention.qkv.weight": (f"{_LAYER}attn.Wqkv.weight",),
    "layers.{layer}.attention.output.weight": (f"{_LAYER}attn.Wo.weight",),
    "layers.{layer}.attention_norm.weight": (f"{_LAYER}attn_norm.weight",),
    "layers.{layer}.feed_forward.inner.weight": (f"{_LAYER}mlp.Wi.weight",),
    "layers.{layer}.feed_forward.outer.weight": (f"{_LAYER}mlp.Wo.weight",),
    "layers.{layer}.feed_forward_norm.weight": (f"{_LAYER}mlp_norm.weight",),
    "final_norm.weight": ("final_norm.weight",),
    "prediction_head.dense.weight": ("head.dense.weight",),
    "prediction_head.norm.weight": ("head.norm.weight",),
}
"""Our name -> Hugging Face's; see ``HuggingFaceSpec``. The first layer has no attention norm."""

_LAYER_TYPES = {True: "full_attention", False: "sliding_attention"}


def read_layer_types(content: Mapping[str, object], source: str) -> Mapping[str, object]:
    """A ``config.json`` with ``global_attn_every_n_layers`` and two thetas, as versions of transformers before 5 wrote.

    Version 5 writes the type of every layer and a record of each type's rotary positions. Other patterns than
    ``ModernBertConfig`` can express, and scaled rotary positions, are data errors.
    """
    plain = dict(content)
    types = content.get("layer_types")
    if isinstance(types, list):
        every = next((layer for layer, name in enumerate(types) if layer and name == _LAYER_TYPES[True]), len(types))
        if types != [_LAYER_TYPES[layer % every == 0] for layer in range(len(types))]:
            raise data_error(f"{source}: layer_types has full attention at irregular layers; bertkit reads every n-th.")
        plain["global_attn_every_n_layers"] = every
    records = content.get("rope_parameters")
    for name, key in (("full_attention", "global_rope_theta"), ("sliding_attention", "local_rope_theta")):
        record = records.get(name) if isinstance(records, dict) else None
        if not isinstance(record, dict):
            continue
        if record.get("rope_type", "default") != "default":
            raise data_error(f'{source}: rope_type is "{record["rope_type"]}"; bertkit reads "default".')
        plain[key] = record.get("rope_theta", plain.get(key))
    return plain


_NO_BIASES = dict.fromkeys(("norm_bias", "attention_bias", "mlp_bias", "classifier_bias"), False)

SPEC = EncoderSpec(
    title="ModernBERT",
    encoder=ModernBert,
    config=ModernBertConfig,
    load_tokenizer=load_tokenizer,
    size=size,
    pretraining=PretrainingDefaults(
        objectives=("mlm",),
        # Section 2.2 and table 3, base, before the context is extended to 8,192. The paper's optimizer is StableAdamW,
        # AdamW with update clipping in place of clipping by norm; here it is AdamW. Its schedule is trapezoidal, with
        # a decay by 1 - sqrt; that of ``late`` is linear. Its initial weights are smaller by sqrt(2 L) where one of L
        # layers adds to the residual; here all have one deviation. 1.7 T tokens are for its own corpus.
        paper={
            "seq_length": 1024,
            "batch_size": 4608,
            "optimizer.lr": 8e-4,
            "optimizer.beta2": 0.98,
            "optimizer.weight_decay": 0.0125,  # 1e-5 per step at the peak: theirs is not multiplied by the rate
            "optimizer.bias_correction": True,
            "optimizer.clip_norm": 0.0,
            "schedule.warmup": 0.002,  # 3 of 1,719 billion tokens
            "schedule.decay": "late",
            "schedule.decay_share": 0.03,  # 50 billion tokens
            "task.masking.rate": 0.3,
            "task.sampling.full_sentences": True,
        },
        # Positions are rotations, which no weight depends on: section 2.3 extends the context from 1,024 to 8,192.
        free_fields=("max_positions", "global_theta", "local_theta"),
    ),
    huggingface=HuggingFaceSpec(
        weights=HF_NAMES,
        prefix="model.",
        settings={
            "vocab_size": ("vocab_size",),
            "hidden_size": ("hidden_size",),
            "num_layers": ("num_hidden_layers",),
            "num_heads": ("num_attention_heads",),
            "intermediate_size": ("intermediate_size",),
            "max_positions": ("max_position_embeddings",),
            "global_every": ("global_attn_every_n_layers",),
            "local_attention": ("local_attention",),
            "global_theta": ("global_rope_theta",),
            "local_theta": ("local_rope_theta",),
            "pooling": ("classifier_pooling",),
            "dropout": ("embedding_dropout", "mlp_dropout"),
            "attention_dropout": ("attention_dropout",),
            "activation": ("hidden_activation", "classifier_activation"),
            "layer_norm_eps": ("norm_eps",),
            "initializer_range": ("initializer_range",),
            "position_init": ("position_init",),
            "pad_id": ("pad_token_id",),
        },
        values={"activation": ACTIVATION_NAMES},
        fixed={**_NO_BIASES, "decoder_bias": True, "tie_word_embeddings": True},
        assumed={"vocab_size": 50368, "pad_id": 50283},
        token_ids={
            "cls_token_id": "cls_id",
            "bos_token_id": "cls_id",
            "sep_token_id": "sep_id",
            "eos_token_id": "sep_id",
        },
        rewrite=read_layer_types,
        architectures=name_classes("ModernBert"),
        heads={
            "mlm": {"bias": ("decoder.bias",)},
            "span": {f"ends.{part}": (f"classifier.{part}",) for part in ("weight", "bias")},
        },
        optional_part="prediction_head",
        precedes_heads=True,
        tied={"mlm": {"decoder.weight": "embeddings.tok_embeddings.weight"}},
    ),
)


def tiny() -> ModernBert:
    """A small network with sizes that differ from one another, for tests; rows of 13 tokens are cut into blocks."""
    shape = {"intermediate_size": 37, "max_positions": 41, "local_attention": 6, "global_every": 2}
    return ModernBert(size("3/12/2", vocab_size=99, dropout=0.1, attention_dropout=0.1, **shape))
