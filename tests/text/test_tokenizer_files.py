from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from bertkit.errors import BertkitError
from bertkit.storage.atomic import restore_folder
from bertkit.text.loading import load_tokenizer
from bertkit.text.normalization import BertSpecialTokens, NormalizationRules, build_tokenizer
from bertkit.text.tokenizer_files import Description, check_tokenizer, read_config, save_tokenizer, write_tokenizer
from bertkit.text.wordpiece import WordPiece

DESCRIPTION: Description = {"normalizer": None, "model": {"type": "WordLevel", "vocab": {"é": 0}}}


def test_all_files_are_written_with_unix_line_ends(tmp_path: Path) -> None:
    save_tokenizer(tmp_path / "new" / "tok", DESCRIPTION, {"flag": True}, {"vocab.txt": "é\n"})
    folder = tmp_path / "new" / "tok"
    assert {path.name for path in folder.iterdir()} == {"tokenizer.json", "tokenizer_config.json", "vocab.txt"}
    assert json.loads((folder / "tokenizer.json").read_bytes()) == DESCRIPTION
    assert (folder / "vocab.txt").read_bytes() == "é\n".encode()
    assert read_config(folder) == {"flag": True}


def test_a_folder_may_be_named_by_text_as_for_load(tmp_path: Path) -> None:
    folder = str(tmp_path / "tok")
    tokenizer_with("mill").save(folder)
    assert WordPiece.load(folder).encode("mill").ids == [5]


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


def tokenizer_with(word: str) -> WordPiece:
    specials = BertSpecialTokens()
    vocabulary = {token: id for id, token in enumerate([*specials, word])}
    return WordPiece(build_tokenizer(vocabulary, NormalizationRules(lowercase=True, strip_accents=True), specials))


def fill(folder: Path) -> None:
    save_tokenizer(folder, DESCRIPTION, {"flag": True}, {"vocab.txt": "é\n"})


def test_any_changed_file_of_a_sealed_folder_is_named(tmp_path: Path) -> None:
    write_tokenizer(tmp_path / "tok", fill)
    check_tokenizer(tmp_path / "tok")
    for path in (tmp_path / "tok").iterdir():
        content = path.read_bytes()
        for damaged in (b"", content[:-1], content + b" ", content[:1] + bytes([content[1] ^ 1]) + content[2:]):
            path.write_bytes(damaged)
            if damaged != content:
                with pytest.raises(BertkitError, match=path.name):
                    check_tokenizer(tmp_path / "tok")
        path.write_bytes(content)


def test_a_folder_without_checksums_is_not_checked(tmp_path: Path) -> None:
    fill(tmp_path / "tok")
    check_tokenizer(tmp_path / "tok")


def test_an_interrupted_replacement_leaves_the_old_folder_or_the_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tokenizer(tmp_path / "tok", tokenizer_with("old").save)
    rename = Path.rename
    for stop in range(3):
        calls = iter(range(9))

        def crash(path: Path, target: Path, stop: int = stop, calls: Iterator[int] = calls) -> Path:
            if next(calls) == stop:
                raise KeyboardInterrupt
            return rename(path, target)

        with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
            patch.setattr(Path, "rename", crash)
            write_tokenizer(tmp_path / "tok", tokenizer_with("new").save)
        assert load_tokenizer(tmp_path / "tok").id_to_token(5) == ("new" if stop == 2 else "old")
        restore_folder(tmp_path / "tok")
        assert (tmp_path / "tok").is_dir()
