"""A whole model, with every head that its folder has, from one folder to another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertkit.checkpoint.huggingface import normalize_state_dict, tensors_to_hf
from bertkit.checkpoint.model_folder import ModelFolder, read_objectives
from bertkit.checkpoint.save_model import WRITTEN_FACTS, readable_elsewhere, save_model
from bertkit.checkpoint.sentence_transformers import SentenceEmbedding
from bertkit.checkpoint.tensorflow import is_tensorflow, list_variables
from bertkit.checkpoint.weights import find_weights, read_weights
from bertkit.contracts import Encoder, Objective
from bertkit.encoder_types.architectures import is_in_huggingface
from bertkit.encoder_types.settings import context_of, has_lstm
from bertkit.errors import list_names, usage_error
from bertkit.inference.huggingface_tasks import task_of_folder
from bertkit.lookup import names_from_a_file
from bertkit.model import Model
from bertkit.named_objectives import build_objectives
from bertkit.results import Result
from bertkit.task_types import FileTask, RegressionTask
from bertkit.task_types.regression import NUMBERS_OF_FILES
from bertkit.text.tokenizer_files import CONFIG as TOKENIZER_CONFIG
from bertkit.text.tokenizer_files import TOKENIZER
from bertkit.text.wordpiece_files import VOCABULARY, guess_case

_SHOWN = 3

_CROSS_ENCODER_HEADS = {"class", "number"}
"""The heads of ``BertForSequenceClassification`` with a single answer."""


@dataclass(frozen=True, slots=True, repr=False)
class Conversion(Result):
    """What was converted: the name of the encoder, the labels of its heads, its size, and the tensors left out.

    ``is_for_a_task`` is false for an encoder alone and for one with pre-training heads.
    """

    output: Path
    encoder: str
    heads: tuple[str, ...]
    parameters: int
    is_for_a_task: bool
    notes: tuple[str, ...]
    left_out: tuple[str, ...]

    def lines(self) -> list[str]:
        """The report for a person."""
        heads = f"with heads for {', '.join(self.heads)}" if self.heads else "without heads"
        lines = [f"{self.output}: {self.encoder} {heads}, {self.parameters:,} parameters"]
        lines += self.notes
        if self.left_out:
            lines.append(f"left out, unknown here: {list_names(self.left_out, _SHOWN)}")
        return lines


def load_whole_model(folder: ModelFolder) -> Model:
    """The encoder with every head in the folder that bertkit knows: that of its task, or those of pre-training."""
    task = task_of_folder(folder)
    if task is not None:
        return folder.load_model(task.objectives)
    return folder.load_model(lambda encoder: _pretraining_heads(folder, encoder), only_present=True)


def convert(
    folder: ModelFolder,
    output: Path,
    *,
    origin: str | None = None,
    model: Model | None = None,
    add: Callable[[Path], None] | None = None,
) -> Conversion:
    """Write the whole model into the model folder ``output``, completely or not at all.

    A folder of sentence-transformers remains one. ``origin`` is recorded in place of the path of ``folder``. ``model``
    is the whole model, where it is loaded already, and ``add`` writes more files into the folder. Raises a usage error
    for an encoder that no other library has.
    """
    _require_huggingface_architecture(folder)
    return _save(folder, model or load_whole_model(folder), output, folder.embedding, origin, add=add)


def convert_to_sentence_transformers(folder: ModelFolder, output: Path) -> Conversion:
    """Write a folder that sentence-transformers loads: SentenceTransformer an encoder, CrossEncoder a classifier.

    A classifier or a model that predicts a number is written with its head. Any other model is written as its encoder:
    vectors are made as in its training for similarity, or as its folder says, else they are the mean over all tokens.
    """
    _require_huggingface_architecture(folder)
    model = load_whole_model(folder)
    if folder.embedding is not None or task_of_folder(folder) is None:
        return _save(folder, model, output, folder.embedding or SentenceEmbedding(), heads=False)
    if not set(model.objectives) <= _CROSS_ENCODER_HEADS or readable_elsewhere(model) != "model":
        raise usage_error(
            f"{folder.path} has a head for {', '.join(model.objectives)} that sentence-transformers lacks; it has "
            "those for one class or one number on [CLS]. Give --to huggingface, or fine-tune a class or a number with "
            "--set task.pooling=cls."
        )
    return _save(folder, model, output, None)


def _require_huggingface_architecture(folder: ModelFolder) -> None:
    if not is_in_huggingface(folder.config):
        title = folder.spec.title + (" with a BiLSTM on top" if has_lstm(folder.config) else "")
        raise usage_error(f"{folder.path} is {title}, which only bertkit has: no other library reads it.")


def _save(
    folder: ModelFolder,
    whole: Model,
    output: Path,
    embedding: SentenceEmbedding | None,
    origin: str | None = None,
    *,
    heads: bool = True,
    add: Callable[[Path], None] | None = None,
) -> Conversion:
    """Write the ``whole`` model, or its encoder alone without ``heads``."""
    model = whole if heads else Model(whole.encoder, {})
    save_model(output, model, folder.tokenizer, metadata=_describe(folder, origin), embedding=embedding, add=add)
    dropped = [name for name, head in whole.objectives.items() if not heads and [*head.parameters()]]
    notes = [f"left out: the heads for {', '.join(dropped)}, which vectors do not need"] if dropped else []
    task = task_of_folder(folder)
    if task is not None and heads and readable_elsewhere(model) == "encoder":
        notes.append(explain_export(task))
    if heads and readable_elsewhere(model) == "model":
        notes += explain_unit(task)
    return Conversion(
        output=output,
        encoder=folder.spec.title,
        heads=tuple(model.objectives),
        parameters=sum(weight.numel() for weight in model.parameters()),
        is_for_a_task=task is not None,
        notes=(*_explain(folder), *notes),
        left_out=_list_left_out(folder, whole),
    )


def explain_export(task: FileTask) -> str:
    """A sentence for a model whose head other libraries do not have."""
    pooling = getattr(task, "pooling", "cls")
    remedy = "" if pooling == "cls" else f" (task.pooling={pooling}); with --set task.pooling=cls they read it all"
    return f"other libraries read only the encoder of this model: they have no class for its head{remedy}"


def explain_unit(task: FileTask | None) -> list[str]:
    """A sentence if the head of a model gives numbers in a unit of its own, which other libraries do not know."""
    numbers = task.numbers if isinstance(task, RegressionTask) else NUMBERS_OF_FILES
    if numbers.has_scale_of(NUMBERS_OF_FILES):
        return []
    scale = f"multiply them by {numbers.unit!r} and add {numbers.origin!r} for those of the file"
    return [f"other libraries give numbers in the unit of the training: {scale}"]


def _pretraining_heads(folder: ModelFolder, encoder: Encoder) -> Mapping[str, Objective]:
    """New heads of the objectives that the model was pre-trained with, or where it names none, of the usual ones."""
    if own := read_objectives(folder):
        with names_from_a_file():
            return build_objectives(own, encoder)
    defaults = folder.spec.pretraining
    assert defaults is not None, "every encoder that Hugging Face has can be pre-trained"
    causal = context_of(folder.config) == "causal"
    names = defaults.causal_objectives if causal else defaults.objectives
    return build_objectives(names, encoder)


def _describe(folder: ModelFolder, origin: str | None) -> dict[str, Any]:
    """The metadata without what ``save_model`` writes itself; those of another library with their origin."""
    own = {name: value for name, value in folder.metadata.items() if name not in WRITTEN_FACTS}
    return {"kind": "imported", "from": origin or str(folder.path), **own}


def _explain(folder: ModelFolder) -> Iterator[str]:
    """What a user should know of a folder that does not state it."""
    if is_tensorflow(folder.path):
        names = list_variables(folder.path)
        yield f"{find_weights(folder.path).name}: {len(names.model)} tensors, whose checksums are right"
        if names.optimizer:
            yield f"left out: {len(names.optimizer)} tensors of the optimizer"
    file = folder.path / VOCABULARY
    if file.is_file() and not any((folder.path / name).is_file() for name in (TOKENIZER, TOKENIZER_CONFIG)):
        lowercase, reason = guess_case(file)
        yield f"{VOCABULARY} is read as {'uncased' if lowercase else 'cased'}: {reason}"


def _list_left_out(folder: ModelFolder, model: Model) -> tuple[str, ...]:
    """The tensors in the folder that ``model`` does not have, under Hugging Face's names, or names of TensorFlow."""
    spec = folder.spec.huggingface
    file, weights = read_weights(folder.path)
    kept = normalize_state_dict(spec, tensors_to_hf(model), str(file))
    unknown = list_variables(folder.path).unknown if is_tensorflow(folder.path) else ()
    return tuple(sorted(set(normalize_state_dict(spec, weights, str(file))) - set(kept) | set(unknown)))
