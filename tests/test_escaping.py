"""Text of files and names in every medium: it cannot control a terminal, and is no markup."""

from __future__ import annotations

import json
import unicodedata

import pytest

from bertkit.escaping import Markup, printable, to_html, to_json, to_markdown

CONTROLS = [chr(code) for code in (*range(32), *range(0x7F, 0xA0))]
BIDI = [*"\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"]
HIDDEN = [*"\u00ad\u200b\u2028\u2029\u2060\ufeff\ufff9", "\U000e0041", "\U0001d173", "\ud83d"]
HARMLESS = "Café 한국어 日本\u3000語 \u00a0 می\u200cخواهم 👩\u200d💻 \U0001f600 \ue000 $<|>&`"


@pytest.mark.parametrize("character", CONTROLS + BIDI + HIDDEN)
def test_characters_that_control_or_hide_text_are_escaped(character: str) -> None:
    for shown in (printable(f"a{character}b"), to_json({f"a{character}b": f"{character}"}), to_html(f"a{character}b")):
        assert not [each for each in shown if unicodedata.category(each) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
        assert shown.isascii()
    assert printable(f"a{character}b") == "a" + repr(character)[1:-1] + "b"


@pytest.mark.parametrize("character", CONTROLS + BIDI + HIDDEN)
def test_escaped_json_has_the_same_value(character: str) -> None:
    record = {f"a{character}b": [f"{character}\n\\"], "c": HARMLESS}
    assert json.loads(to_json(record)) == json.loads(to_json(record, indent=2)) == record


def test_other_text_is_shown_as_it_is() -> None:
    assert printable(HARMLESS) == HARMLESS
    assert to_json(HARMLESS) == f'"{HARMLESS}"'
    assert to_json([1], indent=1) == "[\n 1\n]"


def test_text_is_no_markup() -> None:
    assert to_markdown("a|b <i> [x](y)\n# `c` *d* &amp;") == r"a\|b &lt;i&gt; \[x\](y) # \`c\` \*d\* &amp;amp;"
    assert to_markdown("\x1b[31m\u202e") == r"\\x1b\[31m\\u202e"
    assert to_markdown(r"\[x\](y) a\|b ~~c~~ _d_ e_f") == r"\\\[x\\\](y) a\\\|b \~\~c\~\~ \_d\_ e_f"
    assert to_html('<a href="x">&\'') == "&lt;a href=&quot;x&quot;&gt;&amp;&#x27;"


def test_markup_of_bertkit_itself_stays() -> None:
    assert to_markdown(Markup("`--x` a|b")) == r"`--x` a\|b"
