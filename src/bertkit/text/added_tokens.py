"""The tokens that a folder adds to its vocabulary, and the settings of its tokenizer that are passed on in saving.

A text is never split inside of such a token. Hugging Face has kept them in four places over the years:
``added_tokens`` of ``tokenizer.json``, ``added_tokens_decoder`` of ``tokenizer_config.json``, ``added_tokens.json``,
and the lists of further special tokens in ``tokenizer_config.json`` or ``special_tokens_map.json``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tokenizers import AddedToken

from bertkit.errors import data_error
from bertkit.text.tokenizer_files import read_lenient

ADDED = "added_tokens.json"
SPECIAL = "special_tokens_map.json"

_DECODER = "added_tokens_decoder"
_FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")
_ID = re.compile(r"[0-9]{1,10}")
_PASSED_ON = ("padding_side", "truncation_side")

# transformers 5 reads both keys. Versions before it fail on a list of extra_special_tokens, and on a mapping of
# additional_special_tokens, so a list is written under the older name and a mapping under the newer one.
_FURTHER = ("additional_special_tokens", "extra_special_tokens")


@dataclass(frozen=True, kw_only=True)
class AddedTokens:
    """``tokens`` in the order of their ids, with their flags; ``settings`` of ``tokenizer_config.json`` to be saved."""

    tokens: tuple[AddedToken, ...] = ()
    settings: Mapping[str, object] = field(default_factory=dict)

    def besides(self, own: Collection[str]) -> list[AddedToken]:
        """The tokens that are not the model's ``own`` special ones, for the library, which is to find them in texts.

        None is marked as special, because bertkit's tokenizers take special tokens in a text for ordinary text.
        """
        return [_copy(token, special=False) for token in self.tokens if token.content not in own]

    def find(self, content: str) -> AddedToken | None:
        """The token spelled ``content``."""
        return next((token for token in self.tokens if token.content == content), None)

    @property
    def special(self) -> frozenset[str]:
        """The spellings of the special ones."""
        return frozenset(token.content for token in self.tokens if token.special)


def unmark_added(listed: object, own: Collection[str]) -> object:
    """The ``added_tokens`` of a ``tokenizer.json``, of which the model's ``own`` special ones alone are special.

    The library takes special tokens in a text for ordinary text, and finds the others.
    """
    if not isinstance(listed, list):
        return listed
    return [
        {**each, "special": False} if isinstance(each, dict) and each.get("content") not in own else each
        for each in listed
    ]


def read_added_tokens(
    folder: Path, config: Mapping[str, object], listed: object, vocabulary: Collection[str]
) -> AddedTokens:
    """The tokens that are added to ``vocabulary`` by the files of ``folder``.

    ``config`` is the content of its ``tokenizer_config.json``, and ``listed`` the ``added_tokens`` of its
    ``tokenizer.json``. A place that comes first in the docstring of this module has the flags of a token that is in
    several. A named token, such as ``bos_token``, that no file adds to the vocabulary is left out.
    """
    old = {} if _DECODER in config else read_lenient(folder / SPECIAL)
    settings = {**config, **old}
    further = [_parse(each, folder, special=True) for key in _FURTHER for each in _list(settings.get(key))]
    named = [
        _parse(each, folder, special=True)
        for name, each in settings.items()
        if name.endswith("_token") and isinstance(each, str | dict)
    ]
    known = {token.content for token in (*further, *named)}
    found: dict[str, AddedToken] = {}
    for token in (
        *(_parse(each, folder) for each in _list(listed)),
        *(_parse(each, folder) for each in _by_id(config.get(_DECODER))),
        *(_parse(each, folder, special=each in known) for each in _in_order(read_lenient(folder / ADDED))),
    ):
        found.setdefault(token.content, token)
    for token in further:
        found[token.content] = _copy(found.get(token.content, token), special=True)
    for token in named:
        if token.content in vocabulary:
            found.setdefault(token.content, token)
    return AddedTokens(tokens=tuple(found.values()), settings=_settings(settings))


def _settings(settings: Mapping[str, object]) -> dict[str, object]:
    """What ``tokenizer_config.json`` of a saved tokenizer has of the one that was read."""
    kept = {name: settings[name] for name in _PASSED_ON if settings.get(name) in ("left", "right")}
    lists = [each for key in _FURTHER if isinstance(settings.get(key), list) for each in _list(settings[key])]
    if lists:
        spelled = [each["content"] if isinstance(each, dict) else each for each in lists]
        kept[_FURTHER[0]] = list(dict.fromkeys(spelled))
    if isinstance(settings.get(_FURTHER[1]), dict):
        kept[_FURTHER[1]] = settings[_FURTHER[1]]
    return kept


def _parse(entry: object, folder: Path, *, special: bool | None = None) -> AddedToken:
    """A token as its spelling alone, or as an object with ``content`` and flags."""
    fields = {"content": entry} if isinstance(entry, str) else entry
    content = fields.get("content") if isinstance(fields, dict) else None
    if not isinstance(fields, dict) or not isinstance(content, str) or not content:
        raise data_error(f"{folder}: an added token of its tokenizer is {entry!r}; it must have its spelling.")
    flags = {name: bool(fields[name]) for name in _FLAGS if name in fields}
    if special is not None:
        flags["special"] = special
    flags.setdefault("normalized", not flags.get("special", False))
    return AddedToken(content, **flags)


def _copy(token: AddedToken, *, special: bool) -> AddedToken:
    return AddedToken(
        token.content,
        single_word=token.single_word,
        lstrip=token.lstrip,
        rstrip=token.rstrip,
        normalized=token.normalized,
        special=special,
    )


def _list(value: object) -> Iterable[object]:
    """The tokens in a list, or in an object of name -> token; anything else has none."""
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _by_id(decoder: object) -> list[object]:
    """The tokens of an object of id -> token, in the order of the ids."""
    content = decoder if isinstance(decoder, dict) else {}
    return [content[id] for id in sorted(filter(_ID.fullmatch, content), key=int)]


def _in_order(ids: Mapping[str, object]) -> list[str]:
    """The tokens of an object of token -> id, in the order of the ids."""
    numbered = {token: id for token, id in ids.items() if isinstance(id, int)}
    return sorted(numbered, key=lambda token: numbered[token])
