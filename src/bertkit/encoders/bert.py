"""BERT (Devlin et al., arXiv 1810.04805): configuration, network, and its names in Hugging Face's files.

Letters: B examples, T tokens, H hidden width.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bertkit.batch import Batch
from bertkit.contracts import Context
from bertkit.encoder_types.settings import (
    MINIATURES,
    PositionInit,
    check_activation,
    check_heads,
    check_pad,
    configure,
    read_size,
)
from bertkit.encoder_types.spec import EncoderSpec, HuggingFaceSpec, PretrainingDefaults
from bertkit.encoder_types.transformer import ACTIVATION_NAMES, NAMES, SETTINGS, PooledTransformer, name_classes
from bertkit.errors import usage_error
from bertkit.nn.dropout import Dropout
from bertkit.nn.embeddings import Embeddings
from bertkit.ranges import (
    ExtraLayers,
    Layers,
    Length,
    NonNegativeInt,
    PositiveFloat,
    ShareAboveZero,
    ShareBelowOne,
    VocabularySize,
    Width,
    check_ranges,
)
from bertkit.text.wordpiece import WordPiece

SIZES: Mapping[str, tuple[int, int, int]] = {
    **MINIATURES,
    "base": (12, 768, 12),
    "large": (24, 1024, 16),
}
"""Layers, hidden width and heads of the published models (google-research/bert README)."""


@dataclass(frozen=True, kw_only=True)
class BertConfig:
    """The hyper-parameters of BERT; defaults are the paper's.

    ``dropout`` acts on the embeddings and on every sub-layer's output, ``attention_dropout`` on the attention
    probabilities. ``layer_norm_eps`` and ``initializer_range`` are google-research/bert's. ``position_init`` is how
    learned position embeddings are initialised; with sinusoidal ones pre-training needs fewer steps. With ``causal``
    tokens attend to earlier ones only and the pooler reads the last token of a row: the paper's left-to-right model
    (section 5.1). ``lstm_layers`` of a BiLSTM on top are for fine-tuning.
    """

    vocab_size: VocabularySize
    hidden_size: Width = 768
    num_layers: Layers = 12
    num_heads: Width = 12
    intermediate_size: Width = 3072
    max_positions: Length = 512
    num_segments: Width = 2
    dropout: ShareBelowOne = 0.1
    attention_dropout: ShareBelowOne = 0.1
    activation: str = "gelu"
    layer_norm_eps: ShareAboveZero = 1e-12
    initializer_range: PositiveFloat = 0.02
    position_init: PositionInit = "normal"
    causal: bool = False
    lstm_layers: ExtraLayers = 0
    pad_id: NonNegativeInt = 0

    def __post_init__(self) -> None:
        check_ranges(self)
        check_heads(self.hidden_size, self.num_heads, self.position_init)
        check_activation(self.activation)
        check_pad(self.pad_id, self.vocab_size)
        if self.lstm_layers and self.hidden_size % 2:
            raise usage_error(f"lstm_layers needs an even hidden_size; it is {self.hidden_size}.")

    @property
    def context(self) -> Context:
        """Every token attends to all others; in a causal configuration to those before it."""
        return "causal" if self.causal else "bidirectional"


def size(name: str, *, vocab_size: int, **changes: object) -> BertConfig:
    """The configuration of a published size, or of any layers/width/heads such as ``"4/256/4"``.

    The intermediate width is four times the hidden width unless ``changes``, which are fields of BertConfig, set it.
    """
    shape = read_size(name, SIZES)
    fields = {"vocab_size": vocab_size, **shape, "intermediate_size": 4 * shape["hidden_size"], **changes}
    return configure(BertConfig, "BERT", fields)


class Bert(PooledTransformer):
    """Embeddings, post-norm blocks, and a pooler on [CLS], or on the last [SEP] if blocks are causal."""

    config: BertConfig

    def __init__(self, config: BertConfig) -> None:
        embeddings = Embeddings(
            word=nn.Embedding(config.vocab_size, config.hidden_size),
            position=nn.Embedding(config.max_positions, config.hidden_size),
            segment=nn.Embedding(config.num_segments, config.hidden_size),
            norm=nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps),
            dropout=Dropout(config.dropout),
        )
        super().__init__(config, embeddings, causal=config.causal, lstm_layers=config.lstm_layers)

    def embed(self, batch: Batch) -> Float[Tensor, "B T H"]:
        """The sum of the embeddings of tokens, positions and segments, after LayerNorm and dropout."""
        one_segment = self.config.num_segments == 1  # both texts of a pair have it, as in RoBERTa
        segment_ids = torch.zeros_like(batch.segment_ids) if one_segment else batch.segment_ids
        states: Tensor = self.embeddings(batch.input_ids, segment_ids)
        return states


HF_NAMES = NAMES

_PREDICTIONS = "cls.predictions."

SPEC = EncoderSpec(
    title="BERT",
    encoder=Bert,
    config=BertConfig,
    load_tokenizer=WordPiece.load,
    size=size,
    pretraining=PretrainingDefaults(objectives=("mlm", "nsp")),  # the paper's settings are the defaults
    huggingface=HuggingFaceSpec(
        weights=HF_NAMES,
        prefix="bert.",
        settings={
            **SETTINGS,
            "max_positions": ("max_position_embeddings",),
            "position_init": ("position_init",),
            "causal": ("is_decoder",),
            "lstm_layers": ("lstm_layers",),
        },
        values={"activation": ACTIVATION_NAMES},
        fixed={"position_embedding_type": "absolute", "pruned_heads": {}},
        assumed={"vocab_size": 30522},
        architectures={
            **name_classes("Bert"),
            frozenset({"mlm", "nsp"}): "BertForPreTraining",
            frozenset({"nsp"}): "BertForNextSentencePrediction",
        },
        optional_part="pooler",
        buffers=("embeddings.position_ids", "embeddings.token_type_ids"),
        tied={
            "mlm": {
                f"{_PREDICTIONS}decoder.weight": "embeddings.word_embeddings.weight",
                f"{_PREDICTIONS}decoder.bias": f"{_PREDICTIONS}bias",
            }
        },
    ),
)


def tiny() -> Bert:
    """A small network with sizes that differ from one another, for tests."""
    return Bert(size("3/12/2", vocab_size=99, intermediate_size=37, max_positions=41, num_segments=3))
