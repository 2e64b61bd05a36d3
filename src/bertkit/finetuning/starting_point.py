"""The encoder that a fine-tuning begins with, and what is put on it beside the heads of the task."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bertkit.checkpoint import model_folder
from bertkit.contracts import Encoder, Objective
from bertkit.encoder_types import Transformer
from bertkit.errors import usage_error
from bertkit.finetuning.record import FinetuneRun
from bertkit.finetuning.word_models import ASSEMBLED
from bertkit.model import Model
from bertkit.objectives.clm import CausalLanguageModel


def begin_encoder(run: FinetuneRun, vocab_size: int) -> Encoder:
    """The encoder of ``run.model``, or the same network with fresh weights; ``vocab_size`` is its tokenizer's.

    Pieces that it knows nothing of yet, such as the three that GPT gets for fine-tuning, have drawn embeddings.
    """
    config = model_folder.read_config(run.model)
    encoder: Encoder = (
        model_folder.encoder_of(config)(config) if run.from_scratch else model_folder.load_encoder(run.model)
    )
    if model_folder.read_metadata(run.model).get("kind") == ASSEMBLED:
        encoder.reset_untrained_parameters()
    if run.reinit_layers:
        if run.reinit_layers > encoder.num_layers:
            raise usage_error(f"reinit_layers is {run.reinit_layers}; {run.model} has {encoder.num_layers}.")
        encoder.reinitialize_top(run.reinit_layers)
    if vocab_size > getattr(config, "vocab_size", vocab_size):
        encoder = enlarge(encoder, vocab_size=vocab_size)
    if run.lstm_layers:
        encoder = _add_lstm(encoder, run)
    encoder.gradient_checkpointing = run.gradient_checkpointing
    return encoder


def _add_lstm(encoder: Any, run: FinetuneRun) -> Any:
    """The encoder with a BiLSTM on top, unless it has that already from an earlier fine-tuning."""
    known = getattr(encoder.config, "lstm_layers", None)
    if known is None:
        raise usage_error(f"lstm_layers is for BERT; {run.model} is another network.")
    if known not in (0, run.lstm_layers):
        raise usage_error(f"lstm_layers is {run.lstm_layers}; {run.model} has a BiLSTM of {known} on top already.")
    return encoder if known else enlarge(encoder, lstm_layers=run.lstm_layers)


def enlarge(encoder: Any, **changes: Any) -> Any:
    """A larger network of the same kind, with other values for some fields of its configuration.

    It has the weights of ``encoder``, a longer table its rows at the beginning; all else is drawn.
    """
    larger = type(encoder)(replace(encoder.config, **changes))
    weights = larger.state_dict()
    for name, weight in encoder.state_dict().items():
        weights[name][: len(weight)] = weight
    return larger


def add_language_model(model: Model, weight: float) -> Model:
    """The same modules with one question more, which piece comes next; its loss counts ``weight`` times.

    ``model`` itself answers as before, without it.
    """
    encoder = model.encoder
    if model.frozen or not isinstance(encoder, Transformer) or not encoder.causal:
        raise usage_error("lm_loss_weight is for a model that is trained and reads from left to right, such as GPT.")
    language = CausalLanguageModel(encoder.embeddings.word)
    language.weight = weight
    heads = {name: head for name, head in model.objectives.items() if isinstance(head, Objective)}
    return Model(encoder, {**heads, "causal": language})
