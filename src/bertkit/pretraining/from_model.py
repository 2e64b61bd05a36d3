"""A pre-training that continues from a model: its configuration, its settings, its vocabulary and its weights."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bertkit.checkpoint.model_folder import ModelFolder, read_objectives
from bertkit.checkpoint.weights import find_weights
from bertkit.contracts import EncoderConfig, has_token_embedding
from bertkit.encoder_types.architectures import find_pretraining_defaults
from bertkit.encoder_types.building import copy_first_rows
from bertkit.errors import data_error, usage_error
from bertkit.lookup import names_from_a_file
from bertkit.model import Model
from bertkit.named_objectives import find_objective
from bertkit.pretraining.data import PretrainingData
from bertkit.pretraining.record import PretrainRun
from bertkit.pretraining.task import PretrainingTask
from bertkit.storage.checksums import sha256_of
from bertkit.text.base import BaseTokenizer, extends

HEAD_SHARE = 0.1
"""Share of the steps that train a new head before the encoder."""

_FREE_FIELDS = frozenset({"vocab_size", "pad_id", "dropout", "attention_dropout", "initializer_range"})
"""The vocabulary and its padding are checked by its tokens."""


def enlarged_config(folder: ModelFolder, *, vocab_size: int) -> EncoderConfig:
    """The configuration of the model, with room for ``vocab_size`` tokens if it has a vocabulary."""
    found: EncoderConfig = folder.config
    find_pretraining_defaults(found)  # raises if it cannot be pre-trained
    own = getattr(found, "vocab_size", vocab_size)
    return found if own >= vocab_size else dataclasses.replace(folder.config, vocab_size=vocab_size)


def free_fields(config: EncoderConfig) -> frozenset[str]:
    """Fields of the configuration that no weight's shape or place depends on, and that may differ from the model's."""
    return _FREE_FIELDS.union(find_pretraining_defaults(config).free_fields)


def check_same_network(model: Path, own: EncoderConfig, wanted: EncoderConfig) -> None:
    """Raise a usage error if ``wanted`` is another network than that of ``model``, whose configuration is ``own``.

    ``wanted`` may have a larger vocabulary. Both have the same architecture.
    """
    free = free_fields(own)
    for each in dataclasses.fields(own):
        has, wants = getattr(own, each.name), getattr(wanted, each.name)
        if each.name not in free and has != wants:
            raise usage_error(f"encoder.{each.name} is {wants}; {model} has {has}, and --from keeps it.")


def continued_settings(folder: ModelFolder, task: PretrainingTask, *, chosen: bool = False) -> dict[str, object]:
    """The settings of a run that continues from a model, where they differ from the defaults of ``PretrainRun``.

    The objectives are those that the model was pre-trained with, or where it does not say so those of ``task``, the
    default of the encoder, if the model has heads for them. If it has none of them, they are the first of ``task``,
    with a new head that is trained alone for the first tenth of the steps. If the user has ``chosen`` objectives, those
    of the model are not looked for: they may be in a package that is not installed here.
    """
    settings: dict[str, object] = {
        "batch_size": 32,
        "optimizer.lr": 5e-5,
        "optimizer.bias_correction": True,
        "schedule.warmup": 0.06,
        "schedule.decay": "linear",
    }
    names = task.objectives if chosen else read_objectives(folder) or task.objectives
    with names_from_a_file():
        kinds = {name: find_objective(name) for name in names}
    present = folder.load_model(
        lambda encoder: {kind.label: kind.build(encoder, task) for kind in kinds.values()}, only_present=True
    ).objectives
    objectives = tuple(name for name, kind in kinds.items() if kind.label in present)
    if not objectives:
        settings["head_share"] = HEAD_SHARE
    return {**settings, "task.objectives": objectives or task.objectives[:1]}


@torch.no_grad()
def load_initial_weights(model: Model, run: PretrainRun, data: PretrainingData) -> list[str]:
    """Copy the weights of ``run.from_model`` into ``model``, and return what to tell the user about them.

    The embedding of a word that was added to the vocabulary, and its bias in the head, are the mean of those of the
    tokens that the word was before. Raises an error if ``data`` has another vocabulary, if the model lacks a head that
    is not to be trained first, or has all of those that are, or if a weight is not finite.
    """
    assert run.from_model is not None
    folder = ModelFolder.open(run.from_model)
    check_same_network(run.from_model, folder.config, run.encoder)
    added = _split_added_words(folder, data)
    loaded = folder.load_model(run.task.build_objectives, only_present=True)
    missing = [name for name in model.objectives if name not in loaded.objectives]
    if missing and not run.head_share:
        raise usage_error(
            f"{folder.path} has no head for {' and '.join(missing)}: leave it out of task.objectives, or train a new "
            f"one first with --set head_share={HEAD_SHARE}."
        )
    if run.head_share and not missing:
        raise usage_error(
            f"{folder.path} has all heads of task.objectives, so there is none to train first: leave out head_share."
        )
    state = model.state_dict()
    for name, weight in loaded.state_dict().items():
        copy_first_rows(state[name], weight)
    for tensor in _list_rows_of_tokens(model):
        for id, tokens in added.items():
            tensor[id] = tensor[tokens].mean(dim=0)
    return _explain(run, folder, missing, len(added))


def model_fingerprint(run: PretrainRun) -> dict[str, dict[str, str]]:
    """The file and the SHA-256 of the weights that the run continues from, for its record; nothing for new weights."""
    if run.from_model is None:
        return {}
    file = find_weights(ModelFolder.open(run.from_model).path)
    return {"from_model": {"file": str(file), "sha256": sha256_of(file)}}


def check_same_model(run: PretrainRun, record: Mapping[str, Any]) -> None:
    """Raise a data error if the model is not the one that ``record`` names; for a run that starts again from step 0."""
    for name, found in model_fingerprint(run).items():
        if found["sha256"] != record[name]["sha256"]:
            raise data_error(f"{found['file']} is not the model that {run.output} was begun with. Begin another run.")


def _split_added_words(folder: ModelFolder, data: PretrainingData) -> dict[int, list[int]]:
    """The id of each word of ``data`` that the model's tokenizer lacks, with the tokens that it has for it."""
    base, tokenizer = folder.tokenizer, data.tokenizer
    if tokenizer.fingerprint == base.fingerprint:
        return {}
    if not (isinstance(tokenizer, BaseTokenizer) and isinstance(base, BaseTokenizer) and extends(tokenizer, base)):
        path = shlex.quote(str(folder.path))
        raise usage_error(
            f"{data.train.corpora[0].folder} was not prepared with the tokenizer of {folder.path}: prepare it with "
            f"--tokenizer {path}, or add words to that tokenizer with bertkit tokenizer train FILE... --from {path}."
        )
    new = range(base.vocab_size, tokenizer.vocab_size)
    return {id: base.encode(tokenizer.surface_form(id)[0]).ids or [base.unk_id] for id in new}


def _list_rows_of_tokens(model: Model) -> list[Tensor]:
    """The tensors with one row per token: the embeddings, and the biases of heads that predict tokens."""
    if not has_token_embedding(model.encoder):
        return []
    table = model.encoder.token_embedding.weight
    biases = [getattr(head, "bias", None) for head in model.heads.values() if head.predicts_vocabulary]
    return [table.data, *(bias.data for bias in biases if bias is not None)]


def _explain(run: PretrainRun, folder: ModelFolder, missing: Sequence[str], num_added: int) -> list[str]:
    lines = []
    if missing:
        lines.append(
            f"{folder.path} has no head for {' and '.join(missing)}: the first {run.head_share:.0%} of the steps train "
            "the heads alone, with the encoder frozen"
        )
    if num_added:
        lines.append(f"{num_added:,} added words start from the mean of the tokens that they were before")
    return lines
