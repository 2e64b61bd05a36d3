"""pretrain: plans, runs, and runs that are continued."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.workspace import run, run_json

import bertkit
from bertkit.cli import app
from bertkit.errors import BertkitError

pytestmark = pytest.mark.usefixtures("without_shape_checks")

ROOT = Path(__file__).parents[2]


def test_a_plan_trains_nothing(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bertkit.pretraining.planning._SECONDS_TO_MEASURE", 0.01)
    words = ("pretrain", workspace / "data", "--size", "1/12/2", "--seq-length", 13, "--batch-size", 7, "--steps", 99)
    plan = run_json(capsys, *words, "--plan", "--json", "-o", tmp_path / "run")
    assert plan["steps"] == 99
    assert not (tmp_path / "run").exists()
    run(*words, "--plan")
    assert "parameters" in capsys.readouterr().out


def test_a_finished_run_can_be_resumed(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("pretrain", "--resume", workspace / "run", "--progress", "plain")
    printed = capsys.readouterr()
    assert "7 steps" in printed.out
    suggested = printed.err.splitlines()[-1]
    assert suggested.startswith("next: bertkit fill ")
    assert suggested.endswith("/run' 'YOUR TEXT, WITH [MASK] FOR A WORD'")  # the vocabulary lacks the words of others


def test_the_error_in_the_readme_is_what_a_mistake_gives(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pretrain.toml").write_text("steps = 7\n\n# four\n# more\n# lines\n[schedule]\nwamup = 0.1\n")
    assert app.run(["pretrain", str(workspace / "data"), "--config", "pretrain.toml", "-o", "run"]) == 2
    shown = capsys.readouterr().err.strip()
    assert shown.startswith("error: pretrain.toml:7: ")
    assert f"\n{shown}\n" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("kind", "architecture"), [("bpe", "gpt"), ("words", "elmo")])
def test_fill_is_suggested_for_masked_language_models_only(
    workspace: Path, tmp_path: Path, kind: str, architecture: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tok, data, folder = (tmp_path / name for name in ("tok", "data", "run"))
    run("tokenizer", "train", workspace / "a.txt", "--kind", kind, "--vocab-size", 99, "-o", tok, "--quiet")
    run("prepare", workspace / "a.txt", "--tokenizer", tok, "-o", data, "--heldout", 0, "--quiet")
    sizes = ("--architecture", architecture, "--size", "1/12/2", "--seq-length", 17, "--batch-size", 3, "--steps", 2)
    run("pretrain", data, *sizes, "-o", folder, "--progress", "plain")
    assert capsys.readouterr().err.splitlines()[-1] == f"next: bertkit finetune YOUR.csv --model {folder} -o TUNED"
    with pytest.raises(BertkitError, match=r"this model (fills in no words|has no masked-LM head)"):
        bertkit.fill(folder, "River [MASK].")


def test_a_model_is_continued_and_compared_with_itself(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, data, folder = workspace / "run", tmp_path / "data", tmp_path / "more"
    run("prepare", workspace / "a.txt", "--tokenizer", model, "-o", data, "--heldout", 0.3, "--progress", "plain")
    suggested = capsys.readouterr().err.splitlines()[-1]
    assert suggested == f"next: bertkit pretrain {data} --from '{model}' --minutes 30 -o RUN"
    words = ("--steps", 2, "--seq-length", 37, "--also-evaluate", workspace / "data", "-o", folder)
    run("pretrain", data, "--from", model, *words, "--quiet")
    header, *rows = capsys.readouterr().out.splitlines()[1:]
    assert header.split() == ["held", "out", "before", "after"]
    assert {"mlm", "also_mlm"} < {row.split()[0] for row in rows}


def test_words_are_added_to_a_model(workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, tok, data = tmp_path / "zeppelins.jsonl", tmp_path / "tok", tmp_path / "data"
    text.write_text("\n".join(['{"text": "The zeppelin. Over the river."}'] * 9))
    run("tokenizer", "train", text, "--from", workspace / "run", "--vocab-size", 120, "-o", tok, "--quiet")
    run("prepare", text, "--tokenizer", tok, "-o", data, "--quiet")
    words = ("--steps", 1, "--seq-length", 13, "--batch-size", 2, "-o", tmp_path / "more")
    run("pretrain", data, "--from", workspace / "run", *words, "--progress", "plain")
    assert "added words start from the mean of the tokens" in capsys.readouterr().err


def test_a_second_corpus_is_mixed_in(workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "b.jsonl"
    file.write_text("\n".join(json.dumps({"text": "River " + "stone " * number}) for number in range(30)))
    run("prepare", file, "--tokenizer", workspace / "tok", "-o", tmp_path / "books", "--quiet")
    words = ("pretrain", workspace / "data", "--size", "1/12/2", "--seq-length", 17, "--batch-size", 3, "--steps", 2)
    run(*words, "--mix", f"{tmp_path / 'books'}=0.25", "-o", tmp_path / "run", "--progress", "plain")
    shown = capsys.readouterr().err
    for share, folder in ((r"75\.\d", workspace / "data"), (r"2[45]\.\d", tmp_path / "books")):
        assert re.search(rf"mixture             {share}% {re.escape(str(folder))}, read \d\.\d\d times", shown)
    run("config", "show", tmp_path / "run", "--origin")
    assert f"mix.{tmp_path / 'books'}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["books"], "--mix books: expected FOLDER=SHARE, such as books=0.25."),
        (["=0.5"], "--mix =0.5: expected FOLDER=SHARE, such as books=0.25."),
        (["books=many"], "--mix books=many: expected FOLDER=SHARE, such as books=0.25."),
        (["books=0.2", "books=0.3"], "--mix names a folder twice: give each of them once."),
        (["books=0"], "--mix: mix.books is 0.0; it must be above 0 and below 1."),
        (["books=-1"], "--mix: mix.books is -1.0; it must be above 0 and below 1."),
        (["books=nan"], "--mix: mix.books is nan; it must be above 0 and below 1."),
        (["books=0.6", "web=0.4"], "--mix: mix takes 1 of the rows, and DATA gives the rest: lower it to less than 1."),
        (["nowhere=0.5"], "no data at nowhere. Make it with: bertkit prepare FILE... --tokenizer TOK -o nowhere"),
    ],
)
def test_mistakes_in_a_mixture_are_one_line(
    workspace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    output = str(tmp_path / "run")
    assert app.run(["pretrain", str(workspace / "data"), "--mix", *words, "--steps", "2", "-o", output]) in (2, 3)
    assert capsys.readouterr().err.splitlines()[-1] == f"error: {message}"
    assert not (tmp_path / "run").exists()
