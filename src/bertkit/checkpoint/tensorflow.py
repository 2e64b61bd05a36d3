"""Google's folders of a BERT: ``bert_config.json``, ``vocab.txt`` and a TensorFlow checkpoint, read without TensorFlow.

The names are those of google-research/bert (``modeling.py``, ``run_pretraining.py``, ``run_classifier.py``,
``run_squad.py``); they become Hugging Face's, from which the tables of the encoder and the heads go on.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from bertkit.checkpoint.tensorflow_bundle import Bundle
from bertkit.errors import data_error
from bertkit.storage.atomic import read_object

CONFIG = "bert_config.json"

_CURRENT = "checkpoint"
"""The file in which a training run of TensorFlow names its newest checkpoint."""

_CURRENT_PATH = re.compile(r'^model_checkpoint_path: "(?:[^"\n]*/)?([^"/\n]+)"\s*$', re.MULTILINE)

_LAYER = r"(?:attention/self/(?:query|key|value)|(?:attention/output|intermediate|output)/dense)"
_NAMES = (
    (r"bert/embeddings/(word|position|token_type)_embeddings", r"bert.embeddings.\1_embeddings.weight"),
    (rf"bert/encoder/layer_(\d+)/({_LAYER})/(kernel|bias)", r"bert.encoder.layer.\1.\2.\3"),
    (r"bert/encoder/layer_(\d+)/((?:attention/)?output/LayerNorm/(?:gamma|beta))", r"bert.encoder.layer.\1.\2"),
    (r"((?:bert/pooler|cls/predictions/transform)/dense/(?:kernel|bias))", r"\1"),
    (r"((?:bert/embeddings|cls/predictions/transform)/LayerNorm/(?:gamma|beta))", r"\1"),
    (r"cls/predictions/output_bias", "cls.predictions.bias"),
    (r"cls/seq_relationship/output_(weights|bias)", r"cls.seq_relationship.\1"),
    (r"cls/squad/output_(weights|bias)", r"qa_outputs.\1"),
    (r"output_(weights|bias)", r"classifier.\1"),
)
"""Patterns of names, and Hugging Face's names, in which the last part is replaced by that of ``_LAST_PARTS``."""

_KERNEL = "kernel"
_LAST_PARTS = {_KERNEL: "weight", "weights": "weight"}
_COUNTERS = {"global_step", "beta1_power", "beta2_power"}
_MOST_LABELS = 10_000


@dataclass(frozen=True, slots=True)
class Names:
    """The tensors of a checkpoint: those of the model with Hugging Face's names, those of the optimizer, all others."""

    model: Mapping[str, str]
    optimizer: tuple[str, ...]
    unknown: tuple[str, ...]


def is_tensorflow(folder: Path) -> bool:
    """Whether ``folder`` has a configuration of Google's or a checkpoint of TensorFlow."""
    # is_dir: from Python 3.13 on glob raises a ValueError for a name with a zero byte.
    return (folder / CONFIG).is_file() or (folder.is_dir() and any(folder.glob("*.data-00000-of-*")))


def find_index(folder: Path) -> Path:
    """The index of the checkpoint in ``folder``: the one that the file ``checkpoint`` names, or the only one."""
    found = {path.name.removesuffix(".index"): path for path in sorted(folder.glob("*.index"))}
    current = folder / _CURRENT
    if current.is_file() and current.stat().st_size < 2**20:
        named = _CURRENT_PATH.search(current.read_text(encoding="utf-8", errors="replace"))
        if named is None or named[1] not in found:
            raise data_error(f"{current} names no checkpoint of {folder}; there are: {', '.join(found) or 'none'}.")
        return found[named[1]]
    if len(found) != 1:
        problem = f"has {len(found)} checkpoints: {', '.join(found)}" if found else "has no checkpoint, NAME.index"
        raise data_error(
            f'{folder} {problem}. It must have one, or a file "{_CURRENT}" that names one: '
            'model_checkpoint_path: "NAME"'
        )
    return next(iter(found.values()))


def read_config(folder: Path) -> dict[str, Any]:
    """``bert_config.json`` with the keys of a ``config.json`` that follow from the checkpoint: its heads and labels."""
    if not (folder / CONFIG).is_file():
        raise data_error(
            f"{folder} has a checkpoint of TensorFlow and no {CONFIG}: copy that of the pre-trained model."
        )
    bundle = Bundle(find_index(folder))
    names = sort_names(bundle)
    config = {**read_object(folder / CONFIG), "architectures": [_name_class(set(names.model.values()))]}
    for name, theirs in names.model.items():
        if theirs == "classifier.bias" and (count := bundle.entries[name].shape) and count[0] <= _MOST_LABELS:
            config["id2label"] = {str(number): f"LABEL_{number}" for number in range(count[0])}
    return config


def read_weights(folder: Path) -> tuple[Path, dict[str, Tensor]]:
    """The index of the checkpoint in ``folder``, and the tensors of its model by Hugging Face's names.

    All others are compared with their checksums too. One that ``modeling.py`` does not have is a data error.
    """
    bundle = Bundle(find_index(folder))
    names = sort_names(bundle)
    if strange := [name for name in names.unknown if name.startswith("bert/")]:
        raise data_error(f"{bundle.index} has {len(strange)} tensors that no BERT of Google has, such as {strange[0]}.")
    bundle.verify([*names.optimizer, *names.unknown])
    read = bundle.read(names.model)
    return bundle.index, {
        theirs: read[name].T if name.endswith(f"/{_KERNEL}") else read[name] for name, theirs in names.model.items()
    }


def list_variables(folder: Path) -> Names:
    """What each tensor of the checkpoint in ``folder`` is for."""
    return sort_names(Bundle(find_index(folder)))


def sort_names(bundle: Bundle) -> Names:
    """What each tensor of a checkpoint is for. The moments of a tensor have its name as the beginning of theirs."""
    model = {name: theirs for name in bundle.entries if (theirs := _to_huggingface(name)) is not None}
    others = [name for name in bundle.entries if name not in model]
    optimizer = [name for name in others if name in _COUNTERS or name.rpartition("/")[0] in bundle.entries]
    return Names(
        model=model, optimizer=tuple(optimizer), unknown=tuple(name for name in others if name not in set(optimizer))
    )


def _to_huggingface(name: str) -> str | None:
    """Hugging Face's name for a tensor; None if it is not one of the model."""
    for pattern, theirs in _NAMES:
        if match := re.fullmatch(pattern, name):
            *parts, last = match.expand(theirs).replace("/", ".").split(".")
            return ".".join([*parts, _LAST_PARTS.get(last, last)])
    return None


def _name_class(names: Collection[str]) -> str:
    """Hugging Face's class for a model with these tensors."""
    if "classifier.weight" in names:
        return "BertForSequenceClassification"
    if "qa_outputs.weight" in names:
        return "BertForQuestionAnswering"
    if "cls.seq_relationship.weight" in names:
        return "BertForPreTraining"
    return "BertForMaskedLM" if "cls.predictions.bias" in names else "BertModel"
