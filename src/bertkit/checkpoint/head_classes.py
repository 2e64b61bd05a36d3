"""Hugging Face's class of a folder whose ``config.json`` names none, from the names of its weights."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from torch import Tensor

from bertkit.encoder_types.spec import HuggingFaceSpec

POOLER = "pooler"
_TAG = re.compile(r"O|[BIESLU](-.+)?")


def possible_classes(spec: HuggingFaceSpec, weights: Mapping[str, Tensor], labels: Sequence[str]) -> list[str]:
    """The classes for a task that ``weights`` with these class ``labels`` may be of; none if there is no such head.

    ``classifier.weight`` is the head of four classes. BERT's class for tags has no pooler, that for texts has one; a
    single row is a number for a text, or for each of several choices.
    """
    heads: tuple[str, ...] = ()
    if "qa_outputs.weight" in weights:
        heads = ("span",)
    elif "classifier.out_proj.weight" in weights:
        heads = ("class",)
    elif "classifier.weight" in weights:
        heads = _heads_of_classifier(spec, weights, labels)
    return [spec.architectures[frozenset({head})] for head in heads if frozenset({head}) in spec.architectures]


def _heads_of_classifier(
    spec: HuggingFaceSpec, weights: Mapping[str, Tensor], labels: Sequence[str]
) -> tuple[str, ...]:
    if labels and all(map(_TAG.fullmatch, labels)):
        return ("tags",)
    if spec.optional_part != POOLER:  # the classes for texts and for tags have the same weights
        return ("class", "tags")
    if not any(name.endswith(f"{POOLER}.dense.weight") for name in weights):
        return ("tags",)
    if spec.moved:  # the class for texts has its pooler in the head
        return ("choice",)
    return ("number", "choice") if len(weights["classifier.weight"]) == 1 else ("class",)
