"""Options of the verbs about vectors of texts: embed and search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from bertkit.options.inputs import Input, InputFile, LoadedModel, ModelPath, TableFile, TableStream
from bertkit.options.job import AnyPath, InferenceJobOptions, ModelOptions
from bertkit.ranges import Neighbours


@dataclass(frozen=True, kw_only=True)
class EmbedOptions(InferenceJobOptions):
    """Make a vector of every text of a file, from any model.

    The same command continues after an interruption.
    """

    CONTINUES = True

    model: ModelPath = field(kw_only=False)
    """Run folder, model folder or Hugging Face folder."""
    input: TableStream = field(kw_only=False)
    """.csv, .tsv, .jsonl, .parquet, .xlsx, or .txt with one text per line; - is stdin."""
    output: AnyPath
    """.npy, with a record of the model beside it, or .parquet."""
    text: str | None = None
    """Column of the text. [default: guessed]"""
    encoding: str | None = None
    """Encoding of INPUT, such as cp1252. [default: UTF-8]"""
    pool: Literal["cls", "mean", "max"] | None = None
    """The mean or the maximum over the tokens of a text, or the state of [CLS]. [default: that of the model's training
    as a model of embeddings, else mean]"""
    layers: str | tuple[int, ...] = "-1"
    """Layers that are averaged, such as -4,-3,-2,-1 for the last four; 0 is the embeddings."""
    normalize: bool | None = None
    """Give every vector the length 1. [default: as the model was trained, else no]"""
    overwrite: bool = False
    """Replace OUTPUT if it exists."""


@dataclass(frozen=True, kw_only=True)
class SearchOptions(ModelOptions):
    """Find the texts that are nearest to a query, by the cosine of their vectors.

    The search is exact and reads all vectors.
    """

    vectors: InputFile = field(kw_only=False)
    """File that embed wrote."""
    query: str | Sequence[str] = field(kw_only=False)
    """A text. In Python also a list of texts, for all of which the vectors are read once."""
    model: Annotated[AnyPath | LoadedModel, Input("model")]
    """The model that made the vectors. In Python also a loaded model, which stays on its device."""
    top_k: Neighbours = 10
    """Number of texts per query."""
    texts: TableFile | None = None
    """The file that was embedded, to show its texts. [default: VECTORS, if it is a .parquet]"""
    encoding: str | None = None
    """Encoding of TEXTS, such as cp1252. [default: UTF-8]"""
