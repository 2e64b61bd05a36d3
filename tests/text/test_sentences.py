from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.clock import processor_seconds

from bertkit.text.sentences import LONGEST, split_sentences

# A bar marks the end of a sentence; the white space around it belongs to neither sentence.
ENGLISH = [
    "He left. | She stayed! | Why? | Nobody knows.",
    "Mr. Smith met Dr. J. R. R. Tolkien at 5 p.m. on Sept. 3. | He said no. | Then he left.",
    "In the U.S. Army, Henry I. Smith rose. | He moved to Washington, D.C. | The capital was hot.",
    "Acme Inc. Magazine is printed in St. Louis. | It sells, e.g. Greek books, cf. Homer, etc. | The rest is lost.",
    "It cost $3.14. | 5 of 7 paid (see Fig. 3 and pp. 4-7, vol. 2). | Version 2.0 came out in 1999. | The end.",
    '"Stop!" he cried. | "Why?" | "Because." | (He was tired.) | Then he slept.',
    "“Hi.” | “Bye.” | He said: ‘No.’ | [He meant it.] | So it was.",
    "She left... and came back. | And then... | He knew… | What?! | Really?! | No way!!! | Yes.",
    "1. First we cook. | 2. Then we eat. | Plan B. | It failed.",
    "_Then_ he left. | _Nobody_ saw it._ | — He was gone. | -- What now?",
    "see www.a.com. | Or ask a@b.org, v1.2.3 or file.txt for more.",
    "Été. | École. école. | Он ушёл. | Она осталась.",
    "Early life. | Aldous was born\nin Godalming. | A title | It was raining.".replace(" title | ", " title\n\n| "),
    "Vale. | ¿Por qué? | ¡No! | Er ging. | „Ja.“",
    "One line.\r\n | \r\nAnother line.",
    "The cat sat. | It was a Sun. | Mar. 5 was cold. | Nos. 3 and 4 sank. | No. | Never.",
]
KOREAN = [
    "나는 갔다. | 그는 왔다.| 그리고 웃었다! | 정말요? | 네.",
    '"좋아요."라고 말했다. | "왔어?" | 그랬죠.| 그렇습니까?',
    "값은 3.14이다. | 1924년 10월 1일에 태어났다. | 한 줄. | 다음 줄.",
    "최고예요。| 또 봐요！！| 정말？| 「네。」",
    "これは本です。| あれは？| 「はい！」| そうです。",
    "발매되었다. | 〈목소리〉는 좋다. | 《책》도.",
]


@pytest.mark.parametrize("marked", ENGLISH + KOREAN)
def test_sentences_end_where_a_reader_expects(marked: str) -> None:
    assert split_sentences(marked.replace("|", "")) == [each.strip() for each in marked.split("|")]


TEXTS = st.text(st.one_of(st.sampled_from(list(" \n\t.!?…。\"')(aAI1다요-_")), st.characters()), max_size=200)


@settings(deadline=None)
@given(TEXTS)
def test_nothing_but_white_space_is_lost(text: str) -> None:
    sentences = split_sentences(text)
    assert "".join("".join(sentences).split()) == "".join(text.split())
    assert all(sentence and sentence == sentence.strip() for sentence in sentences)


@settings(deadline=None)
@given(TEXTS)
def test_splitting_a_sentence_again_changes_nothing(text: str) -> None:
    """Only characters are compared: how an abbreviation or a numbering is read depends on the text before it."""
    for sentence in split_sentences(text):
        assert "".join("".join(split_sentences(sentence)).split()) == "".join(sentence.split())


@pytest.mark.parametrize(
    "unit", ["a", "word ", "word\n", "가", "a\u3000", ". . ", ".", "1. ", "\n ", '!"', "A. ", "Mr. A"]
)
def test_text_without_sentence_ends_is_split_in_linear_time(unit: str) -> None:
    text = unit * (300_000 // len(unit))
    sentences: list[str] = []
    assert processor_seconds(lambda: sentences.extend(split_sentences(text))) < 2
    assert max(map(len, sentences), default=0) <= LONGEST
    assert "".join("".join(sentences).split()) == "".join(text.split())


def test_a_long_sentence_is_split_at_white_space() -> None:
    words = ["word" * 3] * 1000
    sentences = split_sentences(" ".join(words))
    assert [word for sentence in sentences for word in sentence.split()] == words


@pytest.mark.parametrize("text", ["", " ", "\n\n\r\n\t\u3000"])
def test_blank_text_has_no_sentences(text: str) -> None:
    assert split_sentences(text) == []


def test_real_paragraphs_have_sentences_of_a_natural_length(data_folder: Path) -> None:
    lines = (data_folder / "conll2003" / "eng.testa").read_text(encoding="utf-8").split("\n\n")
    sentences = [" ".join(row.split()[0] for row in block.split("\n") if row) for block in lines[:500]]
    prose = [each for each in sentences if each.endswith(" .") and len(each) > 40]
    found = split_sentences(" ".join(each.removesuffix(" .") + "." for each in prose))
    assert 0.9 * len(prose) <= len(found) <= 1.1 * len(prose)
