"""corpus check, tokenizer train, show and compare, prepare."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.workspace import run, run_json

from bertkit.cli import app


def test_tokens_of_a_text_are_shown(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tokens = run_json(capsys, "tokenizer", "show", workspace / "tok", "Winter river", "--json")
    assert "".join("Winter river"[each["start"] : each["end"]] for each in tokens) == "Winterriver"
    run("tokenizer", "show", workspace / "tok", "Winter")
    assert capsys.readouterr().out.splitlines()[0].split() == ["token", "id", "characters", "text"]


def test_tokenizers_are_compared(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ("tokenizer", "compare", workspace / "tok", workspace / "run", "--texts", workspace / "a.txt")
    first, second = run_json(capsys, *command, "--json")
    assert first.pop("tokenizer") == str(workspace / "tok")
    assert second.pop("tokenizer") == str(workspace / "run")
    assert first == second, "the run has the same tokenizer"
    run(*command)
    assert f"{first['tokens_per_word']:.3f}" in capsys.readouterr().out


def test_a_text_may_begin_with_a_dash(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tokens = run_json(capsys, "tokenizer", "show", workspace / "tok", "-winter", "--json")
    assert (tokens[0]["start"], tokens[-1]["end"]) == (0, len("-winter"))


def test_files_are_checked(workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_json(capsys, "corpus", "check", workspace / "a.txt", "--json")
    run("corpus", "check", workspace / "a.txt")
    assert "13" in capsys.readouterr().out
    (tmp_path / "latin.txt").write_bytes("caf\xe9".encode("latin-1"))
    assert app.run(["corpus", "check", str(tmp_path / "latin.txt")]) == 3
    assert "UTF-8" in capsys.readouterr().out


@pytest.mark.parametrize(("kind", "architecture"), [("bpe", "gpt"), ("byte-bpe", "roberta"), ("words", "elmo")])
def test_the_suggested_command_has_the_architecture_of_the_tokenizer(
    workspace: Path, tmp_path: Path, kind: str, architecture: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tok, data = tmp_path / "tok", tmp_path / "data"
    run("tokenizer", "train", workspace / "a.txt", "--kind", kind, "--vocab-size", 299, "-o", tok, "--quiet")
    run("prepare", workspace / "a.txt", "--tokenizer", tok, "-o", data, "--heldout", 0, "--progress", "plain")
    assert (
        f"next: bertkit pretrain {data} --architecture {architecture} --size mini --profile fast"
        in capsys.readouterr().err
    )


def test_bert_needs_no_architecture(workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("prepare", workspace / "a.txt", "--tokenizer", workspace / "tok", "-o", tmp_path / "data")
    assert f"next: bertkit pretrain {tmp_path / 'data'} --size mini --profile fast" in capsys.readouterr().err


def test_the_output_may_be_a_url_of_a_folder(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("prepare", workspace / "a.txt", "--tokenizer", workspace / "tok", "-o", f"file://{tmp_path}/data")
    assert f"next: bertkit pretrain {tmp_path / 'data'} --size mini" in capsys.readouterr().err


def test_a_long_list_of_files_is_not_repeated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / f"{number}.txt" for number in range(6)]
    for file in files:
        file.write_text("One sentence. Another one.\n", encoding="utf-8")
    run("corpus", "check", *files)
    assert capsys.readouterr().err.splitlines()[-1].startswith("next: bertkit tokenizer train FILE... --vocab-size")
    run("corpus", "check", *files[:5])
    assert str(files[4]) in capsys.readouterr().err.splitlines()[-1]


def test_shards_are_uploaded_and_no_next_command_is_suggested(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    memory = pytest.importorskip("fsspec").filesystem("memory")
    target = "memory://bucket/uploaded"
    run("prepare", workspace / "a.txt", "--tokenizer", workspace / "tok", "-o", target, "--progress", "plain")
    printed = capsys.readouterr()
    assert "tokens              " in printed.out
    assert f"which is uploaded to {target} when it is complete" in printed.err
    assert "next: " not in printed.err
    assert memory.isfile("/bucket/uploaded/manifest.json")
    memory.rm("/bucket", recursive=True)


def test_a_vocabulary_that_does_not_fit_is_reported(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "greek.txt").write_text("το ποτάμι περνά δίπλα από τον μύλο. " * 99)
    run("prepare", tmp_path / "greek.txt", "--tokenizer", workspace / "tok", "-o", tmp_path / "data", "--heldout", 0)
    shown = capsys.readouterr()
    assert "the vocabulary does not fit these texts" in shown.out
    assert f"next: bertkit tokenizer train {tmp_path / 'greek.txt'} -o TOK" in shown.err


def test_a_file_that_holds_no_text_leaves_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.xlsx").write_bytes(b"PK")
    assert app.run(["tokenizer", "train", str(tmp_path / "t.xlsx"), "-o", str(tmp_path / "tok")]) == 2
    assert not (tmp_path / "tok").exists()
