"""Options of the verbs that measure speed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from bertkit.options.finetuning import TaskValue
from bertkit.options.inputs import DataTable, Input, InputFile, InputPath, ModelPath, TextsPath, TokenizerPath
from bertkit.options.job import JobOptions
from bertkit.ranges import BatchSize, NonNegativeFloat, PositiveInt, Repetitions, TaskLength

InferencePeer = Literal["hf", "ort", "openvino", "st"]
TrainingPeer = Literal["hf"]
PreparationPeer = Literal["tokenizers", "datasets"]


@dataclass(frozen=True, kw_only=True)
class BenchInferenceOptions(JobOptions):
    """Measure vectors of texts per second in every precision, also those of other libraries.

    bfloat16 is left out where the processor has to emulate it. OMP_NUM_THREADS sets the threads.
    """

    model: ModelPath = field(kw_only=False)
    """Hugging Face folder or model folder of a BERT."""
    texts: InputFile = field(kw_only=False)
    """.csv, .tsv, .jsonl, .parquet, or .txt with one text per line; longer texts are made of them too."""
    against: Sequence[InferencePeer] = ()
    """Other libraries: Hugging Face, ONNX Runtime, OpenVINO, sentence-transformers. What is not installed is named."""
    limit: Repetitions = 1000
    """Use at most this many texts, from the beginning of TEXTS."""
    rounds: Repetitions = 3
    """Rounds, in each of which all systems are measured in turn; medians are shown."""


@dataclass(frozen=True, kw_only=True)
class BenchPretrainOptions(JobOptions):
    """Measure the speed of pre-training steps in float32 and bfloat16 on the CPU, also that of Hugging Face.

    A step is forward, backward, clipping and update of a BERT with MLM and NSP on one batch of random tokens. bfloat16
    is left out where the processor has to emulate it. OMP_NUM_THREADS sets the threads.
    """

    size: str = "mini"
    """tiny, mini, small, medium, base, large, or LAYERS/WIDTH/HEADS."""
    seq_length: TaskLength = 128
    """Tokens per row."""
    batch_size: BatchSize = 32
    """Rows per step."""
    against: Sequence[TrainingPeer] = ()
    """Other libraries: Hugging Face, on the same network and batch. If it is not installed, a line says so."""
    rounds: Repetitions = 5
    """Rounds, in each of which all systems are measured in turn; medians are shown."""
    seconds: NonNegativeFloat = 3.0
    """Length of a round of one system."""


@dataclass(frozen=True, kw_only=True)
class BenchFinetuneOptions(JobOptions):
    """Measure the speed of fine-tuning steps in float32 and bfloat16 on the CPU, also that of Hugging Face.

    All systems train on the same examples in batches of random lengths. bfloat16 is left out where the processor has
    to emulate it. OMP_NUM_THREADS sets the threads.
    """

    task: Annotated[str | Path | TaskValue | DataTable, Input("task")] = field(kw_only=False)
    """A task's name such as glue:sst2 (bertkit finetune --list shows all), or a table of your own."""
    model: ModelPath
    """Hugging Face folder or model folder of a pre-trained BERT."""
    data: InputPath | None = None
    """Folder with the task's files. [default: the task's folder under BERTKIT_DATA]"""
    limit: PositiveInt = 8000
    """Use at most this many training examples."""
    batch_size: BatchSize = 32
    """Examples per step."""
    against: Sequence[TrainingPeer] = ()
    """Other libraries: Hugging Face, with batches padded to their longest text. If it is not installed, a line says
    so."""
    rounds: Repetitions = 5
    """Rounds, in each of which all systems are measured in turn; medians are shown."""
    seconds: NonNegativeFloat = 3.0
    """Length of a round of one system."""


@dataclass(frozen=True, kw_only=True)
class BenchPrepareOptions(JobOptions):
    """Measure the speed of preparing text files on all cores, also that of other libraries."""

    files: Sequence[TextsPath] = field(kw_only=False)
    """Text files, or folders of them (the formats of bertkit corpus check)."""
    tokenizer: TokenizerPath
    """Folder of a tokenizer or of a model."""
    against: Sequence[PreparationPeer] = ()
    """Other libraries: tokenizers alone on text in memory, and datasets.map with a fast tokenizer of transformers. What
    is not installed is named."""
    rounds: Repetitions = 3
    """Rounds, in each of which all systems are measured in turn; medians are shown."""
