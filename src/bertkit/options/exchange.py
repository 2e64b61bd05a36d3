"""Options of the verbs that exchange models with other libraries: import and export."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from bertkit.options.inputs import InputFile, ModelPath
from bertkit.options.job import AnyPath, JobOptions


@dataclass(frozen=True, kw_only=True)
class ImportOptions(JobOptions):
    """Convert a model of another library to a model folder, and show what was found in it.

    Every verb also reads such a folder directly; an imported copy loads faster and is checked by its SHA-256.
    """

    source: AnyPath = field(kw_only=False)
    """Hugging Face folder, a folder with a TensorFlow checkpoint of google-research/bert, a run folder, or the name of
    a model on the hub, org/name, which is downloaded."""
    output: AnyPath
    """Model folder to write."""
    overwrite: bool = False
    """Replace the model in OUTPUT."""


@dataclass(frozen=True, kw_only=True)
class ExportOptions(JobOptions):
    """Write a model in the format of another library."""

    run: ModelPath = field(kw_only=False)
    """Run folder, or any model folder."""
    to: Literal["huggingface", "sentence-transformers", "onnx"]
    """The library that is to load the model. For sentence-transformers, a model that predicts a class or a number
    becomes a CrossEncoder, and any other the encoder of a SentenceTransformer. With onnx the folder also has
    onnx/model.onnx, for onnxruntime and others."""
    output: AnyPath
    """Folder to write."""
    int8: bool = False
    """Weights of the ONNX file in 8-bit integers."""
    check: InputFile | None = None
    """File with labels: the ONNX file and the model are compared on it, and nothing is written if they differ."""
    overwrite: bool = False
    """Replace the model in OUTPUT."""
