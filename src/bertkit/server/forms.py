"""The page for people: a form for each thing that a model does, its result, and how to ask for the same elsewhere."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from bertkit.escaping import to_json
from bertkit.inference.saliency import can_explain
from bertkit.server import health
from bertkit.server.call import Call
from bertkit.server.errors import ServerError, invalid, malformed
from bertkit.server.explanations import MOST_TOKENS, count_tokens
from bertkit.server.huggingface import HANDLERS, SIMILARITY, ZERO_SHOT
from bertkit.server.models import EMBED, FILL, ServedModel
from bertkit.server.pages import list_lines, page_reply, render
from bertkit.server.reading import convert
from bertkit.server.tei import RerankRequest, rerank
from bertkit.server.zero_shot import can_infer
from bertkit.task_types import TextTask

NUMBER, RERANK = "number", "rerank"
_FIELDS = 12
"""The most fields of a form."""

_MOST_COMPARED = 50
"""Sentences in one table of all their cosines."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
"""What no HTML may have, and the carriage returns that browsers put before line feeds."""


@dataclass(frozen=True, slots=True)
class Form:
    """A form: its ``title``, its ``fields`` with their labels, and the method of ``InferenceClient`` for the same.

    A field whose label ends in "one per line" is a list.
    """

    title: str
    fields: Mapping[str, str]
    method: str
    make_body: Callable[[Mapping[str, str]], dict[str, Any]]


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


_TEXT = {"text": "Text"}
FORMS: Mapping[str, Form] = {
    FILL: Form("Fill in a word", {"text": "Text with a mask"}, "fill_mask", lambda f: {"inputs": f["text"]}),
    "text-classification": Form("Classify a text", _TEXT, "text_classification", lambda f: {"inputs": f["text"]}),
    "pair": Form(
        "Classify a pair of texts",
        {"text": "First text", "pair": "Second text"},
        "",
        lambda f: {"inputs": [[f["text"], f["pair"]]]},
    ),
    NUMBER: Form("Predict a number", _TEXT, "text_classification", lambda f: {"inputs": f["text"]}),
    RERANK: Form(
        "Sort texts by relevance",
        {"text": "Query", "texts": "Texts, one per line"},
        "",
        lambda f: {"query": f["text"], "texts": list_lines(f["texts"])},
    ),
    "token-classification": Form("Tag words", _TEXT, "token_classification", lambda f: {"inputs": f["text"]}),
    "question-answering": Form(
        "Answer a question",
        {"text": "Question", "context": "Text with the answer"},
        "question_answering",
        lambda f: {"inputs": {"question": f["text"], "context": f["context"]}, "parameters": {"top_k": 5}},
    ),
    "multiple-choice": Form(
        "Choose",
        {"text": "Prompt", "texts": "Choices, one per line"},
        "",
        lambda f: {"inputs": {"prompt": f["text"], "choices": list_lines(f["texts"])}},
    ),
    ZERO_SHOT: Form(
        "Classify without examples",
        {"text": "Text", "labels": "Labels, with commas between them"},
        "zero_shot_classification",
        lambda f: {"inputs": f["text"], "parameters": {"candidate_labels": _words(f["labels"])}},
    ),
    SIMILARITY: Form(
        "Compare sentences",
        {"texts": "Sentences, one per line"},
        "feature_extraction",
        lambda f: {"inputs": list_lines(f["texts"])},
    ),
}


def list_forms(model: ServedModel) -> list[str]:
    """The forms of a model, in the order of the page."""
    names: list[str] = []
    if model.can_rerank:
        names.append(RERANK)
    elif model.gives_number:
        names.append(NUMBER)
    elif isinstance(model.task, TextTask):
        names.append("pair" if model.task.pair else "text-classification")
        names += [ZERO_SHOT] if can_infer(model) else []
    elif model.tasks[0] in FORMS:
        names.append(model.tasks[0])
    return list(dict.fromkeys([*names, SIMILARITY]))


async def home(call: Call, _: None) -> object:
    """The page in a browser; for other clients, whether the server is ready."""
    if "text/html" not in call.headers.get("accept", ""):
        return await health.ready(call, None)
    model = call.service.model(call.query.get("model"))
    return page_reply(_page(call, model))


async def submit(call: Call, body: bytes) -> object:
    """A form that was sent: the page with its result, or with the error beside the form."""
    try:
        values = dict(parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=_FIELDS))
    except (UnicodeDecodeError, ValueError) as error:
        raise malformed("the form cannot be read") from error
    model = call.find_model(values.get("model"))
    name = values.get("form", "")
    if name not in list_forms(model):
        raise malformed("the model has no such form", "form")
    fields = {field: _CONTROL.sub("", values.get(field, "")) for field in FORMS[name].fields}
    try:
        result, failure = await _run(call, model, name, fields), None
    except ServerError as error:
        result, failure = None, error
    links = {} if failure else await asyncio.to_thread(_link_explanations, model, name, fields)
    page = _page(call, model, name, fields, result, failure, links)
    return page_reply(page, failure.status if failure else 200)


async def _run(call: Call, model: ServedModel, name: str, fields: Mapping[str, str]) -> object:
    body = {**FORMS[name].make_body(fields), "model": model.name}
    if name == RERANK:
        return await rerank(call, convert({**body, "return_text": True, "truncate": True}, RerankRequest))
    record, handle = HANDLERS[_task(name)]
    if can_cut(name):
        body["truncate"] = True  # the page says that a text was cut
    if name == SIMILARITY and len(body["inputs"]) > _MOST_COMPARED:
        raise invalid(f"the page compares {_MOST_COMPARED} sentences at most: send fewer lines", "texts")
    result = await handle(call, convert(body, record))
    return (result @ result.T).clip(-1, 1).tolist() if name == SIMILARITY else result


def can_cut(form: str) -> bool:
    """Whether the request of a form may ask for the end of a long text to be cut off."""
    return form == RERANK or "truncate" in HANDLERS[_task(form)][0].__struct_fields__


def _task(form: str) -> str:
    return {"pair": "text-classification", NUMBER: "text-classification", SIMILARITY: EMBED}.get(form, form)


def _page(
    call: Call,
    model: ServedModel,
    name: str | None = None,
    fields: Mapping[str, str] = MappingProxyType({}),
    result: object = None,
    failure: ServerError | None = None,
    links: Mapping[str, str] = MappingProxyType({}),
) -> bytes:
    forms = {each: FORMS[each] for each in list_forms(model)}
    scheme = "https" if call.headers.get("x-forwarded-proto") == "https" else "http"  # behind a proxy with TLS
    address = f"{scheme}://{call.headers.get('host', 'localhost')}"  # that the browser used
    examples = {}
    if name is not None and failure is None:
        cut = call.usage.truncated_inputs > 0 and can_cut(name)
        examples = write_examples(address, model.name, name, fields, key=call.service.keys.needed, cut=cut)
    mask = model.pipeline.tokenizer.id_to_token(model.pipeline.tokenizer.mask_id) if model.fills else ""
    return render(
        "page.html",
        models=call.service.models,
        model=model,
        forms=forms,
        chosen=name,
        values=fields,
        result=result,
        error=failure.message if failure else "",
        examples=examples,
        mask=mask,
        truncated=call.usage.truncated_inputs,
        links=links,
    )


def _link_explanations(model: ServedModel, name: str, fields: Mapping[str, str]) -> dict[str, str]:
    """The pages that look into the prediction of a form, where it is about one text or a pair."""
    if "text" not in fields or name in (RERANK, ZERO_SHOT):
        return {}
    second = fields.get("pair") or fields.get("context")
    if count_tokens(model, fields["text"], second) > MOST_TOKENS:
        return {}
    query = urlencode({"model": model.name, "text": fields["text"], **({"pair": second} if second else {})})
    links = {"Attention": f"/attention?{query}"}
    return {**links, "What the prediction rests on": f"/explain?{query}"} if can_explain(model.task) else links


def write_examples(
    address: str, model: str, name: str, fields: Mapping[str, str], *, key: bool = False, cut: bool = False
) -> dict[str, str]:
    """The same request as a command and as Python; with ``key`` there is a place for the key.

    With ``cut`` they ask for the end of a long text to be cut off, which most methods of ``InferenceClient`` cannot.
    """
    body = FORMS[name].make_body(fields)
    path = "/rerank" if name == RERANK else f"/models/{quote(model)}/pipeline/{_task(name)}"
    sent = {**body, **({"model": model} if name == RERANK else {}), **({"truncate": True} if cut else {})}
    data = to_json(sent)
    header = " -H 'authorization: Bearer KEY'" if key else ""
    curl = f"curl {shlex.quote(address + path)} -H 'content-type: application/json'{header} -d {shlex.quote(data)}"
    method = FORMS[name].method
    if not method or (cut and name != SIMILARITY):
        headers = ", headers={'authorization': 'Bearer KEY'}" if key else ""
        post = f"httpx.post({address + path!r}, json={sent!r}{headers}).raise_for_status().json()"
        return {"curl": curl, "Python": f"import httpx\n{post}"}
    token = ", token='KEY'" if key else ""
    client = f"InferenceClient({address + path!r}{token})"
    call = f"{client}.{method}({_python_arguments(name, body)}{', truncate=True' if cut else ''})"
    if name == SIMILARITY:
        call = f"vectors = {call}\nvectors @ vectors.T"
    return {"curl": curl, "Python": f"from huggingface_hub import InferenceClient\n{call}"}


def _python_arguments(name: str, body: Mapping[str, Any]) -> str:
    inputs = body["inputs"]
    if name == "question-answering":
        return f"question={inputs['question']!r}, context={inputs['context']!r}, top_k=5"
    if name == ZERO_SHOT:
        return f"{inputs!r}, candidate_labels={body['parameters']['candidate_labels']!r}"
    return repr(inputs)
