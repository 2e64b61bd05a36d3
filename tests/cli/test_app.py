"""The whole command in one process: wrong usage, mistakes, and --debug."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from bertkit.cli import app
from bertkit.errors import data_error
from bertkit.options.verbs import VERBS


def test_every_verb_is_a_command() -> None:
    commands = set()
    for name in app.app:
        verbs = [verb for verb in app.app[name] if not verb.startswith("-")]
        commands |= {f"{name} {verb}" for verb in verbs} or {name}
    assert {name for name in commands if not name.startswith("-")} == {*VERBS, "completion"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("pretran", 'unknown command "pretran". Did you mean "pretrain"?'),
        ("corpus chek", 'unknown command "chek". Did you mean "check"?'),
        ("quickstart --minute 3", "unknown option: --minute. Did you mean --minutes?"),
        ("quickstart --minutes soon", 'invalid value for --minutes: unable to convert "soon" into float.'),
        ("quickstart now", 'unexpected argument "now".'),
        ("prepare a.txt -o data", "prepare needs --tokenizer TOKENIZER, folder of a tokenizer or of a model; the"),
        ("completion", "completion needs the name of a shell: bash, zsh or fish."),
    ],
)
def test_wrong_usage_is_one_line(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(words.split()) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"error: {message}")
    assert printed.err.count("\n") == 1


def test_wrong_usage_and_a_wrong_path_do_not_wait_for_torch() -> None:
    script = (
        "import sys; from bertkit.cli.main import main; code = main();"
        "sys.exit(code if not {'torch', 'numpy', 'transformers'} & set(sys.modules) else 99)"
    )
    missing = ["fill", "no_such_run", "x"], ["prepare", "no_such_file.txt", "--tokenizer", ".", "-o", "new"]
    for words in (["pretran"], ["pretrain", "--help"], ["finetune", "--sedes", "3"], *missing):
        ended = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=False)
        assert ended.returncode in (0, 2), (words, ended.stderr)


@pytest.mark.parametrize(
    ("words", "exit_code", "message"),
    [
        ("fill {home}/rum x", 2, "no model at {home}/rum. Did you mean {home}/run?"),
        ("fill {home}/tuned [MASK]", 2, "{home}/tuned/model is fine-tuned for"),
        ("fill {home}/run nothing", 2, "there is no [MASK] in"),
        (
            "prepare --tokenizer {home}/tok -o {home}/x",
            2,
            "prepare needs FILES, text files, or folders of them (the",
        ),
        (
            "prepare {home}/b.txt --tokenizer {home}/tok -o {home}/x",
            2,
            "no file at {home}/b.txt. Did you mean {home}/a.txt?",
        ),
        ("pretrain {home}/data --steps 3", 2, "pretrain needs DATA and -o RUN, or --resume RUN."),
        (
            "pretrain {home}/data --resume {home}/run",
            2,
            "--resume continues a run as it was begun",
        ),
        (
            "pretrain --resume {home}/tuned",
            2,
            "{home}/tuned is a run of finetune. Repeat its command: it continues where it stopped.",
        ),
        ("pretrain {home}/dota --steps 3 -o {home}/x", 2, "no data at {home}/dota."),
        ("corpus check {home}/a.txt ''", 2, "a path is empty: give one, or leave it out."),
        ("predict '' {home}/reviews.csv -o {home}/x.csv", 2, "a path is empty"),
        ("evaluate {home}/tuned -o ''", 2, "invalid value for -o: a path is empty"),
        ("pretrain {home}/data --size mimi -o {home}/x", 2, 'no size named "mimi". Did you mean "mini"?'),
        ("pretrain {home}/data --set seeed=1 -o {home}/x", 2, "--set: unknown key seeed. Did you mean seed?"),
        (
            "finetune glue:sst --model {home}/run -o {home}/x",
            2,
            'no task named "glue:sst". Did you mean "glue:sst2"?',
        ),
        (
            "finetune {home}/review.csv --model {home}/run -o {home}/x",
            2,
            "no file at {home}/review.csv. Did you mean",
        ),
        (
            "finetune my_lab.irony:irony --model {home}/run -o {home}/x",
            2,
            "no file at my_lab.irony:irony, and no module",
        ),
        (
            "finetune {home} --model {home}/run -o {home}/x",
            2,
            "{home} is a folder without a train file, such as {home}/tr",
        ),
        (
            "finetune {home}/reviews.csv --model {home}/run -o {home}/x --lr=-1",
            2,
            "lr is -1.0; it must be from 0 to 1,000",
        ),
        (
            "finetune {home}/reviews.csv --model {home}/run -o {home}/x --lr nan",
            2,
            "lr is nan; it must be from 0 to 1,000",
        ),
        (
            "finetune {home}/reviews.csv --model {home}/run -o {home}/x --seeds 0",
            2,
            "seeds is 0; it must be",
        ),
        (
            "finetune {home}/reviews.csv --model {home}/run -o {home}/x --limit=-3",
            2,
            "limit is -3; it must be",
        ),
        (
            "finetune {home}/reviews.csv --model {home}/run -o {home}/x --set task.max_length=2",
            2,
            "--set: task.max_length is 2; it must be from 3 to",
        ),
        ("finetune glue:sst2 -o {home}/x", 2, "finetune needs --model MODEL, run folder, Hugging Face folder"),
        ("finetune a.csv --mdel {home}/run -o {home}/x", 2, "unknown option: --mdel. Did you mean --model?"),
        ("finetune", 2, "finetune needs TASK, a task's name such as glue:sst2"),
        ("evaluate {home}/tuned --data {home}/no.csv", 2, "no file or folder at {home}/no.csv."),
        ("evaluate {home}/run", 2, "{home}/run/model is not fine-tuned for a task."),
        (
            "predict {home}/tuned {home}/reviews.csv -o {home}/x.cvs",
            2,
            '{home}/x.cvs: no format named ".cvs".',
        ),
        ("config show {home}/data", 2, "{home}/data is not a run folder"),
    ],
)
def test_mistakes_are_one_line(
    workspace: Path, capsys: pytest.CaptureFixture[str], words: str, exit_code: int, message: str
) -> None:
    before = sorted(workspace.rglob("*"))
    capsys.readouterr()
    assert app.run([word.format(home=workspace) for word in shlex.split(words)]) == exit_code
    printed = capsys.readouterr()
    last = printed.err.splitlines()[-1]
    assert last.startswith(f"error: {message.format(home=workspace)}"), last
    assert printed.out == ""
    assert sorted(workspace.rglob("*")) == before


def test_debug_shows_where(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(words: list[str]) -> None:
        raise data_error("torn.")

    monkeypatch.setattr(app, "_run", fail)
    assert app.run(["doctor", "--debug"]) == 3
    assert "Traceback" in capsys.readouterr().err
    assert app.run(["doctor"]) == 3
    assert capsys.readouterr().err == "error: torn.\n"
