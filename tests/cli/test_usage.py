"""What is wrong with a command line, in the words of its verb."""

from __future__ import annotations

import shlex

import pytest

from bertkit.cli import app
from bertkit.options.help import EXAMPLES


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "finetune r.csv --model m",
            "finetune needs -o OUTPUT, run folder: record, metrics, plots, the best model. "
            "Example: bertkit finetune reviews.csv --model runs/mini -o runs/reviews",
        ),
        ("finetune r.csv --model m --output", "-o needs a value: run folder: record, metrics, plots, the best model."),
        ("finetune r.csv --model m -o n --lr", "--lr needs a value: peak learning rate."),
        ("pretrain data -o n --mix", "--mix needs a value: more folders that bertkit prepare has written, each with"),
        ("corpus check a.txt --against --json", "--against needs a value: dev and test files: count how many"),
        (
            "fill m",
            "fill needs TEXT, text with at least one [MASK], which is <mask> for RoBERTa. Example: bertkit fill",
        ),
        ("doctor now", 'unexpected argument "now".'),
        ("predict m --overwrit a.csv -o b.csv", "unknown option: --overwrit. Did you mean --overwrite?"),
        ("embed m --chunk=3 a.txt -o v.npy", "unknown option: --chunk."),
        ("fill m a b", 'unexpected argument "b".'),
        ("finetune r.csv --model m -o n --learning-rate 1", "unknown option: --learning-rate. Did you mean --lr?"),
        ("finetune r.csv --model m -o n --num_train_epochs=1", "unknown option: --num_train_epochs. Did you mean --ep"),
        ("finetune r.csv --model m -o n --output_dir x", "unknown option: --output_dir. Did you mean -o?"),
        ("finetune r.csv --model m -o n --sedes 1", "unknown option: --sedes. Did you mean --seeds?"),
        ("evaluate m --learning-rate 1", "unknown option: --learning-rate."),
    ],
)
def test_wrong_usage_says_what_to_type(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(words.split()) == 2
    assert capsys.readouterr().err.startswith(f"error: {message}")


@pytest.mark.parametrize("example", EXAMPLES.values())
def test_the_examples_are_commands(example: str) -> None:
    app.app.parse_args(shlex.split(example)[1:], exit_on_error=False, print_error=False, verbose=False)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_completions(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "bertkit" in script
    assert "finetune" in script
    assert "allow-rare-labels" in script


def test_the_help_has_an_example_and_groups(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.run(["finetune", "--help"]) == 0
    shown = capsys.readouterr().out
    panels = ("Arguments", "Required options", "Data", "Columns and labels", "Training", "Advanced", "Output")
    places = [shown.index(each) for each in ("Example: bertkit finetune", *(f"─ {panel} ─" for panel in panels))]
    assert places == sorted(places)
