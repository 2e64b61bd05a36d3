"""The page is well-formed HTML without external resources, and all text from the data is escaped."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from bertkit.evaluation.page import render_page
from bertkit.evaluation.report import Evaluation, evaluate_predictions
from bertkit.task_types import Prediction, RegressionTask, TextClassificationTask, TextExample

NASTY = '<script>alert("&")</script> <img src="http://example.org/x.png"> \'quoted\''
VOID = {"meta"}


class Reader(HTMLParser):
    """The tags, attributes and text of a page; fails at a tag that is closed in the wrong order."""

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
    reader.feed(render_page(evaluation, model=model, date="2026-11-22 10:00"))
    reader.close()
    assert reader.open == []
    return reader


def of_classes(*labels: str) -> Evaluation:
    """An example of each class, all predicted as the first class."""
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
def test_a_page_is_well_formed_and_self_contained(evaluation: Evaluation) -> None:
    page = read(evaluation)
    assert page.tags[0] == "html" and {"main", "h1", "table", "svg"} <= set(page.tags)
    assert not {"script", "img", "link", "iframe", "object", "base", "image", "use"} & set(page.tags)
    assert not {"src", "href", "srcset", "action", "data"} & {name for name, _ in page.attributes}
    assert not [value for _, value in page.attributes if "url(" in value]


def test_the_style_is_self_contained_and_has_a_dark_theme() -> None:
    page = render_page(of_numbers(), model="a", date="2026-11-22 10:00")
    style = page[page.index("<style>") : page.index("</style>")]
    assert "prefers-color-scheme: dark" in style
    assert not [word for word in ("url(", "@import", "http") if word in style]


def test_markup_in_the_data_is_escaped() -> None:
    page = read(of_classes("no", NASTY), model=NASTY)
    assert page.text.count(NASTY) >= 8
    assert ("aria-label", "Scores with their intervals, as in the table below.") in page.attributes


def test_charts_and_tables_are_accessible() -> None:
    page = read(of_classes("no", "yes"))
    assert page.tags.count("svg") == [value for name, value in page.attributes if name == "role"].count("img")
    assert page.tags.count("svg") == len([value for name, value in page.attributes if name == "aria-label" and value])
    assert page.tags.count("table") == page.tags.count("caption")
    assert {value for name, value in page.attributes if name == "scope"} == {"col", "row"}


def test_an_error_in_the_unit_of_the_answers_has_a_scale_of_its_own() -> None:
    """On the scale of an error in the thousands a correlation would be a dot at its left end."""
    task = RegressionTask(name="prices", metric="pearson", also=("mean_absolute_error",))
    examples = [TextExample(str(place), "a b", None, 1e4 * place) for place in range(7)]
    answers = [Prediction(9e3 * place) for place in range(7)]
    page = read(evaluate_predictions(task, "dev", examples, answers))
    assert page.tags.count("svg") == 3  # and that of the lengths
    dots = [float(value) for name, value in page.attributes if name == "cx"]
    assert max(dots) - min(dots) > 20  # the correlation at the right end, the error within its interval
    perfect = evaluate_predictions(
        replace(task, metric="mean_absolute_error"), "dev", examples, [Prediction(1e4 * place) for place in range(7)]
    )
    assert "0.0000 (0.0000 to 0.0000)" in read(perfect).text


def test_more_than_40_classes_are_shown_as_a_list_of_confusions() -> None:
    assert "Most frequent confusions" in read(of_classes(*map(str, range(41)))).text
    assert "Most frequent confusions" not in read(of_classes(*map(str, range(40)))).text


def test_a_page_without_errors_states_so() -> None:
    task = TextClassificationTask(name="moods", metric="accuracy", labels=("sad", "glad"))
    found = evaluate_predictions(
        task, "dev", [TextExample("0", "a", None, "sad")], [Prediction("sad", {"sad": 0.7, "glad": 0.3})]
    )
    assert "All predictions are correct." in read(found).text


def test_the_style_has_rules_for_paper_and_for_phones() -> None:
    page = render_page(of_numbers(), model="a", date="2026-11-22 10:00")
    assert "@media print" in page and "@media (max-width: 40rem)" in page
    assert ", 2026-11-22 10:00</p>" in page
    assert "Stronger colour: a larger share of the row." in read(of_classes("no", "yes")).text
    assert ("class", "stack") in read(of_classes("no", "yes")).attributes
