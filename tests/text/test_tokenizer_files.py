from __future__ import annotations

import json
from pathlib import Path

import pytest

from bertkit.errors import BertkitError
from bertkit.text.tokenizer_files import Description, read_config, save_tokenizer

DESCRIPTION: Description = {"normalizer": None, "model": {"type": "WordLevel", "vocab": {"é": 0}}}


def test_all_files_are_written_with_unix_line_ends(tmp_path: Path) -> None:
    save_tokenizer(tmp_path / "new" / "tok", DESCRIPTION, {"flag": True}, {"vocab.txt": "é\n"})
    folder = tmp_path / "new" / "tok"
    assert {path.name for path in folder.iterdir()} == {"tokenizer.json", "tokenizer_config.json", "vocab.txt"}
    assert json.loads((folder / "tokenizer.json").read_bytes()) == DESCRIPTION
    assert (folder / "vocab.txt").read_bytes() == "é\n".encode()
    assert read_config(folder) == {"flag": True}


def test_a_folder_without_a_config_has_an_empty_one(tmp_path: Path) -> None:
    assert read_config(tmp_path) == {}


def test_a_config_must_be_an_object(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text("[1]", encoding="utf-8")
    with pytest.raises(BertkitError, match="is not a JSON object"):
        read_config(tmp_path)


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(BertkitError, match=r"cannot write .*file: File exists"):
        save_tokenizer(tmp_path / "file", DESCRIPTION, {})
