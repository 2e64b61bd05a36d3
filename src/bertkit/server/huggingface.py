"""The protocol of ``huggingface_hub.InferenceClient``: a route per task, and routes that find the task by the body."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from bertkit.server import abilities
from bertkit.server.abilities import LabelScore
from bertkit.server.call import Call
from bertkit.server.errors import ServerError, invalid
from bertkit.server.inputs import check_inputs, check_text, empty
from bertkit.server.models import EMBED, FILL, ServedModel
from bertkit.server.reading import convert
from bertkit.server.records import (
    ChooseRequest,
    ClassifyRequest,
    EmbedParameters,
    EmbedRequest,
    FillRequest,
    QuestionRequest,
    SimilarityParameters,
    SimilarityRequest,
    TagRequest,
    ZeroShotRequest,
    asks_to_truncate,
)
from bertkit.server.token_ids import read_ids
from bertkit.server.zero_shot import can_infer, classify_zero_shot
from bertkit.task_types import SpanPrediction, TagExample, TagPrediction
from bertkit.task_types.probabilities import Activation

SIMILARITY, ZERO_SHOT = "sentence-similarity", "zero-shot-classification"
_FIRST_VERSION_WITH_LIST = (1, 2)
_OUTSIDE = "O"
_CLIENT = re.compile(r"hf_hub/(\d+)\.(\d+)")


async def fill_mask(call: Call, request: FillRequest) -> object:
    """Candidates for one mask; a list of such lists for several."""
    model = call.find_model(request.model, FILL)
    parameters = request.parameters
    text = check_text(request.inputs, call.service.limits, "inputs")
    if parameters.targets == []:
        raise empty("parameters.targets")
    masks = await abilities.fill_masks(call, model, text, parameters.top_k or 5, parameters.targets)
    lists = [
        [
            {"score": each.probability, "token": each.token, "token_str": each.word, "sequence": each.text}
            for each in mask
        ]
        for mask in masks
    ]
    return lists[0] if len(lists) == 1 else lists


async def text_classification(call: Call, request: ClassifyRequest) -> object:
    """A list of labels for each text; nested for one text too, because the client takes the first element."""
    model = call.find_model(request.model, "text-classification")
    texts = check_inputs(request.texts(), call.service.limits)
    parameters = request.parameters
    activation: Activation | None = parameters.function_to_apply
    lists = await abilities.classify(call, model, texts, activation=activation, truncate=asks_to_truncate(request))
    return [label_records(each[: parameters.top_k]) for each in lists]


async def token_classification(call: Call, request: TagRequest) -> object:
    """Entities with their characters; for ``aggregation_strategy: none`` the tags of words."""
    model = call.find_model(request.model, "token-classification")
    tagged = await abilities.tag(call, model, check_inputs(request.inputs, call.service.limits))
    strategy, ignored = request.parameters.aggregation_strategy, request.parameters.ignore_labels
    lists = [list_entities(each.example, prediction, strategy, ignored) for each, prediction in tagged]
    return lists[0] if isinstance(request.inputs, str) else lists


async def question_answering(call: Call, request: QuestionRequest) -> object:
    """The answer; with ``top_k`` above 1 a list of the best."""
    model = call.find_model(request.model, "question-answering")
    limits, parameters = call.service.limits, request.parameters
    question = check_text(request.inputs.question, limits, "inputs.question")
    context = check_text(request.inputs.context, limits, "inputs.context")
    count = parameters.top_k or 1
    prediction = await abilities.answer(
        call,
        model,
        question,
        context,
        null=parameters.handle_impossible_answer,
        longest=parameters.max_answer_len,
        overlap=parameters.doc_stride,
        max_length=parameters.max_seq_len,
        max_query=parameters.max_question_len,
        n_best=count,
    )
    answers = _answers(prediction)
    return answers[0] if count == 1 else answers[:count]


async def feature_extraction(call: Call, request: EmbedRequest) -> object:
    """One vector per text, always nested, of length 1 unless ``normalize`` is false."""
    model, texts, settings = await read_texts(call, request)
    return await abilities.embed(
        call,
        model,
        texts,
        normalize=settings.normalize is not False,
        dimensions=settings.dimensions,
        truncate=settings.truncate,
    )


async def read_texts(call: Call, request: EmbedRequest) -> tuple[ServedModel, list[str], EmbedParameters]:
    """The model, the texts with their prompt, and the settings; 422 if texts would lose their beginning."""
    model = call.find_embedder(request.model)
    settings = request.settings()
    cuts = call.service.truncate if settings.truncate is None else settings.truncate
    if request.truncation_direction.lower() == "left" and cuts:
        raise invalid("only the end of a text can be cut off: `truncation_direction` must be right")
    prompt = model.find_prompt(request.prompt_name)
    limits = call.service.limits
    texts = check_inputs(await read_ids(request.inputs, model, limits, "inputs"), limits)
    return model, [prompt + text for text in texts], settings


async def sentence_similarity(call: Call, request: SimilarityRequest) -> object:
    """The cosine of each sentence with the source."""
    model = call.find_embedder(request.model)
    source = check_text(request.inputs.source_sentence, call.service.limits, "inputs.source_sentence")
    texts = check_inputs(request.inputs.sentences, call.service.limits, "inputs.sentences")
    parameters = request.parameters or SimilarityParameters()
    prompt = model.find_prompt(parameters.prompt_name)
    texts = [prompt + text for text in texts]
    return await abilities.compare(call, model, prompt + source, texts, truncate=asks_to_truncate(request))


async def zero_shot_classification(call: Call, request: ZeroShotRequest) -> object:
    """Labels with scores; in the older form for clients before 1.2, which raise on the newer one."""
    model = call.find_model(request.model, "text-classification", can_infer)
    parameters, limits = request.parameters, call.service.limits
    text = check_text(request.inputs, limits, "inputs")
    labels = check_inputs(parameters.candidate_labels, limits, "parameters.candidate_labels")
    ranked = await classify_zero_shot(
        call,
        model,
        text,
        labels,
        template=parameters.hypothesis_template,
        several=parameters.multi_label,
        truncate=asks_to_truncate(request),
    )
    if _wants_columns(call.headers.get("user-agent", "")):
        return {"sequence": text, "labels": [label for label, _ in ranked], "scores": [score for _, score in ranked]}
    return [{"label": label, "score": score} for label, score in ranked]


async def multiple_choice(call: Call, request: ChooseRequest) -> object:
    """The choices with their probabilities, the best first."""
    model = call.find_model(request.model, "multiple-choice")
    prompt = check_text(request.inputs.prompt, call.service.limits, "inputs.prompt")
    choices = check_inputs(request.inputs.choices, call.service.limits, "inputs.choices")
    if len(choices) < 2:
        raise invalid("there must be at least two choices", "inputs.choices")
    chosen = await abilities.choose(call, model, prompt, choices)
    ranked = sorted(enumerate(chosen.scores), key=lambda each: -each[1])
    return [{"index": index, "label": choices[index], "score": score} for index, score in ranked]


HANDLERS: Mapping[str, tuple[type[msgspec.Struct], Any]] = {
    FILL: (FillRequest, fill_mask),
    "text-classification": (ClassifyRequest, text_classification),
    "token-classification": (TagRequest, token_classification),
    "question-answering": (QuestionRequest, question_answering),
    EMBED: (EmbedRequest, feature_extraction),
    SIMILARITY: (SimilarityRequest, sentence_similarity),
    ZERO_SHOT: (ZeroShotRequest, zero_shot_classification),
    "multiple-choice": (ChooseRequest, multiple_choice),
}


async def run_task(call: Call, body: dict[str, Any]) -> object:
    """``POST /pipeline/{task}``: the task that the path names."""
    record, handle = HANDLERS[_check_task(call.path_parameters["task"])]
    return await handle(call, convert(without_options(body), record))


def find_path_model(call: Call, name: str | None = None) -> ServedModel:
    """The model that answers a request with this path and this name; 404 for an unknown one, or an unknown task."""
    if (task := call.path_parameters.get("task")) is None:
        return call.find_model(name)
    if _check_task(task) in (EMBED, SIMILARITY):
        return call.find_embedder(name)
    if task == ZERO_SHOT:
        return call.find_model(name, "text-classification", can_infer)
    return call.find_model(name, task)


def _check_task(name: str) -> str:
    """The name itself; 404 for an unknown one."""
    if name not in HANDLERS:
        raise ServerError(404, f"no task named {name[:100]}; there are: {', '.join(HANDLERS)}")
    return name


async def dispatch(call: Call, body: dict[str, Any]) -> object:
    """``POST /`` and ``/models/{model}``: the task that the body is for."""
    model = call.find_model(body.get("model"))
    record, handle = HANDLERS[task_of_body(model, body)]
    return await handle(call, convert(without_options(body), record))


async def dispatch_patiently(call: Call, body: dict[str, Any]) -> object:
    """As ``dispatch`` for a part of a request: it waits while the queue is full, as long as a request may take."""
    deadline = call.find_deadline()
    while True:
        try:
            return await dispatch(call, body)
        except ServerError as error:
            if error.status != 429 or time.monotonic() > deadline:
                raise
            await asyncio.sleep(min(error.retry_after or 1.0, 1.0))


def without_options(body: Mapping[str, Any]) -> dict[str, Any]:
    """The body without what asks Hugging Face's own service to use its cache or to wait for a model.

    Parameters that are null are none, as in the clients.
    """
    ignored = {"options"} if body.get("parameters", {}) is not None else {"options", "parameters"}
    return {name: value for name, value in body.items() if name not in ignored}


def task_of_body(model: ServedModel, body: Mapping[str, Any]) -> str:
    """The task by the keys of the inputs, else the model's own; vectors where the client sends no ``parameters``."""
    inputs, parameters = body.get("inputs"), body.get("parameters")
    if not isinstance(parameters, dict | None):
        raise invalid("`parameters` must be an object", "parameters")
    if isinstance(inputs, dict):
        for key, task in (("question", "question-answering"), ("source_sentence", SIMILARITY)):
            if key in inputs:
                return task
    elif model.tasks[0] == SIMILARITY:
        return EMBED  # one text has no similarity, but a vector
    if "candidate_labels" in (parameters or {}):
        return ZERO_SHOT
    return model.tasks[0] if "parameters" in body or model.task is not None else EMBED


def label_records(labels: list[LabelScore]) -> list[dict[str, object]]:
    """Labels as the clients expect them; ``predicted`` says which ones the model gives to the text."""
    return [each._asdict() for each in labels]


def list_entities(
    example: TagExample, prediction: TagPrediction, strategy: str, ignored: Sequence[str] | None
) -> list[dict[str, object]]:
    """Entities with their characters in the text; with the strategy ``none`` each word with its tag.

    ``ignored`` are tags or types that are left out, by default "O". Words have one tag each here, that of their first
    token, so all other strategies give the same.
    """
    left_out = {_OUTSIDE} if ignored is None else set(ignored)
    if strategy != "none":
        return [
            {"entity_group": each.type, "score": each.score, "word": each.text, "start": each.start, "end": each.end}
            for each in prediction.entities
            if each.type not in left_out
        ]
    words = zip(example.words, example.places, prediction.label, prediction.probabilities, strict=True)
    return [
        {"entity": tag, "score": score, "index": number, "word": word, "start": start, "end": end}
        for number, (word, (start, end), tag, score) in enumerate(words, start=1)
        if tag not in left_out
    ]


def _answers(prediction: SpanPrediction) -> list[dict[str, object]]:
    """The answers, the best first; the empty one in its place if the model decides for no answer."""
    none = {"score": prediction.score, "start": 0, "end": 0, "answer": ""}
    spans = [{"score": s.probability, "start": s.start, "end": s.end, "answer": s.text} for s in prediction.n_best]
    return spans if prediction.text else [none, *spans]


def _wants_columns(agent: str) -> bool:
    found = _CLIENT.search(agent)
    return found is not None and (int(found[1]), int(found[2])) < _FIRST_VERSION_WITH_LIST
