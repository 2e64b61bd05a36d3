"""What an encoder module states about its encoder, as data: one ``SPEC`` in each module of ``encoders/``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bertkit.contracts import Encoder, EncoderConfig, SubwordTokenizer

if TYPE_CHECKING:
    ConfigType = type[EncoderConfig]
else:
    ConfigType = type  # a run-time check by issubclass does not work with a protocol that has attributes

Settings = Mapping[str, object]
"""Values of ``PretrainRun`` by path, such as ``{"optimizer.lr": 5e-4}``."""


@dataclass(frozen=True, kw_only=True)
class PretrainingDefaults:
    """How an encoder is pre-trained where the user does not say otherwise.

    ``objectives`` are modules of ``objectives/``; ``causal_objectives`` replace them in a configuration whose
    ``context`` is causal. ``settings`` are defaults that differ from those of ``PretrainRun``; ``paper`` are the
    published settings (``--profile paper``). ``not_fast`` are settings of ``--profile fast`` that this encoder ignores.
    ``free_fields`` of the configuration belong to no weight, so that a run that continues from a model may change them.
    """

    objectives: tuple[str, ...] = ("mlm",)
    causal_objectives: tuple[str, ...] = ("clm",)
    settings: Settings = field(default_factory=dict)
    paper: Settings = field(default_factory=dict)
    not_fast: tuple[str, ...] = ()
    free_fields: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class HuggingFaceSpec:
    """How Hugging Face stores this encoder; the tables are used for loading and for saving.

    * ``weights``: bertkit name -> Hugging Face names; ``{layer}`` counts from 0. Several Hugging Face tensors are
      concatenated in this order along dimension 0. ``.T`` after a name: the stored tensor is transposed. In a file that
      also has heads, ``prefix`` precedes the Hugging Face names.
    * ``settings``: field of the configuration -> Hugging Face keys. If there are several, all must have the same value.
    * ``values``: field -> Hugging Face value -> bertkit value, where these differ. If several Hugging Face values have
      the same bertkit value, the first is written.
    * ``fixed``: Hugging Face key -> the only supported value. ``assumed``: field -> Hugging Face's default.
    * ``architectures``: labels of the heads -> Hugging Face class with these heads; no label -> class of the encoder.
    * ``heads``: label of a head -> its table of names, where it differs from ``HF_NAMES`` of the objective.
    * ``token_ids``: Hugging Face key -> attribute of the tokenizer with this id, where their default is that of the
      published vocabulary and outside a smaller one.
    * ``rewrite``: a function from the content of a ``config.json`` and its source, for errors, to the same content with
      the keys of ``settings``, where these have changed between versions.
    * ``moved``: label of a head -> Hugging Face name of an encoder weight -> its name in a file with such a head.

    Without ``weights`` and ``settings`` a model folder has bertkit's names, and only bertkit can load it. The same is
    true of a part of the encoder that ``weights`` does not list.

    ``optional_part`` is the module of the encoder that a file may lack, such as the pooler; it is then initialised.
    If it ``precedes_heads``, Hugging Face counts it among them: its names have no prefix, and a file without heads has
    nothing of it.
    ``extra_tokens`` is how many tokens the tokenizer may have without an embedding, because fine-tuning adds them.
    With ``positions_from_pad`` positions are counted from ``pad_token_id``, which must then be that of the tokenizer.
    ``buffers`` are the ends of the names of tensors that are not weights. ``tied`` maps the label of a head to its
    tied tensors: name of the copy -> name of the original.
    """

    prefix: str = "encoder."
    weights: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    settings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    fixed: Mapping[str, object] = field(default_factory=dict)
    assumed: Mapping[str, object] = field(default_factory=dict)
    architectures: Mapping[frozenset[str], str] = field(default_factory=dict)
    heads: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    token_ids: Mapping[str, str] = field(default_factory=dict)
    rewrite: Callable[[Mapping[str, object], str], Mapping[str, object]] | None = None
    moved: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    optional_part: str | None = None
    precedes_heads: bool = False
    extra_tokens: int = 0
    positions_from_pad: bool = False
    buffers: tuple[str, ...] = ()
    tied: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class EncoderSpec:
    """Everything that the rest of bertkit needs to know about an encoder.

    ``title`` is its name on model cards. ``load_tokenizer`` reads the tokenizer of a model folder. ``size`` makes a
    configuration from ``--size`` and the size of the vocabulary; an encoder with ``pretraining`` needs one.
    ``embeddings`` are the beginnings of the names of parameters that count as embeddings. ``model_type`` identifies the
    encoder in ``config.json``; by default it is the name of the module, with its package if that is not bertkit's.
    """

    title: str
    encoder: type[Encoder]
    config: ConfigType
    load_tokenizer: Callable[[Path], SubwordTokenizer]
    size: Callable[..., EncoderConfig] | None = None
    pretraining: PretrainingDefaults | None = None
    embeddings: tuple[str, ...] = ("embeddings.",)
    model_type: str = ""
    huggingface: HuggingFaceSpec = field(default_factory=HuggingFaceSpec)

    def __post_init__(self) -> None:
        if not self.model_type:
            object.__setattr__(self, "model_type", self.config.__module__.removeprefix("bertkit.encoders."))
