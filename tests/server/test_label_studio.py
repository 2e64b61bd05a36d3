"""Label Studio's ML backend."""

from __future__ import annotations

import pytest
from tests.server.running import post

from bertkit.server.errors import ServerError
from bertkit.server.label_studio import read_controls
from bertkit.server.run import Server

SPANS = '<View><Labels name="who" toName="body"><Label value="PER"/></Labels><Text name="body" value="$note"/></View>'


def test_spans_use_the_names_of_the_interface(server: Server) -> None:
    text = "Ann ran past the mill"
    body = {
        "tasks": [{"id": 1, "data": {"note": text}}],
        "label_config": SPANS,
        "model": "names",
        "project": "1.2",
        "params": {},
    }
    (result,) = post(server, "/predict", body).json()["results"]
    assert result["model_version"] == "names"
    assert result["result"]
    for span in result["result"]:
        value = span["value"]
        assert (span["from_name"], span["to_name"], span["type"]) == ("who", "body", "labels")
        assert text[value["start"] : value["end"]] == value["text"]


def test_places_are_counted_as_a_browser_does(server: Server) -> None:
    text = "\U0001f600\U0001f600 Ann ran past the mill"
    (result,) = post(server, "/predict", {"tasks": [{"id": 1, "data": {"text": text}}], "model": "names"}).json()[
        "results"
    ]
    assert result["result"]
    units = text.encode("utf-16-le")
    for span in result["result"]:
        value = span["value"]
        assert units[2 * value["start"] : 2 * value["end"]].decode("utf-16-le") == value["text"]


def test_a_classifier_gives_a_choice(server: Server) -> None:
    body = {"tasks": [{"id": 1, "data": {"text": "the river"}}]}
    (result,) = post(server, "/predict", body).json()["results"]
    best = post(server, "/predict", {"inputs": "the river"}).json()[0]
    assert result["result"][0]["value"] == {"choices": [best["label"]]}
    assert result["score"] == pytest.approx(best["score"], abs=1e-6)


def test_data_without_the_text_are_an_error_that_names_them(server: Server) -> None:
    reply = post(server, "/predict", {"tasks": [{"id": 1, "data": {"other": "x"}}]})
    assert reply.status_code == 422
    assert reply.json()["field"] == "tasks[0].data.text"


def test_a_text_that_is_too_long_is_no_request_with_truncation(server: Server) -> None:
    body = {"tasks": [{"data": {"text": "river " * 60}}], "model": "reviews"}
    hint = post(server, "/predict", body).json()["hint"]
    assert hint == "Shorten the text, or start the server with --auto-truncate."


def test_the_version_is_the_name_of_the_model(server: Server) -> None:
    assert post(server, "/setup", {"project": "1"}).json() == {"model_version": "reviews"}
    assert post(server, "/setup", {"project": "1", "schema": SPANS}).json() == {"model_version": "names"}
    for schema, message in (("<View>", "`schema` is not XML"), (1, "`schema` must be a string")):
        reply = post(server, "/setup", {"schema": schema})
        assert (reply.status_code, reply.json()["field"], message in reply.json()["error"]) == (422, "schema", True)


def test_names_are_found_and_entities_of_xml_are_refused() -> None:
    (names,) = read_controls(SPANS).values()
    assert (names.control, names.text, names.key) == ("who", "body", "note")
    for config, message in (("<View>", "not XML"), ('<!DOCTYPE v [<!ENTITY a "b">]><View/>', "DOCTYPE")):
        with pytest.raises(ServerError, match=message):
            read_controls(config)


def test_a_model_of_numbers_has_no_choices(server: Server) -> None:
    reply = post(server, "/predict", {"tasks": [{"id": 1, "data": {"text": "a"}}], "model": "ranker"})
    assert reply.status_code == 424


def test_the_controls_choose_the_model(server: Server) -> None:
    choices = '<View><Text name="t" value="$note"/><Choices name="c" toName="t"><Choice value="wet"/></Choices></View>'
    for config, name, control in ((SPANS, "names", "who"), (choices, "reviews", "c")):
        body = {"tasks": [{"data": {"note": "Ann ran past the mill"}}], "label_config": config}
        (result,) = post(server, "/predict", body).json()["results"]
        assert (result["model_version"], result["result"][0]["from_name"]) == (name, control)


def test_an_interface_without_a_control_for_the_model_is_refused(server: Server) -> None:
    for config, named in ((SPANS, "reviews"), ('<View><Text name="t" value="$text"/></View>', None)):
        body = {"tasks": [{"data": {"note": "a", "text": "a"}}], "label_config": config, "model": named}
        reply = post(server, "/predict", body)
        assert (reply.status_code, reply.json()["field"]) == (422, "label_config")
    assert "has no Choices" in reply.json()["error"]
