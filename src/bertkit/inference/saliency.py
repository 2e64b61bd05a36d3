"""What a prediction rests on: integrated gradients (Sundararajan et al. 2017, arXiv 1703.01365).

The embedding of each token goes from that of padding to its own in ``STEPS`` steps. The gradients of the predicted
score along the way, times the difference, say how much the token contributes; their sum is the difference of the score
between the text and one of padding.

Letters: T tokens, S steps, H hidden width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bertkit.batch import IGNORE, Batch, Feature, Outputs, id_of
from bertkit.contracts import Example, OutputArrays, Tokens, has_token_embedding
from bertkit.data.features import assemble, collate
from bertkit.errors import UnsupportedError, usage_error
from bertkit.inference.huggingface_tasks import task_of_folder
from bertkit.inference.pipeline import Pipeline, load_masked_lm, task_for
from bertkit.inference.texts import check_content, check_text
from bertkit.model import Model
from bertkit.results import Result
from bertkit.task_types import (
    FileTask,
    QuestionAnsweringTask,
    RegressionTask,
    SpanExample,
    TaggingTask,
    TextExample,
    TextTask,
)
from bertkit.task_types.windows import find_candidates
from bertkit.training.evaluation import evaluation_mode

STEPS = 64
_MOST_STEPS_AT_A_TIME, _TOKENS_AT_A_TIME = 16, 8192
"""Steps, and tokens of all of them, of one pass forwards and backwards, whose activations are in memory together."""

_Pick = Callable[[Outputs], Tensor]
"""From the outputs for S rows to the score (S) that is explained."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Saliency(Result):
    """``contributions`` (T) of the ``tokens`` (T) to the score of ``prediction``; their sum is nearly ``difference``.

    The prediction is in words, such as ``B-PER for "Ada"``. The score is a logit, or for a regression the number in the
    unit of the files unless ``task.numbers`` has another;
    ``difference`` is the score of the text minus that of padding. ``num_truncated`` tokens at the end of the text are
    not read.
    """

    prediction: str
    tokens: tuple[str, ...]
    contributions: NDArray[np.float64]
    score: float
    difference: float
    num_truncated: int = 0


@dataclass(frozen=True, slots=True)
class _Target:
    """An input, and what is explained: from the outputs ``find`` gives the prediction and how to pick its score."""

    feature: Feature
    find: Callable[[Outputs], tuple[str, _Pick]]


def explain(pipeline: Pipeline, text: str, second: str | None = None) -> Saliency:
    """The contribution of each token to what the model predicts for a text.

    ``second`` is the second text of a pair, or the context of a question. For a text with a mask the prediction is the
    best word of the first mask, for a tagger the most certain tag that is not "O" with its word, of several labels the
    most probable one that is predicted, or the most probable one of all where none is. A usage error if a tagger gives
    every word the tag "O"; UnsupportedError for a model whose predictions cannot be explained.
    """
    check_content(text, "text")
    model, target = _prepare(pipeline, text, second)
    encoder = model.to(pipeline.device).encoder
    if not has_token_embedding(encoder):
        raise UnsupportedError(
            f"{type(encoder).__name__} reads characters; explain needs an encoder that embeds tokens."
        )
    tokenizer = pipeline.tokenizer
    with evaluation_mode(model):
        batch = collate([target.feature], pad_id=tokenizer.pad_id)
        with torch.no_grad():
            prediction, pick = target.find(_flatten(model(batch.to(pipeline.device))))
        contributions, ends = _integrate(model, encoder.token_embedding, batch, pick, tokenizer.pad_id)
    tokens = tuple(tokenizer.id_to_token(id_of(id)) for id in target.feature.input_ids.tolist())
    return Saliency(prediction, tokens, contributions, ends[1], ends[1] - ends[0], target.feature.num_truncated)


def _integrate(
    model: Model,
    embedding: nn.Embedding,
    batch: Batch,
    pick: _Pick,
    pad_id: int,
) -> tuple[NDArray[np.float64], tuple[float, float]]:
    """The contributions (T), and the scores of padding and of the text."""
    ids = batch.input_ids.to(embedding.weight.device)
    own = embedding(ids).detach()
    start = embedding(torch.full_like(ids, pad_id)).detach()
    total = torch.zeros(own.shape[1:], dtype=torch.float64, device=own.device)
    # Midpoints of the intervals: their error falls with the square of the number of steps.
    midpoints = (torch.arange(STEPS, device=own.device) + 0.5) / STEPS
    for shares in torch.split(midpoints, max(1, min(_MOST_STEPS_AT_A_TIME, _TOKENS_AT_A_TIME // own.shape[1]))):
        points = (start + shares[:, None, None] * (own - start)).requires_grad_()
        score = _score(model, embedding, batch, points, pick).sum()
        (gradient,) = torch.autograd.grad(score, points)
        total += gradient.double().sum(dim=0)
    contributions = (total / STEPS * (own - start)[0].double()).sum(dim=-1)
    with torch.no_grad():
        ends = _score(model, embedding, batch, torch.cat([start, own]), pick)
    return contributions.cpu().numpy(), (float(ends[0]), float(ends[1]))


def _score(
    model: Model,
    embedding: nn.Embedding,
    batch: Batch,
    embedded: Tensor,
    pick: _Pick,
) -> Tensor:
    """The scores (S,) of S copies of the only row of ``batch``, with the token embeddings ``embedded`` (S, T, H)."""
    count = len(embedded)
    rows = Batch(
        input_ids=batch.input_ids.expand(count, -1),
        segment_ids=batch.segment_ids.expand(count, -1),
        attention_mask=batch.attention_mask.expand(count, -1),
        labels={name: label.expand(count, *label.shape[1:]) for name, label in batch.labels.items()},
    )
    hook = embedding.register_forward_hook(lambda *_: embedded)
    try:
        # A head for masked words may have more rows than there are masks (see ``nn.packing.pad_indices``).
        return pick(_flatten(model(rows.to(embedded.device))))[:count]
    finally:
        hook.remove()


def _flatten(outputs: Mapping[str, Outputs]) -> dict[str, Tensor]:
    """The outputs of all heads, on the host."""
    return {name: tensor.cpu() for each in outputs.values() for name, tensor in each.items()}


def can_explain(task: FileTask | None) -> bool:
    """Whether predictions of a model for this task can be explained; one without a task fills in words."""
    return _find_obstacle(task) is None


def _find_obstacle(task: FileTask | None) -> str | None:
    """What a model for this task is, if its predictions cannot be explained; else None."""
    match task:
        case TextTask(both_orders=True):
            return "a model that reads a pair in both orders"
        case TaggingTask(crf=True):
            return "a tagger with a CRF"
        case None | TextTask() | TaggingTask() | QuestionAnsweringTask():
            return None
        case _:
            return task.pipeline_tag or task.name


def _prepare(pipeline: Pipeline, text: str, second: str | None) -> tuple[Model, _Target]:
    """The model as it was trained, and what is explained of its prediction."""
    folder, *_ = pipeline.models
    if task_of_folder(folder) is None:
        if second is not None:
            raise usage_error("the model fills in words and reads one text: leave out the pair.")
        return load_masked_lm(folder).eval(), _explain_mask(pipeline, text)
    task = pipeline.task
    if (obstacle := _find_obstacle(task)) is not None:
        raise UnsupportedError(
            f"explain is for classes, numbers, tags, answers and masked words, and not for {obstacle}."
        )
    if isinstance(task, TextTask):
        target = _explain_text(pipeline, task, TextExample("0", text, second))
    elif isinstance(task, QuestionAnsweringTask):
        target = _explain_answer(pipeline, task, text, second)
    else:
        assert isinstance(task, TaggingTask)
        if second is not None:
            raise usage_error("the model tags words and reads one text: leave out the pair.")
        target = _explain_tag(pipeline, task, text)
    return folder.load_model(task.objectives).eval(), target


def _explain_text(pipeline: Pipeline, task: TextTask, example: TextExample) -> _Target:
    reader = task_for(pipeline, pair=example.second is not None)
    assert isinstance(reader, TextTask)
    if reader.pair and example.second is None:
        raise usage_error("the model reads two texts: give the second one as the pair.")
    if example.second is not None and not reader.pair:
        raise usage_error("the model reads one text: leave out the pair.")
    feature = _encode(pipeline, reader, example)

    def find(outputs: Outputs) -> tuple[str, _Pick]:
        answer = task.decode(example, [feature], [_to_arrays(outputs)]).label
        if isinstance(task, RegressionTask):
            return f"{answer:.3f}", lambda found: found[task.output]
        logits = outputs[task.output][0].tolist()
        several = [task.labels.index(label) for label in answer] if isinstance(answer, tuple) else []
        best = max(several or range(len(logits)), key=logits.__getitem__)
        return task.labels[best], lambda found: found[task.output][:, best]

    return _Target(feature, find)


def _explain_answer(pipeline: Pipeline, task: QuestionAnsweringTask, question: str, context: str | None) -> _Target:
    if context is None:
        raise usage_error("the model answers questions: give the text with the answer as the pair.")
    example = SpanExample("0", question, check_text(context, "pair"))
    feature = _encode(pipeline, task, example)
    features, offsets = [feature], feature.offsets
    assert offsets is not None

    def find(outputs: Outputs) -> tuple[str, _Pick]:
        """The answer, which is the best span with its text, or no answer, whose score is that of the first token."""
        arrays, owned = [_to_arrays(outputs)], task.encoder.owned(features)
        answer = task.decode(example, features, arrays).text
        start = end = 0
        if answer:
            spans = find_candidates(features, arrays, owned, n_best=task.n_best, longest=task.longest)
            places = ((span.start, span.end) for span in spans)
            start, end = next(each for each in places if context[offsets[each[0], 0] : offsets[each[1], 1]] == answer)
        return answer or "no answer", lambda found: found["start"][:, start] + found["end"][:, end]

    return _Target(feature, find)


def _explain_tag(pipeline: Pipeline, task: TaggingTask, text: str) -> _Target:
    example = task.reader.read_line("0", text)
    feature = _encode(pipeline, task, example)
    offsets = feature.offsets
    assert offsets is not None
    words = torch.from_numpy(np.flatnonzero(offsets[:, 1]))
    is_name = torch.tensor([label != "O" for label in task.labels])
    if not len(words):
        raise usage_error("the text has no word that the model reads: there is no tag to explain.")

    def find(outputs: Outputs) -> tuple[str, _Pick]:
        shares, tags = outputs["logits"][0].softmax(dim=-1)[words].max(dim=-1)
        found_names = is_name[tags]
        if not found_names.any():
            raise usage_error('the model gives every word the tag "O": there is no other tag to explain.')
        word = int((shares * found_names).argmax())
        place, best = int(words[word]), int(tags[word])
        start, end = offsets[place]
        return f'{task.labels[best]} for "{example.first[start:end]}"', lambda found: found["logits"][:, place, best]

    return _Target(feature, find)


def _encode(pipeline: Pipeline, task: FileTask, example: Example) -> Feature:
    """The only feature of an example; a usage error for a text that is read in several windows."""
    feature, *others = task.encode(example, pipeline.tokenizer)
    if others:
        raise usage_error(f"the text is longer than a window of {task.max_length} tokens: shorten it.")
    return feature


def _to_arrays(outputs: Outputs) -> OutputArrays:
    """The outputs of the only row."""
    return {name: tensor[0].numpy() for name, tensor in outputs.items()}


def _explain_mask(pipeline: Pipeline, text: str) -> _Target:
    tokenizer = pipeline.tokenizer
    tokens: Tokens = tokenizer.encode(text, specials=True)
    if tokenizer.mask_id not in tokens.ids:
        mask = tokenizer.id_to_token(tokenizer.mask_id)
        raise usage_error(f"the model fills in words: write {mask} in place of one.")
    feature = assemble(tokenizer, tokens, max_length=pipeline.max_length)
    if tokenizer.mask_id not in feature.input_ids:
        raise usage_error(f"the masked word comes after the {pipeline.max_length} tokens that are read: shorten it.")
    place = feature.input_ids.tolist().index(tokenizer.mask_id)
    targets = np.full(len(feature), IGNORE)
    targets[place] = tokenizer.mask_id
    labelled = replace(feature, labels={"mlm": targets})

    def find(outputs: Outputs) -> tuple[str, _Pick]:
        best = int(outputs["logits"].reshape(-1, outputs["logits"].shape[-1])[0, : tokenizer.vocab_size].argmax())
        word = tokenizer.id_to_token(best)
        return word, lambda found: found["logits"].reshape(-1, found["logits"].shape[-1])[:, best]

    return _Target(labelled, find)
