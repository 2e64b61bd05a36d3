"""The model that a fine-tuning begins with: a pre-trained encoder, changed as the run says, and heads."""

from __future__ import annotations

from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.contracts import Encoder, LayerStack
from bertkit.encoder_types.building import enlarge
from bertkit.encoder_types.transformer import Transformer
from bertkit.encoder_types.words import WordEncoder
from bertkit.errors import usage_error
from bertkit.finetuning.record import FinetuneRun
from bertkit.finetuning.units import change_unit
from bertkit.finetuning.word_models import WORD_MODEL
from bertkit.inference.huggingface_tasks import task_of_folder
from bertkit.model import Model
from bertkit.objectives.clm import CausalLanguageModel
from bertkit.task_types import FileTask, RegressionTask, have_same_heads


def build_finetuning_model(run: FinetuneRun, folder: ModelFolder) -> Model:
    """The encoder of ``run`` with heads: new ones, or those in ``folder`` (``run.model``) where they fit the task."""
    encoder = build_encoder(run, folder)
    heads = run.task.objectives(encoder)
    model = Model(encoder, heads)
    if model.frozen and (run.from_scratch or run.reinit_layers or run.layer_decay < 1 or run.lstm_layers):
        raise usage_error(
            "task.features uses a frozen encoder: leave out from_scratch, reinit_layers, layer_decay and lstm_layers."
        )
    if keeps_heads(run, folder):
        trained, before = folder.load_model(run.task.objectives, mapped=True), trained_task(folder)
        for name, head in heads.items():
            head.load_state_dict(trained.objectives[name].state_dict())
            if isinstance(run.task, RegressionTask) and isinstance(before, RegressionTask):
                change_unit(head, before.numbers, run.task.numbers)
    return model


def keeps_heads(run: FinetuneRun, folder: ModelFolder) -> bool:
    """Whether the model in ``folder`` was fine-tuned for a task with the same heads, and the run starts from them."""
    trained = trained_task(folder)
    return not run.from_scratch and trained is not None and have_same_heads(trained, run.task)


def trained_task(folder: ModelFolder) -> FileTask | None:
    """The task that the model in ``folder`` was fine-tuned for, here or by another library.

    None without one, and for numbers of another library, whose unit is not known.
    """
    task = task_of_folder(folder)
    return None if isinstance(task, RegressionTask) and "task" not in folder.metadata else task


def build_encoder(run: FinetuneRun, folder: ModelFolder) -> Encoder:
    """The encoder in ``folder``, which is ``run.model``, or the same network with new weights."""
    encoder = folder.build_encoder() if run.from_scratch else folder.load_encoder()
    if folder.metadata.get("kind") == WORD_MODEL:
        assert isinstance(encoder, WordEncoder)
        encoder.reset_untrained_parameters()
    if run.reinit_layers:
        if not isinstance(encoder, LayerStack):
            raise usage_error(f"{type(encoder).__name__} is not a stack of similar layers: leave out reinit_layers.")
        if run.reinit_layers > encoder.num_layers:
            raise usage_error(f"reinit_layers is {run.reinit_layers}; {run.model} has {encoder.num_layers}.")
        encoder.reinitialize_top(run.reinit_layers)
    if run.lstm_layers:
        encoder = _add_lstm(encoder, run)
    if run.gradient_checkpointing and isinstance(encoder, WordEncoder):
        raise usage_error(f"{type(encoder).__name__} has no blocks to compute again: leave out gradient_checkpointing.")
    encoder.gradient_checkpointing = run.gradient_checkpointing
    return encoder


def _add_lstm(encoder: Encoder, run: FinetuneRun) -> Encoder:
    """The encoder with a BiLSTM on top, unless it has that already from an earlier fine-tuning."""
    existing = getattr(encoder.config, "lstm_layers", None)
    if existing is None:
        raise usage_error(f"lstm_layers is for BERT; {run.model} is another network.")
    if existing not in (0, run.lstm_layers):
        raise usage_error(f"lstm_layers is {run.lstm_layers}; {run.model} has a BiLSTM of {existing} on top already.")
    if existing:
        return encoder
    larger: Encoder = enlarge(encoder, lstm_layers=run.lstm_layers)
    return larger


def add_language_model(model: Model, weight: float) -> Model:
    """The same modules with a next-token loss of this ``weight`` in addition (Radford et al. 2018, equation 5).

    ``model`` itself is not changed: its predictions are computed without the language model.
    """
    encoder = model.encoder
    if model.frozen or not isinstance(encoder, Transformer) or not encoder.causal:
        raise usage_error("lm_loss_weight is for a model that is trained and reads from left to right, such as GPT.")
    language_model = CausalLanguageModel(encoder.token_embedding)
    language_model.weight = weight
    return Model(encoder, {**model.heads, "clm": language_model})
