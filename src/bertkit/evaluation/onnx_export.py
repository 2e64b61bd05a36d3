"""A model as a folder with an ONNX file, compared with the model on labelled examples of the user."""

from __future__ import annotations

import shutil
import tempfile
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from bertkit.batch import Batch, EncoderOutput, Feature, Outputs
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.contracts import OutputArrays, Tokenizer
from bertkit.errors import data_error, usage_error
from bertkit.evaluation.evaluate import LabelledSplit, read_split
from bertkit.inference.conversion import Conversion, convert, explain_export, explain_unit, load_whole_model
from bertkit.inference.huggingface_tasks import task_of_folder
from bertkit.inference.onnx_model import HIDDEN_STATES, OnnxModel, quantize_onnx, write_onnx
from bertkit.inference.predict import run_features
from bertkit.inference.runtime import Runtime
from bertkit.model import Model
from bertkit.scores import format_score, kind_of
from bertkit.task_types import FileTask
from bertkit.user_tables.input_columns import choose_columns, with_utf8

FILE = Path("onnx") / "model.onnx"
"""Where sentence-transformers and text-embeddings-inference look for it in a model folder."""

MAX_DIFFERENCE = 1e-3
"""Of an output in float32, in the comparison on the user's examples, as a share of the largest output, or of 1."""

MAX_LOSS = 0.01
"""Of the metric of a model in 8-bit integers; of an error, which has a unit, as a share of it."""

_BATCH = 32
_HEADS_OF_TOKENS = {"tags", "span"}


@dataclass(frozen=True, slots=True)
class OnnxCheck:
    """A comparison on ``examples``: the metric, and examples per second, of the model and of the ONNX file.

    ``difference`` is the largest one between two outputs, and ``largest`` the largest output of the model, without its
    sign. The speed includes padding and batches, but no tokenization.
    """

    examples: int
    metric: str
    before: float
    after: float
    difference: float
    largest: float
    speed_before: float
    speed_after: float

    def lines(self) -> list[str]:
        """The comparison as text."""
        return [
            f"{self.examples:,} examples: {self.metric} {format_score(self.before)} with PyTorch, "
            f"{format_score(self.after)} with the ONNX file",
            f"largest difference of an output: {self.difference:.2g}",
            f"examples per second: {self.speed_before:,.0f} with PyTorch in float32, "
            f"{self.speed_after:,.0f} with onnxruntime",
        ]


def export_onnx(folder: ModelFolder, output: Path, *, int8: bool = False, check: Path | None = None) -> Conversion:
    """Write the model into the folder ``output``, with ``onnx/model.onnx`` beside its weights.

    ``check`` is a file with labelled examples of the model's task. If the file computes something else, nothing is
    written: a data error in float32 if an output differs by more than ``MAX_DIFFERENCE``, with ``int8`` if the metric
    falls by more than ``MAX_LOSS``.
    """
    task = task_of_folder(folder)
    if getattr(task, "both_orders", False):
        raise usage_error("--to onnx: this model reads each pair in both orders, which one ONNX file cannot.")
    if check is not None and task is None:
        raise usage_error(f"--check needs a model with a task, and {folder.path} has none: leave it out.")
    labelled = None if check is None or task is None else _read_examples(task, check)
    whole, notes = load_whole_model(folder).eval(), []
    gives_vectors = set(whole.objectives) <= {"similarity"}
    model = Model(whole.encoder, {}).eval() if gives_vectors else whole
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary) / "float32.onnx"
        write_onnx(model, file, folder.embedding)
        if int8:
            quantize_onnx(file, Path(temporary) / "int8.onnx")
            file = Path(temporary) / "int8.onnx"
        if labelled is not None:
            onnx = OnnxModel(file, model)
            found = check_onnx(whole, _Similarity(onnx, whole) if gives_vectors else onnx, labelled, folder.tokenizer)
            judge(found, int8=int8)
            notes = found.lines()
        conversion = convert(folder, output, model=whole, add=partial(_add_file, file))
    size = (output / FILE).stat().st_size / 2**20
    # That other libraries lack the head is true of the folder, and not of the file.
    kept = [each for each in conversion.notes if task is None or each != explain_export(task)]
    kept = list(dict.fromkeys([*kept, *explain_unit(task)]))  # the folder says it only if others read its head
    return replace(conversion, notes=(*kept, f"{FILE}: {size:,.1f} MiB", *notes))


def _add_file(file: Path, folder: Path) -> None:
    (folder / FILE).parent.mkdir()
    shutil.copyfile(file, folder / FILE)


def _read_examples(task: FileTask, file: Path) -> LabelledSplit:
    """The labelled examples in a file; a task of another library's folder has no columns of its own."""
    task, _ = choose_columns(with_utf8(task), file, labelled=True)
    return read_split(task, file, "dev")


class _Similarity(nn.Module):
    """The cosines of an ONNX file that gives vectors, by the head of the ``model``, which has no weights."""

    def __init__(self, onnx: OnnxModel, model: Model) -> None:
        super().__init__()
        self.onnx = onnx
        self.objectives = model.objectives

    def forward(self, batch: Batch) -> dict[str, Outputs]:
        states = self.onnx(replace(batch, rows_per_feature=None))["encoder"][HIDDEN_STATES]
        output = EncoderOutput(hidden_states=states, pooled=states[:, 0])
        return {name: head(output, batch) for name, head in self.objectives.items()}


def check_onnx(model: Model, onnx: nn.Module, labelled: LabelledSplit, tokenizer: Tokenizer) -> OnnxCheck:
    """Compare ``onnx`` with ``model`` in float32 on labelled examples."""
    task = labelled.task
    encoded = list(task.encode_all(labelled.examples, tokenizer))
    features = [feature for _, own in encoded for feature in own]
    runtime = Runtime.choose([model.encoder], "float32", next(model.parameters()).device)
    systems: list[nn.Module] = [runtime.prepare(model), onnx]
    outputs, speeds, scores = [], [], []
    for system in systems:
        run_features(system, features[:_BATCH], tokenizer.pad_id, _BATCH, "float32")
        begin = time.perf_counter()
        outputs.append(run_features(system, features, tokenizer.pad_id, _BATCH, "float32"))
        speeds.append(len(encoded) / (time.perf_counter() - begin))
        rows = iter(outputs[-1])
        predictions = [task.decode(each, own, [next(rows) for _ in own]) for each, own in encoded]
        scores.append(task.score(labelled.examples, predictions)[task.metric])
    compared = [
        pair
        for one, other, feature in zip(*outputs, features, strict=True)
        for pair in _pair_outputs(one, other, _count_outputs(model, feature))
    ]
    difference = float(np.max([np.abs(expected - found).max() for expected, found in compared]))
    largest = float(np.max([np.abs(expected).max() for expected, _ in compared]))
    return OnnxCheck(len(encoded), task.metric, scores[0], scores[1], difference, largest, speeds[0], speeds[1])


def _count_outputs(model: Model, feature: Feature) -> int | None:
    """The outputs of a feature where they belong to its tokens or choices: those beyond are of others of its batch."""
    if _HEADS_OF_TOKENS & set(model.objectives):
        return len(feature)
    return len(feature.lengths) if "choice" in model.objectives and feature.lengths is not None else None


def _pair_outputs(expected: OutputArrays, found: OutputArrays, length: int | None) -> list[tuple[Any, Any]]:
    """Each output of both systems, up to ``length`` values."""
    return [(np.atleast_1d(value)[:length], np.atleast_1d(found[name])[:length]) for name, value in expected.items()]


def judge(found: OnnxCheck, *, int8: bool) -> None:
    """Raise a data error if the ONNX file is too far from the model; see ``export_onnx``."""
    if kind_of(found.metric).is_error:
        changes, tolerated = "raises", f"{MAX_LOSS:.0%}"
        is_near = found.after <= found.before * (1 + MAX_LOSS)
    else:
        changes, tolerated = "lowers", f"{MAX_LOSS}"
        is_near = found.after >= found.before - MAX_LOSS
    if int8 and not is_near:  # also where a score is undefined
        raise data_error(
            f"--int8 {changes} {found.metric} from {format_score(found.before)} to {format_score(found.after)}, by "
            f"more than {tolerated}. Export in float32: leave out --int8."
        )
    limit = MAX_DIFFERENCE * max(1.0, found.largest)
    if not int8 and not found.difference <= limit:
        raise data_error(
            f"the ONNX file computes other outputs than the model: they differ by {found.difference:.2g}, which is "
            f"more than {limit:.2g}."
        )
