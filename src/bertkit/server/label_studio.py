"""Label Studio's ML backend: predictions for tasks in the form of its annotations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

from msgspec import Struct

from bertkit.server import abilities
from bertkit.server.call import BY_SERVER, Call
from bertkit.server.errors import invalid, unable
from bertkit.server.inputs import check_inputs
from bertkit.server.models import ServedModel
from bertkit.server.records import Request
from bertkit.task_types import NamedEntity, TaggingTask, TextTask

_CONTROLS = {"Labels": "labels", "Choices": "choices"}
_LABELS, _CHOICES = _CONTROLS.values()
_DECLARATION = re.compile(r"<!DOCTYPE|<!ENTITY", re.IGNORECASE)
_DEFAULT_NAMES = ("label", "text", "text")


class LabelStudioTask(Struct):
    """A task of Label Studio, of which the ``data`` are read."""

    data: dict[str, Any]
    id: int | None = None


class LabelStudioRequest(Request):
    """Tasks to predict; ``label_config`` names the controls."""

    tasks: list[LabelStudioTask]
    label_config: str | None = None
    project: str | None = None
    params: dict[str, Any] | None = None
    model_version: str | None = None
    force_reload: bool | None = None
    try_fetch: bool | None = None


class Names(Struct):
    """The names of the control and of the text in the interface, and the key of the text in the data of a task."""

    control: str
    text: str
    key: str


async def predict(call: Call, request: LabelStudioRequest) -> object:
    """Spans of a tagger, or the choice of a classifier, one result per task."""
    controls = read_controls(request.label_config)
    model = _find_model(call, request.model, controls)
    kind = _kind(model)
    if kind is None:
        raise unable(f'the model "{model.name}" gives neither spans nor choices, which Label Studio asks for')
    if kind not in controls:
        tag = next(tag for tag, known in _CONTROLS.items() if known == kind)
        raise invalid(f'`label_config` has no {tag}, and the model "{model.name}" gives {kind}', "label_config")
    names = controls[kind]
    texts = [task.data.get(names.key) for task in request.tasks]
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise invalid(f'the data of task {number} have no text "{names.key}"', f"tasks[{number}].data.{names.key}")
    checked = check_inputs([str(text) for text in texts], call.service.limits, "tasks")
    results = await (_spans if kind == _LABELS else _choices)(call, model, checked, names)
    return {"results": [{**each, "model_version": model.name} for each in results]}


async def setup(call: Call, body: dict[str, Any]) -> object:
    """The version that Label Studio shows: the model that predicts for the interface, which is the ``schema``."""
    schema = body.get("schema")
    if not isinstance(schema, str | None):
        raise invalid("`schema` must be a string", "schema")
    return {"model_version": _find_model(call, None, read_controls(schema, "schema")).name}


def _find_model(call: Call, name: str | None, controls: Mapping[str, Names]) -> ServedModel:
    """The model of this name; without one the first that gives what the interface has a control for."""
    return call.find_model(name, prefer=lambda model: _kind(model) in controls)


def _kind(model: ServedModel) -> str | None:
    """What the model gives: spans, choices, or None for neither."""
    if isinstance(model.task, TaggingTask):
        return _LABELS
    return _CHOICES if isinstance(model.task, TextTask) and not model.gives_number else None


def read_controls(config: str | None, field: str = "label_config") -> dict[str, Names]:
    """For each kind of control in a labelling interface the names of the first one and of the text that it labels.

    Without an interface the names are those that Label Studio's templates have. ``field`` is for errors.
    """
    if not config:
        return {kind: Names(*_DEFAULT_NAMES) for kind in _CONTROLS.values()}
    if _DECLARATION.search(config):
        raise invalid(f"`{field}` has a DOCTYPE, which an interface does not need", field)
    try:
        root = ElementTree.fromstring(config)
    except ElementTree.ParseError as error:
        raise invalid(f"`{field}` is not XML", field) from error
    keys = {text.get("name"): text.get("value", "").lstrip("$") for text in root.iter("Text")}
    default_control, default_text, default_key = _DEFAULT_NAMES
    controls: dict[str, Names] = {}
    for control in root.iter():
        if kind := _CONTROLS.get(str(control.tag)):
            text = control.get("toName", default_text)
            names = Names(control.get("name", default_control), text, keys.get(text) or default_key)
            controls.setdefault(kind, names)
    return controls


async def _spans(call: Call, model: ServedModel, texts: list[str], names: Names) -> list[dict[str, object]]:
    results = []
    for text, (_, prediction) in zip(texts, await abilities.tag(call, model, texts), strict=True):
        entities = prediction.entities
        spans = [_result(names, "labels", _span(text, each), score=each.score) for each in entities]
        results.append({"result": spans, "score": min((each.score for each in entities), default=1.0)})
    return results


async def _choices(call: Call, model: ServedModel, texts: list[str], names: Names) -> list[dict[str, object]]:
    results = []
    for labels in await abilities.classify(call, model, texts, remedy=BY_SERVER, field="tasks"):
        given = [each.label for each in labels if each.predicted]
        choice = _result(names, "choices", {"choices": given}, score=labels[0].score)
        results.append({"result": [choice], "score": labels[0].score})
    return results


def _span(text: str, entity: NamedEntity) -> dict[str, object]:
    """The place of an entity in UTF-16 units, as a browser counts: an emoji is two."""
    start, end = (len(text[:place].encode("utf-16-le", "surrogatepass")) // 2 for place in (entity.start, entity.end))
    return {"start": start, "end": end, "text": entity.text, "labels": [entity.type]}


def _result(names: Names, kind: str, value: dict[str, object], *, score: float) -> dict[str, object]:
    return {"from_name": names.control, "to_name": names.text, "type": kind, "value": value, "score": score}
