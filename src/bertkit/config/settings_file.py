"""Settings from a TOML or JSON file, each with its line."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from bertkit.config.fields import leaves
from bertkit.config.settings import Setting
from bertkit.errors import usage_error
from bertkit.storage.json_text import parse_json

_JSON_KEY_OR_BRACE = re.compile(r'"(?P<name>(?:[^"\\]|\\.)*)"(?P<is_key>\s*:)?|[{}]')
"""A text, which may be a key and may have braces in it, or a brace."""


def read_settings(path: Path) -> list[Setting]:
    """Settings from a TOML or JSON file (by its suffix), each with its line."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        is_json = path.suffix.lower() == ".json"
        tree = parse_json(text, unique_keys=True) if is_json else tomllib.loads(text)
        values = list(leaves(tree)) if isinstance(tree, dict) else []
    except OSError as error:
        raise usage_error(f"cannot read {path}: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:  # ValueError is the base class of what JSON, TOML and UTF-8 raise
        raise usage_error(f"{path}: {error}.") from error
    if not isinstance(tree, dict):
        raise usage_error(f"{path}: expected keys and values, found {type(tree).__name__}.")
    locate = _line_in_json if is_json else _line_in_toml
    return [Setting(key, value, f"{path}:{locate(text, key)}") for key, value in values]


def _line_in_toml(text: str, path: str) -> int:
    """The line that sets ``path``: its last key, below the table that the other keys name."""
    table = ""
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if stripped.startswith("["):
            table = _toml_key(stripped.partition("#")[0].strip().strip("[]")) + "."
        else:
            key = table + _toml_key(stripped.partition("=")[0])
            if "=" in stripped and (key == path or path.startswith(f"{key}.")):
                return number
    return 1


def _toml_key(text: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in text.split("."))


def _line_in_json(text: str, path: str) -> int:
    """The line with the key that has this path; 1 if there is none."""
    keys: list[str] = []  # of the objects that are open
    for found in _JSON_KEY_OR_BRACE.finditer(text):
        if found[0] == "{":
            keys.append("")
        elif found[0] == "}":
            keys = keys[:-1]
        elif keys and found["is_key"]:
            keys[-1] = found["name"]
            if ".".join(keys) == path:
                return text.count("\n", 0, found.start()) + 1
    return 1
