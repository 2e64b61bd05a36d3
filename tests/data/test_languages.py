"""Characters by script and by language."""

from __future__ import annotations

import sys

import pytest

from bertkit.data.languages import LanguageCounter, ScriptCounter

TEXTS = {
    "en": "The old mill stood still at dawn, and seven wide rivers ran slowly to the sea.",
    "de": "Die alte Mühle stand still in der Dämmerung, und sieben breite Flüsse flossen langsam zum Meer.",
    "fr": "Le vieux moulin restait immobile à l'aube, et sept larges rivières coulaient lentement vers la mer.",
    "ru": "Старая мельница стояла тихо на рассвете, и семь широких рек медленно текли к морю.",
    "ko": "오래된 방앗간은 새벽에 조용히 서 있었고, 넓은 일곱 강은 천천히 바다로 흘러갔다.",
    "ja": "古い水車小屋は夜明けに静かに立ち、七つの広い川がゆっくりと海へ流れていた。",
}


def test_scripts_are_those_of_unicode() -> None:
    """Counted in another way: by the classes of the library regex."""
    regex = pytest.importorskip("regex")
    counter, text = ScriptCounter(), "\n".join(TEXTS.values()) + " λόγος 12,5 % \u0301 \ue000"
    for part in (text[:50], text[50:]):
        counter.add(part)
    scripts = ("Latin", "Cyrillic", "Hangul", "Hiragana", "Han", "Greek")
    expected = {script: len(regex.findall(rf"\p{{Script={script}}}", text)) for script in scripts}
    assert counter.counts() == expected
    assert list(counter.counts().values()) == sorted(expected.values(), reverse=True)


def test_characters_count_for_the_language_of_their_chunk() -> None:
    pytest.importorskip("py3langid")
    counter = LanguageCounter()
    for text in TEXTS.values():
        counter.add(text)
    counter.add(TEXTS["de"])
    counter.add("")
    counter.add("1, 2 and 3.")
    expected = {language: len(text) * (1 + (language == "de")) for language, text in TEXTS.items()}
    assert counter.counts() == {**expected, "unknown": 11}
    assert next(iter(counter.counts())) == "de"


def test_the_language_of_a_long_chunk_is_that_of_its_middle() -> None:
    pytest.importorskip("py3langid")
    counter = LanguageCounter()
    counter.add("Home | About us | Contact | " + TEXTS["ko"] * 99 + "Copyright of this text.")
    assert list(counter.counts()) == ["ko"]


def test_no_language_is_counted_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "py3langid", None)
    counter = LanguageCounter()
    counter.add(TEXTS["en"])
    assert counter.counts() == {}
