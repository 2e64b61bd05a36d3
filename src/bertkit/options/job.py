"""The base of all records of options, and what long jobs have in common."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from bertkit.ranges import check_ranges

AnyPath = Path | str
ProgressMode = Literal["auto", "plain", "json", "quiet"]
Device = Literal["auto", "cpu", "cuda"]
Engine = Literal["local", "ray"]
TrainingPrecision = Literal["float32", "bfloat16"]
InferencePrecision = Literal["float32", "bfloat16", "int8", "auto"]


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of a verb. Fields with ``kw_only=False`` are its positional arguments."""

    KEEPS_TABLES: ClassVar[bool] = False
    """Whether tables in memory are written into the folder ``output``, because what is made there needs them later."""

    CONTINUES: ClassVar[bool] = False
    """Whether the same command continues after an interruption."""

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True, kw_only=True)
class ModelOptions(Options):
    """The options of a verb that runs a model."""

    device: Device = "auto"
    """Where the model runs: the first GPU if PyTorch sees one and else the CPU (auto), the CPU, or the GPU."""


@dataclass(frozen=True, kw_only=True)
class InferenceOptions(ModelOptions):
    """The options of a verb that predicts with a model."""

    precision: InferencePrecision | None = None
    """Number format of matrix products. [default: float32, unless the model's config.json says bfloat16]"""


@dataclass(frozen=True, kw_only=True)
class JobOptions(Options):
    """The options of a verb that takes a while."""

    progress: ProgressMode = "auto"
    """What is shown on stderr: a bar on a terminal, a line that changes in a notebook and plain lines elsewhere (auto),
    plain lines, JSON lines, or nothing (quiet)."""


@dataclass(frozen=True, kw_only=True)
class ModelJobOptions(JobOptions, ModelOptions):
    """The options of a verb that runs a model for a while."""


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(ModelJobOptions):
    """The options of a verb that trains a model."""

    precision: TrainingPrecision | None = None
    """Number format of matrix products in training. [default: the faster one on this machine, measured]"""


@dataclass(frozen=True, kw_only=True)
class InferenceJobOptions(JobOptions, InferenceOptions):
    """The options of a verb that predicts with a model for a while."""
