"""The page as a browser reads it: well-formed, nothing fetched, nothing of the data taken for markup."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from bertkit.evaluation.page import render_page
from bertkit.evaluation.report import Evaluation, evaluate_predictions
from bertkit.task_types import Prediction, RegressionTask, TextClassificationTask, TextExample

NASTY = '<script>alert("&")</script> <img src="http://example.org/x.png"> \'quoted\''
VOID = {"meta"}


class Reader(HTMLParser):
    """What a page is made of; a tag that is closed out of turn fails."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(evaluation: Evaluation, model: str = "runs/a") -> Reader:
    reader = Reader()
    reader.feed(render_page(evaluation, model=model))
    reader.close()
    assert reader.open == []
    return reader


def of_classes(*labels: str) -> Evaluation:
    """Every class once, and all answered with the first."""
    task = TextClassificationTask(name=NASTY, metric="accuracy", labels=labels)
    examples = [TextExample(NASTY, f"{NASTY} {label}", None, label) for label in labels]
    answers = [Prediction(labels[0], dict.fromkeys(labels, 1 / len(labels))) for _ in labels]
    return evaluate_predictions(task, "dev", examples, answers, notes=[NASTY])


def of_numbers() -> Evaluation:
    examples = [TextExample(str(place), "a b", None, float(place)) for place in range(7)]
    return evaluate_predictions(RegressionTask(name="marks", metric="pearson"), "dev", examples, [Prediction(-2.5)] * 7)


@pytest.mark.parametrize(
    "evaluation",
    [of_classes("no", NASTY), of_classes(*map(str, range(41))), of_numbers()],
    ids=("two", "many", "numbers"),
)
def test_a_page_is_whole_and_fetches_nothing(evaluation: Evaluation) -> None:
    page = read(evaluation)
    assert page.tags[0] == "html" and {"main", "h1", "table", "svg"} <= set(page.tags)
    assert not {"script", "img", "link", "iframe", "object", "base", "image", "use"} & set(page.tags)
    assert not {"src", "href", "srcset", "action", "data"} & {name for name, _ in page.attributes}
    assert not [value for _, value in page.attributes if "url(" in value]


def test_the_style_fetches_nothing_and_knows_the_dark() -> None:
    page = render_page(of_numbers(), model="a")
    style = page[page.index("<style>") : page.index("</style>")]
    assert "prefers-color-scheme: dark" in style
    assert not [word for word in ("url(", "@import", "http") if word in style]


def test_what_the_data_says_is_shown_and_not_obeyed() -> None:
    page = read(of_classes("no", NASTY), model=NASTY)
    assert page.text.count(NASTY) >= 8
    assert ("aria-label", "Scores with their intervals, as in the table below.") in page.attributes


def test_pictures_and_tables_can_be_heard() -> None:
    page = read(of_classes("no", "yes"))
    assert page.tags.count("svg") == [value for name, value in page.attributes if name == "role"].count("img")
    assert page.tags.count("svg") == len([value for name, value in page.attributes if name == "aria-label" and value])
    assert page.tags.count("table") == page.tags.count("caption")
    assert {value for name, value in page.attributes if name == "scope"} == {"col", "row"}


def test_forty_one_classes_are_a_list_of_confusions() -> None:
    assert "Most frequent confusions" in read(of_classes(*map(str, range(41)))).text
    assert "Most frequent confusions" not in read(of_classes(*map(str, range(40)))).text


def test_answers_that_are_all_right_are_said_to_be() -> None:
    task = TextClassificationTask(name="moods", metric="accuracy", labels=("sad", "glad"))
    found = evaluate_predictions(
        task, "dev", [TextExample("0", "a", None, "sad")], [Prediction("sad", {"sad": 0.7, "glad": 0.3})]
    )
    assert "All predictions are correct." in read(found).text
