"""What models do, in the terms of no protocol: each function takes checked inputs and gives plain values."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertkit.errors import BertkitError, list_names, verb_of
from bertkit.inference.fill import Filling, find_tokens
from bertkit.inference.texts import Text
from bertkit.server.activations import activate
from bertkit.server.call import BY_REQUEST, Call
from bertkit.server.errors import invalid, unable
from bertkit.server.inputs import check_number, place_of
from bertkit.server.models import FillInput, ServedModel, TaskInput, TaskResult
from bertkit.task_types import (
    Choice,
    MultipleChoiceTask,
    QuestionAnsweringTask,
    SpanExample,
    SpanPrediction,
    TaggingTask,
    TagPrediction,
    TextTask,
    make_example,
)
from bertkit.task_types.probabilities import Activation
from bertkit.task_types.text_task import mean_output

_SINGLE = ("one text, not two", 'a text, or several, each in a list: [["one"], ["two"]]')
_PAIR = ("two texts, not one", '{"text": ..., "text_pair": ...}, or a list of pairs')
"""What a model reads, and how to send it."""

_ANSWER_CHARACTERS = 2_000_000
"""The most characters of an answer with candidates for masks: as many as a body may have."""

_CANDIDATE_CHARACTERS = 100
"""What a candidate has in JSON beside the text that it completes."""

_MOST_CHOICES = 64
"""All choices of a prompt are computed in one batch."""


class LabelScore(NamedTuple):
    """A label and its score; ``predicted`` is whether the model gives the label to the text."""

    label: str
    score: float
    predicted: bool


class Ranked(NamedTuple):
    """A text by its place in the request, and its score."""

    place: int
    score: float


async def classify(
    call: Call,
    model: ServedModel,
    texts: Sequence[Text],
    *,
    activation: Activation | None = None,
    truncate: bool | None = None,
    remedy: str = BY_REQUEST,
    field: str = "inputs",
) -> list[list[LabelScore]]:
    """For each text all labels, the best first; ``activation`` replaces that of the model.

    ``remedy`` is how the end of a text that is too long could be cut off.
    """
    inputs = [model.text_input(text) for text in texts]
    for number, (text, each) in enumerate(zip(texts, inputs, strict=True)):
        if isinstance(each.task, TextTask) and each.task.pair == isinstance(text, str):
            reads, shape = _PAIR if each.task.pair else _SINGLE
            place = place_of(field, number, len(texts))
            raise invalid(f'the model "{model.name}" reads {reads}.', place, f"Send {shape}.")
    results = await call.run(
        model,
        model.predictions,
        inputs,
        truncate=truncate,
        remedy=remedy,
        pairs=any(not isinstance(text, str) for text in texts),
        field=field,
    )
    return [_scores(model, result, activation or model.activation) for result in results]


async def rerank(
    call: Call,
    model: ServedModel,
    query: str,
    texts: Sequence[str],
    *,
    raw: bool = False,
    truncate: bool | None = None,
    field: str = "texts",
) -> list[Ranked]:
    """The texts by their relevance for the query, the most relevant first; ``raw`` scores are without activation.

    As at TEI and Cohere the scores of a model of another library are from 0 to 1.
    """
    if not model.can_rerank:
        found = "it reads one text" if model.gives_number else f"it has {len(model.labels)} labels instead of one"
        raise unable(f'the model "{model.name}" is not a re-ranker: {found}')
    pairs = [(query, text) for text in texts]
    activation: Activation | None = "none" if raw else model.number_activation
    scores = await classify(call, model, pairs, activation=activation, truncate=truncate, field=field)
    ranked = [Ranked(place, best.score) for place, (best,) in enumerate(scores)]
    return sorted(ranked, key=lambda each: -each.score)


async def fill_masks(
    call: Call, model: ServedModel, text: str, count: int, words: Sequence[str] | None = None
) -> list[list[Filling]]:
    """For each mask the ``count`` most probable words, of all or of these ``words``."""
    if not model.fills:
        raise unable(f'the model "{model.name}" has no masked-LM head; it can do: {", ".join(model.tasks)}')
    tokenizer = model.pipeline.tokenizer
    mask = tokenizer.id_to_token(tokenizer.mask_id)
    if mask not in text:
        raise invalid(f"`inputs` has no {mask}: write {mask} in place of a word", "inputs")
    candidates = None
    if words is not None:
        check_number(words, call.service.limits, "parameters.targets")
        found = await asyncio.to_thread(find_tokens, tokenizer, words)
        if missing := [word for word, id in found.items() if id is None]:
            names = list_names([f'"{word}"' for word in missing])
            are = verb_of(len(missing), "is not a single token", "are not single tokens")
            raise invalid(f"{names} {are} of the vocabulary", "parameters.targets")
        candidates = tuple({id: None for id in found.values() if id is not None})
    count = min(count, tokenizer.vocab_size if candidates is None else len(candidates))
    # Every candidate comes with its whole text.
    if text.count(mask) * count * (len(text) + _CANDIDATE_CHARACTERS) > _ANSWER_CHARACTERS:
        raise invalid(f"the answer has more than {_ANSWER_CHARACTERS:,} characters: ask for less", "parameters.top_k")
    (masks,) = await call.run(model, model.fillings, [FillInput(text, count, candidates)], field="inputs")
    return list(masks)


async def tag(call: Call, model: ServedModel, texts: Sequence[str]) -> list[tuple[TaskInput, TagPrediction]]:
    """The tags and entities of each text, with the words that they belong to."""
    task = model.task
    if not isinstance(task, TaggingTask):
        raise unable(f'the model "{model.name}" does not tag words; it can do: {", ".join(model.tasks)}')
    inputs = [TaskInput(task, task.reader.read_line("0", text)) for text in texts]
    results = await call.run(model, model.predictions, inputs)
    return [(each, result.prediction) for each, result in zip(inputs, results, strict=True)]


async def answer(
    call: Call,
    model: ServedModel,
    question: str,
    context: str,
    *,
    n_best: int = 1,
    overlap: int | None = None,
    **settings: int | bool | None,
) -> SpanPrediction:
    """The answer to a question, with at least ``n_best`` candidates; ``settings`` replace those of the task.

    ``overlap`` is the number of tokens of the context that two windows share.
    """
    task = model.task
    if not isinstance(task, QuestionAnsweringTask):
        raise unable(f'the model "{model.name}" does not answer questions; it can do: {", ".join(model.tasks)}')
    given = {name: value for name, value in settings.items() if value is not None}
    given["n_best"] = max(task.n_best, n_best)
    try:
        changed = replace(task, **given)  # type: ignore[arg-type]
    except BertkitError as error:
        raise invalid(str(error), "parameters") from error
    if changed.max_length > model.max_length:
        raise invalid(f"`max_seq_len` may be {model.max_length} at most", "parameters.max_seq_len")
    if overlap is not None or given.keys() & {"max_length", "max_query"}:
        changed = await asyncio.to_thread(_set_stride, call, model, changed, question, context, overlap)
    inputs = [TaskInput(changed, SpanExample("0", question, context))]
    (result,) = await call.run(model, model.predictions, inputs, field="inputs.question")
    prediction: SpanPrediction = result.prediction
    return prediction


async def choose(call: Call, model: ServedModel, prompt: str, choices: Sequence[str]) -> Choice:
    """The choice that fits the prompt best, with the probability of each."""
    task = model.task
    if not isinstance(task, MultipleChoiceTask):
        raise unable(f'the model "{model.name}" does not choose between texts; it can do: {", ".join(model.tasks)}')
    if len(choices) > _MOST_CHOICES:
        raise invalid(f"{len(choices):,} choices; {_MOST_CHOICES} are allowed", "inputs.choices")
    example = make_example("0", prompt, choices, where="inputs.choices")
    (result,) = await call.run(model, model.predictions, [TaskInput(task, example)])
    choice: Choice = result.prediction
    return choice


async def embed(
    call: Call,
    model: ServedModel,
    texts: Sequence[str],
    *,
    normalize: bool = True,
    dimensions: int | None = None,
    truncate: bool | None = None,
    field: str = "inputs",
    places: Sequence[str] | None = None,
) -> NDArray[np.float32]:
    """The vectors (N, H) of N texts; ``dimensions`` keeps the first numbers; with ``normalize`` what remains has
    length 1. ``field`` and ``places`` are for errors, as in ``Call.run``."""
    width = model.encoder.hidden_size
    if dimensions is not None and not 1 <= dimensions <= width:
        raise invalid(f"`dimensions` must be from 1 to {width}", "dimensions")
    rows = await call.run(
        model, model.embeddings, texts, truncate=truncate, remedy=BY_REQUEST, field=field, places=places
    )
    vectors = np.stack(rows)[:, :dimensions]
    if normalize:
        vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return np.asarray(vectors, dtype=np.float32)


async def embed_tokens(
    call: Call, model: ServedModel, texts: Sequence[str], *, truncate: bool | None = None
) -> list[NDArray[np.float32]]:
    """The states (T, H) of the T tokens of each text."""
    return await call.run(model, model.token_states, texts, truncate=truncate, remedy=BY_REQUEST)


async def compare(
    call: Call, model: ServedModel, source: str, texts: Sequence[str], *, truncate: bool | None = None
) -> list[float]:
    """The cosine of the vector of ``source`` with that of each text."""
    places = [place_of("inputs.sentences", number, len(texts)) for number in range(len(texts))]
    # One job, for which an empty queue always has room, and not for two.
    vectors = await embed(call, model, [source, *texts], truncate=truncate, places=["inputs.source_sentence", *places])
    return [float(cosine) for cosine in (vectors[1:] @ vectors[0]).clip(-1, 1)]


def _set_stride(
    call: Call, model: ServedModel, task: QuestionAnsweringTask, question: str, context: str, overlap: int | None
) -> QuestionAnsweringTask:
    """The task with windows that share ``overlap`` tokens of the context, or with its own stride.

    422 where the windows have no room, do not move forward, or have more tokens than may wait for a model.
    """
    tokenizer = model.pipeline.tokenizer
    before = 1 + min(len(tokenizer.encode(question).ids), task.encoder.longest_question) + len(tokenizer.between_ids)
    room = task.max_length - before - 1
    if room < 1:
        message = f"`max_seq_len` is {task.max_length}, which leaves no room for the context beside the question"
        raise invalid(message, "parameters.max_seq_len")
    if overlap is not None and overlap >= room:
        message = f"`doc_stride` is the overlap of windows that have {room} tokens of the context each: ask for less"
        raise invalid(message, "parameters.doc_stride")
    step = min(task.stride, room) if overlap is None else room - overlap
    windows = 1 + max(0, len(tokenizer.encode(context).ids) - room) // step
    if windows * task.max_length > call.service.limits.queued_tokens:
        raise invalid(f"the context would be read in {windows:,} windows: ask for less overlap", "parameters")
    return replace(task, stride=step)


def _scores(model: ServedModel, result: TaskResult, activation: Activation) -> list[LabelScore]:
    if model.gives_number:
        (number,) = activate(np.array([result.prediction.label]), activation)
        return [LabelScore(model.labels[0], number, True)]
    logits = mean_output(result.outputs, "logits")
    predicted = result.prediction.label  # a tuple where there may be several
    scores = [
        LabelScore(label, each, label in predicted if isinstance(predicted, tuple) else label == predicted)
        for label, each in zip(model.labels, activate(logits, activation), strict=True)
    ]
    return sorted(scores, key=lambda each: -each.score)
