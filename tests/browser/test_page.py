"""The page in a real browser: with a keyboard, on a phone, in dark mode, without a network and without JavaScript."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.running import TASKS, running, save_tiny_models, served

from bertkit.server.run import Server

playwright = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright")

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine")
PHONE = {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = save_tiny_models(tmp_path_factory.mktemp("models"))
    with running(served(folder, *TASKS, "words")) as server:
        yield server


@pytest.fixture(scope="module")
def browser() -> Iterator[playwright.Browser]:
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=BROWSER, args=arguments)
        yield browser
        browser.close()


def test_a_form_works_with_the_keyboard_alone_and_without_javascript(
    browser: playwright.Browser, server: Server
) -> None:
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(f"{server.address}/?model=names")
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.locator("#token-classification-text:focus").count():
            break
    page.keyboard.type("Ann ran past the mill")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("#result")
    assert "Ann" in page.inner_text("#result .text")
    assert page.locator("mark").count() > 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_a_phone_in_both_colour_schemes(browser: playwright.Browser, server: Server, scheme: str) -> None:
    context = browser.new_context(viewport=PHONE, color_scheme=scheme, is_mobile=True)
    page = context.new_page()
    page.goto(f"{server.address}/?model=words")
    page.fill("#sentence-similarity-texts", "\n".join(f"sentence {number} of several" for number in range(6)))
    page.locator("section:last-of-type button").click()
    page.wait_for_selector("#result")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    ink, paper = page.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    brightness = [sum(map(int, each[4:-1].split(","))) for each in (ink, paper)]
    assert (brightness[0] > brightness[1]) == (scheme == "dark")
    assert abs(brightness[0] - brightness[1]) > 400
    height = page.evaluate("document.querySelector('button').getBoundingClientRect().height")
    assert height >= 44  # as large as a thumb


def test_nothing_is_loaded_from_elsewhere_and_no_error_is_shown(browser: playwright.Browser, server: Server) -> None:
    page = browser.new_page()
    requested, errors = [], []
    page.on("request", lambda request: requested.append(request.url))
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    for path in ("/?model=reviews", "/docs"):
        page.goto(server.address + path)
    assert requested
    assert all(url.startswith(server.address) for url in requested)
    assert [error for error in errors if "favicon" not in error and "404" not in error] == []


def test_a_screen_reader_finds_names_for_everything(browser: playwright.Browser, server: Server) -> None:
    page = browser.new_page()
    page.goto(f"{server.address}/?model=questions")
    unnamed = page.evaluate("[...document.querySelectorAll('textarea')].filter(each => !each.labels.length).length")
    assert unnamed == 0
    assert page.get_by_role("main").count() == 1
    assert page.get_by_role("navigation", name="Models").count() == 1
    assert page.get_by_role("button", name="Answer a question").count() == 1
    page.get_by_label("Question", exact=True).fill("who ran")
    page.get_by_label("Text with the answer").fill("seven wide rivers ran past the old mill")
    page.get_by_role("button", name="Answer a question").click()
    page.get_by_role("status").wait_for()
    assert page.get_by_role("columnheader", name="probability").count() == 1
