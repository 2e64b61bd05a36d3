"""The page as a browser without JavaScript gets it."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess

import httpx2
import pytest
from selectolax.lexbor import LexborHTMLParser as HTMLParser
from tests.server.running import get, post, running

from bertkit.server.forms import FORMS, can_cut, list_forms, write_examples
from bertkit.server.keys import ApiKeys
from bertkit.server.models import ServedModel
from bertkit.server.run import Server

VALUES = {
    "text": "the river ran past the mill",
    "pair": "the mill",
    "texts": "a river\nthe old mill\nseven coins",
    "context": "seven wide rivers ran past the mill",
    "labels": "water, stone",
}
FORMS_OF_MODELS = [
    ("reviews", "text-classification"),
    ("reviews", "sentence-similarity"),
    ("inference", "pair"),
    ("inference", "zero-shot-classification"),
    ("topics", "text-classification"),
    ("stars", "number"),
    ("ranker", "rerank"),
    ("names", "token-classification"),
    ("questions", "question-answering"),
    ("choices", "multiple-choice"),
    ("words", "fill-mask"),
    ("words", "sentence-similarity"),
]


def fields(form: str, **changes: str) -> dict[str, str]:
    values = {**VALUES, **({"text": "the [MASK] ran"} if form == "fill-mask" else {}), **changes}
    return {field: values[field] for field in FORMS[form].fields}


def send(server: Server, model: str, form: str, **changes: str) -> httpx2.Response:
    return httpx2.post(
        f"{server.address}/page", data={"model": model, "form": form, **fields(form, **changes)}, timeout=60
    )


def test_every_model_has_the_forms_of_what_it_does(loaded: list[ServedModel], server: Server) -> None:
    for model in loaded:
        page = HTMLParser(get(server, f"/?model={model.name}", accept="text/html").text)
        assert [each.attributes["value"] for each in page.css("input[name=form]")] == list_forms(model)
        current = page.css_first("nav a[aria-current=page]")
        assert current is not None
        assert current.text() == model.name


@pytest.mark.parametrize(("model", "form"), FORMS_OF_MODELS)
def test_every_form_gives_a_result(server: Server, model: str, form: str) -> None:
    reply = send(server, model, form)
    page = HTMLParser(reply.text)
    assert reply.status_code == 200
    assert page.css_first(".error") is None
    result = page.css_first("#result")
    assert result is not None
    assert result.css_first("table, .text") is not None
    assert [each.text() for each in result.css("h3")] == ["Result", "curl", "Python"]
    for field, value in fields(form).items():
        kept = page.css_first(f"#{form}-{field}")
        assert kept is not None
        assert kept.text() == value


def test_the_bars_are_the_probabilities(server: Server) -> None:
    page = HTMLParser(send(server, "reviews", "text-classification").text)
    (labels,) = post(server, "/models/reviews", {"inputs": VALUES["text"], "parameters": {}}).json()
    widths = [float(re.findall(r"width: ([\d.]+)%", each.attributes["style"] or "")[0]) for each in page.css(".bar")]
    assert widths == pytest.approx([100 * each["score"] for each in labels], abs=0.1)


def test_names_are_marked_where_they_are(server: Server) -> None:
    page = HTMLParser(send(server, "names", "token-classification").text)
    found = post(server, "/models/names", {"inputs": VALUES["text"], "parameters": {}}).json()
    assert [mark.text(deep=False) for mark in page.css("mark")] == [each["word"] for each in found]
    text = page.css_first(".text")
    assert text is not None
    for small in text.css("small"):
        small.decompose()
    assert text.text() == VALUES["text"]


@pytest.mark.parametrize(
    "text", ["<script>alert(1)</script> the river", '"><img src=x onerror=alert(1)>', "a\u202eb\x1b[31m"]
)
def test_no_text_becomes_markup(server: Server, text: str) -> None:
    page = send(server, "reviews", "text-classification", text=text).text
    assert "<script" not in page
    assert "<img" not in page
    assert "\x1b" not in page


def test_errors_are_beside_the_form(server: Server) -> None:
    for model, form, text, status, message in (
        ("reviews", "text-classification", "  ", 400, "cannot be empty"),
        ("words", "fill-mask", "river " * 60 + "[MASK]", 422, "must have less than 42 tokens"),
    ):
        reply = send(server, model, form, text=text)
        error = HTMLParser(reply.text).css_first(".error")
        assert (reply.status_code, reply.headers["content-type"]) == (status, "text/html; charset=utf-8")
        assert error is not None
        assert message in error.text()


def test_the_end_of_a_long_text_is_cut_off_and_the_page_says_so(server: Server) -> None:
    for model, form in (("reviews", "text-classification"), ("ranker", "rerank")):
        reply = send(server, model, form, text="river " * 60)
        assert reply.status_code == 200
        assert "The end of the text was cut off" in reply.text


def test_the_page_compares_few_sentences(server: Server) -> None:
    """All their cosines are a table: of 4,096 sentences it would be 1.6 GB."""
    found = send(server, "words", "sentence-similarity", texts="a river\n" * 51)
    assert found.status_code == 422
    assert "compares 50 sentences at most" in found.text


def test_forms_that_do_not_exist_are_refused(server: Server) -> None:
    for data, status, message in (
        ({"model": "reviews", "form": "fill-mask"}, 400, "the model has no such form"),
        ({"model": "none", "form": "x"}, 404, 'no model is named "none"'),
        ({"form": ""}, 400, "the model has no such form"),
        ({str(number): "x" for number in range(13)}, 400, "the form cannot be read"),
    ):
        reply = httpx2.post(f"{server.address}/page", data=data, headers={"accept": "text/html"})
        assert (reply.status_code, reply.headers["content-type"]) == (status, "text/html; charset=utf-8")
        assert message in HTMLParser(reply.text).text()
        reply = httpx2.post(f"{server.address}/page", data=data)
        assert (reply.status_code, reply.headers["content-type"]) == (status, "application/json")
    assert httpx2.post(f"{server.address}/page").status_code == 415


def test_the_page_runs_no_script_and_loads_nothing(server: Server) -> None:
    reply = get(server, "/", accept="text/html")
    assert "default-src 'none'" in reply.headers["content-security-policy"]
    assert "<script" not in reply.text
    assert not re.search(r'(src|href)="(https?:)?//', reply.text)
    assert get(server, "/").headers["content-type"] == "application/json"  # for other clients


@pytest.mark.parametrize(("model", "form"), FORMS_OF_MODELS)
def test_the_commands_that_it_shows_give_an_answer(server: Server, model: str, form: str) -> None:
    command = write_examples(
        server.address, model, form, fields(form, text="$(a)'" if form == "question-answering" else "it's [MASK] $(a)")
    )["curl"]
    words = shlex.split(command)
    assert words[0] == "curl"
    reply = httpx2.post(
        words[1], content=words[-1].encode(), headers={"content-type": "application/json"}, timeout=60, verify=False
    )
    assert reply.status_code == 200, reply.text
    if form == "text-classification":
        if shutil.which("curl") is None:
            pytest.skip("no curl on this machine: the answer came without it")
        assert subprocess.run([*words, "-s"], capture_output=True, text=True, check=True).stdout == reply.text


def test_what_it_shows_for_a_text_that_was_cut_off_cuts_it_too(server: Server) -> None:
    page = httpx2.post(
        f"{server.address}/page",
        data={"model": "reviews", "form": "text-classification", "text": "good\u00ad " * 80},
        timeout=60,
    )
    shown = [code.text() for code in HTMLParser(page.text).css("#result pre")]
    assert len(shown) == 2
    words = shlex.split(shown[0])
    reply = httpx2.post(words[1], content=words[-1].encode(), headers={"content-type": "application/json"}, timeout=60)
    assert reply.status_code == 200, reply.text
    assert reply.headers["x-truncated-inputs"] == "1"
    assert "'truncate': True" in shown[1]
    assert "/attention" not in page.text, "a page of attention shows 64 tokens"


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(("model", "form"), FORMS_OF_MODELS)
def test_the_python_that_it_shows_gives_an_answer(
    server: Server, model: str, form: str, cut: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("huggingface_hub", "httpx"):
        pytest.importorskip(name, reason=f"install {name}")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    example = write_examples(server.address, model, form, fields(form), cut=cut and can_cut(form))["Python"]
    *imports, call = example.splitlines()
    names: dict[str, object] = {}
    exec("\n".join(imports), names)
    answer = eval(call, names)
    assert len(answer) > 0
    assert "error" not in answer


def test_examples_have_a_place_for_the_key(loaded: list[ServedModel]) -> None:
    fields = {"text": "a river", "texts": "b"}
    for name, form in (("reviews", "text-classification"), ("ranker", "rerank")):
        open_examples = write_examples("http://host", name, form, fields)
        assert "KEY" not in "".join(open_examples.values())
        assert all("KEY" in each for each in write_examples("http://host", name, form, fields, key=True).values())
    with running(loaded[:1], keys=ApiKeys(("correct-horse",))) as server:
        form_fields = {"model": "reviews", "form": "text-classification", "text": "a river"}
        headers = {"authorization": "Bearer correct-horse"}
        page = httpx2.post(f"{server.address}/page", data=form_fields, headers=headers, timeout=60).text
    assert "authorization: Bearer KEY" in page
