"""OpenAI GPT, the first (Radford et al. 2018): configuration, network, and its names in Hugging Face's files.

Source: openai/finetune-transformer-lm ``train.py``. BERT-base was given its size.

Letters: B examples, T tokens, H hidden width.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from bertkit.batch import Batch
from bertkit.contracts import Context
from bertkit.encoder_types.settings import (
    MINIATURES,
    PositionInit,
    check_heads,
    configure,
    read_size,
)
from bertkit.encoder_types.spec import EncoderSpec, HuggingFaceSpec, PretrainingDefaults
from bertkit.encoder_types.transformer import Transformer, build_post_norm_block
from bertkit.errors import usage_error
from bertkit.nn.dropout import Dropout
from bertkit.nn.embeddings import PlainEmbeddings
from bertkit.ranges import (
    Layers,
    Length,
    PositiveFloat,
    ShareAboveZero,
    ShareBelowOne,
    VocabularySize,
    Width,
    check_ranges,
)
from bertkit.text.bpe import BPE

SIZES: Mapping[str, tuple[int, int, int]] = {**MINIATURES, "base": (12, 768, 12)}
"""Layers, hidden width and heads; base is the published model."""


@dataclass(frozen=True, kw_only=True)
class GptConfig:
    """The hyper-parameters of GPT; defaults are the paper's.

    After fine-tuning ``vocab_size`` includes the three tokens that it adds. ``dropout`` acts on the
    embeddings and on every sub-layer's output, ``attention_dropout`` on the attention probabilities. The intermediate
    width is always four times the hidden width. ``position_init`` is as in BERT.
    """

    vocab_size: VocabularySize
    hidden_size: Width = 768
    num_layers: Layers = 12
    num_heads: Width = 12
    max_positions: Length = 512
    dropout: ShareBelowOne = 0.1
    attention_dropout: ShareBelowOne = 0.1
    layer_norm_eps: ShareAboveZero = 1e-5
    initializer_range: PositiveFloat = 0.02
    position_init: PositionInit = "normal"

    def __post_init__(self) -> None:
        check_ranges(self)
        check_heads(self.hidden_size, self.num_heads, self.position_init)
        if self.position_init == "neighbour_heads":
            raise usage_error("position_init=neighbour_heads is for encoders that attend in both directions.")

    @property
    def context(self) -> Context:
        """Every token attends to itself and those before it."""
        return "causal"

    @property
    def activation(self) -> str:
        """The activation of the feed-forward layer."""
        return "gelu_tanh"

    @property
    def intermediate_size(self) -> int:
        """The width of the feed-forward layer."""
        return 4 * self.hidden_size


def size(name: str, *, vocab_size: int, **changes: object) -> GptConfig:
    """The configuration of the published size, or of any layers/width/heads such as ``"4/256/4"``.

    ``changes`` are fields of GptConfig.
    """
    return configure(GptConfig, "GPT", {"vocab_size": vocab_size, **read_size(name, SIZES), **changes})


class Gpt(Transformer):
    """Embeddings and a stack of post-norm blocks in which every token reads itself and those before it.

    ``pooled`` is the state of the last token of a row, without a pooler: in fine-tuning that is ``_classify_``, which
    attends to the whole row. Segments are ignored. Initial weights are those of ``nn/init.py``, a normal distribution
    truncated at two sigma; the paper's is not truncated.
    """

    config: GptConfig
    embeddings: PlainEmbeddings

    def __init__(self, config: GptConfig) -> None:
        embeddings = PlainEmbeddings(
            word=nn.Embedding(config.vocab_size, config.hidden_size),
            position=nn.Embedding(config.max_positions, config.hidden_size),
            dropout=Dropout(config.dropout),
        )
        blocks = (build_post_norm_block(config, causal=True) for _ in range(config.num_layers))
        super().__init__(config, embeddings, blocks, causal=True)
        self.reset_parameters()

    def embed(self, batch: Batch) -> Float[Tensor, "B T H"]:
        """The sum of the embeddings of tokens and positions, after dropout."""
        states: Tensor = self.embeddings(batch.input_ids)
        return states


_LAYER = "h.{layer}."

HF_NAMES: Mapping[str, tuple[str, ...]] = {
    "embeddings.word.weight": ("tokens_embed.weight",),
    "embeddings.position.weight": ("positions_embed.weight",),
    "layers.{layer}.attention.qkv.weight": (f"{_LAYER}attn.c_attn.weight.T",),
    "layers.{layer}.attention.qkv.bias": (f"{_LAYER}attn.c_attn.bias",),
    "layers.{layer}.attention.output.weight": (f"{_LAYER}attn.c_proj.weight.T",),
    "layers.{layer}.attention.output.bias": (f"{_LAYER}attn.c_proj.bias",),
    "layers.{layer}.attention_norm.weight": (f"{_LAYER}ln_1.weight",),
    "layers.{layer}.attention_norm.bias": (f"{_LAYER}ln_1.bias",),
    "layers.{layer}.feed_forward.inner.weight": (f"{_LAYER}mlp.c_fc.weight.T",),
    "layers.{layer}.feed_forward.inner.bias": (f"{_LAYER}mlp.c_fc.bias",),
    "layers.{layer}.feed_forward.outer.weight": (f"{_LAYER}mlp.c_proj.weight.T",),
    "layers.{layer}.feed_forward.outer.bias": (f"{_LAYER}mlp.c_proj.bias",),
    "layers.{layer}.feed_forward_norm.weight": (f"{_LAYER}ln_2.weight",),
    "layers.{layer}.feed_forward_norm.bias": (f"{_LAYER}ln_2.bias",),
}
"""Our name -> Hugging Face's; see ``HuggingFaceSpec``. Their ``Conv1D`` stores the transpose."""

SPEC = EncoderSpec(
    title="GPT",
    encoder=Gpt,
    config=GptConfig,
    load_tokenizer=BPE.load,
    model_type="openai-gpt",
    size=size,
    pretraining=PretrainingDefaults(
        objectives=("clm",),
        settings={"task.sampling.running_text": True},
        # Radford et al. 2018, section 4.1; its 100 epochs are for its own corpus.
        paper={
            "seq_length": 512,
            "batch_size": 64,
            "optimizer.lr": 2.5e-4,
            "optimizer.eps": 1e-8,
            "optimizer.bias_correction": True,
            "schedule.warmup": 0.001,  # 2,000 steps; 100 epochs of its books are some millions
            "schedule.decay": "cosine",
        },
    ),
    huggingface=HuggingFaceSpec(
        weights=HF_NAMES,
        prefix="transformer.",
        settings={
            "vocab_size": ("vocab_size",),
            "hidden_size": ("n_embd",),
            "num_layers": ("n_layer",),
            "num_heads": ("n_head",),
            "max_positions": ("n_positions",),
            "dropout": ("resid_pdrop", "embd_pdrop"),
            "attention_dropout": ("attn_pdrop",),
            "layer_norm_eps": ("layer_norm_epsilon",),
            "initializer_range": ("initializer_range",),
            "position_init": ("position_init",),
        },
        fixed={"afn": "gelu"},  # their name for the tanh approximation
        assumed={"vocab_size": 40478},
        architectures={frozenset(): "OpenAIGPTModel", frozenset({"clm"}): "OpenAIGPTLMHeadModel"},
        extra_tokens=3,  # _start_, _delimiter_ and _classify_
        buffers=("position_ids", ".attn.bias"),
        tied={"clm": {"lm_head.weight": "tokens_embed.weight"}},
    ),
)


def tiny() -> Gpt:
    """A small network with sizes that differ from one another, for tests."""
    return Gpt(size("3/12/2", vocab_size=99, max_positions=41))
