"""What a prediction rests on: integrated gradients (Sundararajan et al. 2017, arXiv 1703.01365).

The embedding of each token goes from that of padding to its own in ``STEPS`` steps. The gradients of the predicted
score along the way, times the difference, say how much the token contributes; their sum is the difference of the score
between the text and one of padding.

Letters: T tokens, S steps, H hidden width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bertkit.batch import Batch, Feature, Outputs, id_of
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.contracts import TokenEmbedding, Tokens
from bertkit.data.features import assemble, collate
from bertkit.errors import usage_error
from bertkit.inference.huggingface_tasks import find_task
from bertkit.inference.pipeline import Pipeline, build_masked_lm, task_for
from bertkit.inference.texts import check_text
from bertkit.model import Model
from bertkit.task_types import QuestionAnsweringTask, SpanExample, TaggingTask, TextExample, TextTask
from bertkit.training.evaluation import evaluation_mode

STEPS = 64
_STEPS_AT_A_TIME = 16


@dataclass(frozen=True, slots=True, eq=False)
class Saliency:
    """``contributions`` (T) of the ``tokens`` (T) to the score of ``prediction``; their sum is nearly ``difference``.

    The score is a logit, or a number for a regression; ``difference`` is the score of the text minus that of padding.
    """

    prediction: str
    tokens: tuple[str, ...]
    contributions: NDArray[np.float64]
    score: float
    difference: float


@dataclass(frozen=True, slots=True)
class _Target:
    """An input, and what of the outputs is explained: ``name`` is that of the prediction."""

    feature: Feature
    find: Callable[[Mapping[str, Tensor]], tuple[str, Callable[[Mapping[str, Tensor]], Tensor]]]


def explain(pipeline: Pipeline, text: str, second: str | None = None) -> Saliency:
    """The contribution of each token to what the model predicts for a text.

    ``second`` is the second text of a pair, or the context of a question. For a text with a mask it is the best word
    of the first mask, for a tagger the tag of the word that is most certainly in a name.
    """
    check_text(text, "text")
    model, target = _prepare(pipeline, text, second)
    encoder = model.encoder
    if not isinstance(encoder, TokenEmbedding):
        raise usage_error(f"{type(encoder).__name__} reads characters; explain needs an encoder that embeds tokens.")
    tokenizer = pipeline.tokenizer
    with evaluation_mode(model):
        batch = collate([target.feature], pad_id=tokenizer.pad_id)
        with torch.no_grad():
            prediction, pick = target.find(_flatten(model(batch)))
        contributions, ends = _integrate(model, encoder.token_embedding, batch, pick, tokenizer.pad_id)
    tokens = tuple(tokenizer.id_to_token(id_of(id)) for id in target.feature.input_ids.tolist())
    return Saliency(prediction, tokens, contributions, ends[1], ends[1] - ends[0])


def _integrate(
    model: Model,
    embedding: nn.Embedding,
    batch: Batch,
    pick: Callable[[Mapping[str, Tensor]], Tensor],
    pad_id: int,
) -> tuple[NDArray[np.float64], tuple[float, float]]:
    """The contributions (T), and the scores of padding and of the text."""
    own = embedding(batch.input_ids).detach()
    start = embedding(torch.full_like(batch.input_ids, pad_id)).detach()
    total = torch.zeros(own.shape[1:], dtype=torch.float64)
    for first in range(0, STEPS, _STEPS_AT_A_TIME):
        # Midpoints of the intervals: their error falls with the square of the number of steps.
        shares = (torch.arange(first, first + _STEPS_AT_A_TIME) + 0.5) / STEPS
        points = (start + shares[:, None, None] * (own - start)).requires_grad_()
        score = _score(model, embedding, batch, points, pick).sum()
        (gradient,) = torch.autograd.grad(score, points)
        total += gradient.double().sum(dim=0)
    contributions = (total / STEPS * (own - start)[0].double()).sum(dim=-1)
    with torch.no_grad():
        ends = _score(model, embedding, batch, torch.cat([start, own]), pick)
    return contributions.numpy(), (float(ends[0]), float(ends[1]))


def _score(
    model: Model,
    embedding: nn.Embedding,
    batch: Batch,
    embedded: Tensor,
    pick: Callable[[Mapping[str, Tensor]], Tensor],
) -> Tensor:
    """The score (S,) of rows whose embeddings are ``embedded`` (S, T, H)."""
    count = len(embedded)
    rows = Batch(
        input_ids=batch.input_ids.expand(count, -1),
        segment_ids=batch.segment_ids.expand(count, -1),
        attention_mask=batch.attention_mask.expand(count, -1),
        labels={name: label.expand(count, *label.shape[1:]) for name, label in batch.labels.items()},
    )
    hook = embedding.register_forward_hook(lambda *_: embedded)
    try:
        return pick(_flatten(model(rows)))
    finally:
        hook.remove()


def _flatten(outputs: Mapping[str, Outputs]) -> dict[str, Tensor]:
    return {name: tensor for each in outputs.values() for name, tensor in each.items()}


def _prepare(pipeline: Pipeline, text: str, second: str | None) -> tuple[Model, _Target]:
    """The model as it was trained, and what is explained of its prediction."""
    folder = ModelFolder.open(pipeline.folder)
    if find_task(folder) is None:
        if second is not None:
            raise usage_error("the model fills in words and reads one text: leave out --pair.")
        return folder.load_model(build_masked_lm).eval(), _explain_mask(pipeline, text)
    task = pipeline.task
    model = folder.load_model(task.objectives).eval()
    tokenizer = pipeline.tokenizer
    if isinstance(task, TextTask):
        reader = task_for(pipeline, pair=second is not None)
        (feature, *others) = reader.encode(TextExample("0", text, second), tokenizer)
        if others:
            raise usage_error(f"the text is longer than a window of {task.max_length} tokens: shorten it.")
        if feature.lengths is not None:
            raise usage_error("explain cannot explain a model that reads a pair in both orders yet.")
        return model, _Target(feature, lambda outputs: _pick_class(task, outputs))
    if isinstance(task, QuestionAnsweringTask):
        if second is None:
            raise usage_error("the model answers questions: give the text with the answer as --pair.")
        (feature, *others) = task.encode(SpanExample("0", text, check_text(second, "pair")), tokenizer)
        if others:
            raise usage_error(f"the text is longer than a window of {task.max_length} tokens: shorten it.")
        return model, _Target(feature, lambda outputs: _pick_span(pipeline, feature, outputs))
    if isinstance(task, TaggingTask) and not task.crf:
        feature = task.encode(task.reader.read_line("0", text), tokenizer)[0]
        return model, _Target(feature, lambda outputs: _pick_tag(task, feature, outputs))
    raise usage_error(f"explain cannot explain {task.pipeline_tag} yet.")


def _explain_mask(pipeline: Pipeline, text: str) -> _Target:
    tokenizer = pipeline.tokenizer
    tokens: Tokens = tokenizer.encode(text, specials=True)
    if tokenizer.mask_id not in tokens.ids:
        mask = tokenizer.id_to_token(tokenizer.mask_id)
        raise usage_error(f"the model fills in words: write {mask} in place of one.")
    feature = assemble(tokenizer, tokens, max_length=pipeline.max_length)
    if tokenizer.mask_id not in feature.input_ids:
        raise usage_error(f"the masked word is behind the {pipeline.max_length} tokens that are read: shorten it.")
    place = feature.input_ids.tolist().index(tokenizer.mask_id)
    targets = np.full(len(feature), -100)
    targets[place] = tokenizer.mask_id
    labelled = Feature(feature.input_ids, feature.segment_ids, {"mlm": targets}, feature.offsets)

    def find(outputs: Mapping[str, Tensor]) -> tuple[str, Callable[[Mapping[str, Tensor]], Tensor]]:
        best = int(outputs["logits"].reshape(-1, outputs["logits"].shape[-1])[0].argmax())
        word = tokenizer.id_to_token(best)
        return word, lambda found: found["logits"].reshape(-1, found["logits"].shape[-1])[:, best]

    return _Target(labelled, find)


def _pick_class(task: TextTask, outputs: Mapping[str, Tensor]) -> tuple[str, Callable[[Mapping[str, Tensor]], Tensor]]:
    if "logits" not in outputs:
        return f"{float(outputs['value'][0]):.3f}", lambda found: found["value"]
    best = int(outputs["logits"][0].argmax())
    return task.labels[best], lambda found: found["logits"][:, best]


def _pick_span(
    pipeline: Pipeline, feature: Feature, outputs: Mapping[str, Tensor]
) -> tuple[str, Callable[[Mapping[str, Tensor]], Tensor]]:
    context = torch.from_numpy(np.asarray(feature.segment_ids) == 1)
    context[-1] = False
    start = int(outputs["start"][0].masked_fill(~context, float("-inf")).argmax())
    after = context & (torch.arange(len(context)) >= start)
    end = int(outputs["end"][0].masked_fill(~after, float("-inf")).argmax())
    words = pipeline.tokenizer.decode(feature.input_ids[start : end + 1].tolist())
    return words, lambda found: found["start"][:, start] + found["end"][:, end]


def _pick_tag(
    task: TaggingTask, feature: Feature, outputs: Mapping[str, Tensor]
) -> tuple[str, Callable[[Mapping[str, Tensor]], Tensor]]:
    assert feature.offsets is not None
    words = torch.from_numpy(np.flatnonzero(feature.offsets[:, 1]))
    names = [number for number, label in enumerate(task.labels) if label != "O"]
    shares = outputs["logits"][0].softmax(dim=-1)[words][:, names]
    word, name = divmod(int(shares.argmax()), len(names))
    place, best = int(words[word]), names[name]
    return task.labels[best], lambda found: found["logits"][:, place, best]
