"""Options of the verbs that measure speed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from bertkit.options.inputs import InputFile, ModelPath
from bertkit.options.job import JobOptions
from bertkit.ranges import Repetitions

Peer = Literal["hf", "ort", "openvino", "st"]


@dataclass(frozen=True, kw_only=True)
class BenchInferenceOptions(JobOptions):
    """Measure vectors of texts per second in every precision, also with other libraries, in turn in one process.

    OMP_NUM_THREADS sets the threads.
    """

    model: ModelPath = field(kw_only=False)
    """Hugging Face folder or model folder of a BERT."""
    texts: InputFile = field(kw_only=False)
    """.csv, .tsv, .jsonl, .parquet, or .txt with one text per line; longer texts are made of them too."""
    against: Sequence[Peer] = ()
    """Other libraries: Hugging Face, ONNX Runtime, OpenVINO, sentence-transformers. What is not installed is named."""
    limit: Repetitions = 1000
    """Texts at most, from the beginning of TEXTS."""
    rounds: Repetitions = 3
    """Rounds that are counted; the best one of each system is shown."""
