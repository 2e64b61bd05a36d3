"""Hugging Face's spelling of an encoder, as data: what a folder of theirs is read and written by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bertkit.contracts import Encoder, SubwordTokenizer


@dataclass(frozen=True, kw_only=True)
class HuggingFaceSpec:
    """An encoder under the ``model_type`` of their ``config.json``; one value of this type in the file of an encoder.

    Tables are read in both directions, and ours stands first:

    * ``weights``: our name -> theirs. ``{layer}`` counts from 0. Several are one tensor of ours, joined in this order
      along dimension 0; ``.T`` behind a name says that theirs is the transpose of ours. ``prefix`` stands before them
      in a file that also has heads.
    * ``settings``: field of ``config`` -> their keys. Where they have several, all must say the same.
    * ``values``: field -> their value -> ours, where these differ; of several of theirs the first is written.
    * ``fixed``: their key -> the one value that can be read. ``assumed``: field -> what their class takes it for.
    * ``architectures``: labels of the heads -> the class of theirs that has them; none -> the bare encoder.
    * ``heads``: label of a head -> its table, where it is not the one in the file of the objective.
    * ``moved``: label of a head -> their name of a weight of the encoder -> where it lies beside such a head.

    An encoder that they do not have has none of these tables: without ``weights`` and ``settings`` a folder has our own
    names of tensors and fields, and is for bertkit alone. So is one with a part that ``weights`` does not list.

    ``fresh`` is the part of ours that may be missing and is then drawn; so many pieces, ``later_tokens``, the tokenizer
    may have without an embedding, which fine-tuning adds. ``buffers`` are tensors that are no weights, by
    the ends of their names; ``tied`` says which stored tensors are copies of which, under the label of the head that
    has them.
    """

    model_type: str
    encoder: type[Encoder]
    config: type[Any]
    load_tokenizer: Callable[[Path], SubwordTokenizer]
    prefix: str
    weights: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    settings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    assumed: Mapping[str, Any] = field(default_factory=dict)
    architectures: Mapping[frozenset[str], str] = field(default_factory=dict)
    heads: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    moved: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    fresh: str | None = None
    later_tokens: int = 0
    buffers: tuple[str, ...] = ()
    tied: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
