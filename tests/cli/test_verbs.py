"""The verbs from text to answers on tiny input, in one process, as a user would type them."""

from __future__ import annotations

import csv
import hashlib
import json
import random
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest

from bertkit import api
from bertkit.cli import app
from bertkit.errors import BertkitError

WORDS = ["river", "stone", "early", "garden", "music", "letter", "winter", "seven", "market", "silver", "bridge"]


def run(*words: object) -> None:
    assert app.run([str(word) for word in words]) == 0


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which everything up to a fine-tuned model was made."""
    home = tmp_path_factory.mktemp("a home")
    draw = random.Random(7)
    documents = ("\n".join(" ".join(draw.choices(WORDS, k=7)).capitalize() + "." for _ in range(20)) for _ in range(13))
    (home / "a.txt").write_text("\n\n".join(documents))
    with (home / "reviews.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("id", "review", "label"))
        writer.writerows((row, " ".join(draw.choices(WORDS, k=5)), ("bad", "good")[row % 2]) for row in range(99))
    run("tokenizer", "train", home / "a.txt", "--vocab-size", 99, "-o", home / "tok", "--quiet")
    run("prepare", home / "a.txt", "--tokenizer", home / "tok", "-o", home / "data", "--heldout", 0.3, "--quiet")
    (home / "run.toml").write_text("save_every = 3\n[schedule]\ndecay = 'linear'\n")
    sizes = ("--size", "1/12/2", "--seq-length", 37, "--batch-size", 7)
    settings = ("--config", home / "run.toml", "--set", "evaluate_every=3", "encoder.max_positions=41")
    run("pretrain", home / "data", *sizes, "--steps", 7, *settings, "-o", home / "run", "--quiet")
    table = ("--batch-size", 13, "--epochs", 1, "--seeds", 2)
    run("finetune", home / "reviews.csv", "--model", home / "run", *table, "-o", home / "tuned", "--quiet")
    return home


def answer(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    capsys.readouterr()
    run(*words)
    return json.loads(capsys.readouterr().out)


def test_a_text_is_shown_in_pieces(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pieces = answer(capsys, "tokenizer", "show", home / "tok", "Winter river", "--json")
    assert "".join("Winter river"[each["start"] : each["end"]] for each in pieces) == "Winterriver"
    run("tokenizer", "show", home / "tok", "Winter")
    assert capsys.readouterr().out.splitlines()[0].split() == ["token", "id", "characters", "text"]


def test_files_are_checked(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(capsys, "corpus", "check", home / "a.txt", "--json")
    run("corpus", "check", home / "a.txt")
    assert "13" in capsys.readouterr().out
    (home / "latin.txt").write_bytes("caf\xe9".encode("latin-1"))
    assert app.run(["corpus", "check", str(home / "latin.txt")]) == 3
    assert "UTF-8" in capsys.readouterr().out


def test_a_plan_trains_nothing(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bertkit.pretraining.planning._SECONDS_TO_MEASURE", 0.01)
    words = ("pretrain", home / "data", "--size", "1/12/2", "--seq-length", 13, "--batch-size", 7, "--steps", 99)
    plan = answer(capsys, *words, "--plan", "--json", "-o", tmp_path / "run")
    assert plan["steps"] == 99
    assert not (tmp_path / "run").exists()
    run(*words, "--plan")
    assert "parameters" in capsys.readouterr().out


def test_a_run_knows_where_its_settings_come_from(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = {each["path"]: each for each in answer(capsys, "config", "show", home / "run", "--json")}
    origins = {path: each["origin"] for path, each in settings.items()}
    assert origins["save_every"] == f"{home / 'run.toml'}:1"
    assert origins["schedule.decay"] == f"{home / 'run.toml'}:3"
    assert origins["steps"] == "--steps"
    assert origins["evaluate_every"] == origins["encoder.max_positions"] == "--set"
    assert origins["encoder.num_layers"] == "--size 1/12/2"
    assert origins["precision"] == "measured"
    assert origins["seed"] == "default"
    assert settings["schedule.decay"]["value"] == "linear"
    run("config", "show", home / "run", "--origin")
    assert "'linear'" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_metrics_are_tracked(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("track", home / "run", "--follow")
    assert "records in" in capsys.readouterr().err
    assert list((home / "run" / "tensorboard").iterdir())


def test_a_finished_run_resumes_to_its_end(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("pretrain", "--resume", home / "run", "--progress", "plain")
    printed = capsys.readouterr()
    assert "7 steps" in printed.out
    assert printed.err.splitlines()[-1].startswith("next: bertkit fill")


@pytest.mark.parametrize(("kind", "architecture"), [("bpe", "gpt"), ("words", "elmo")])
def test_what_to_do_next_suits_the_network(
    home: Path, tmp_path: Path, kind: str, architecture: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tok, data, made = (tmp_path / name for name in ("tok", "data", "run"))
    run("tokenizer", "train", home / "a.txt", "--kind", kind, "--vocab-size", 99, "-o", tok, "--quiet")
    run("prepare", home / "a.txt", "--tokenizer", tok, "-o", data, "--heldout", 0, "--progress", "plain")
    assert f"next: bertkit pretrain {data} --architecture {architecture} --size mini" in capsys.readouterr().err
    sizes = ("--architecture", architecture, "--size", "1/12/2", "--seq-length", 17, "--batch-size", 3, "--steps", 2)
    run("pretrain", data, *sizes, "-o", made, "--progress", "plain")
    assert capsys.readouterr().err.splitlines()[-1] == f"next: bertkit finetune TASK --model {made} -o RUN"
    with pytest.raises(BertkitError, match="fills in no words: it was never asked for hidden ones"):
        api.fill(made, "River [MASK].")


def test_blanks_are_filled(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blanks = answer(capsys, "fill", home / "run", "River [MASK] early [MASK].", "--top-k", 3, "--json")
    assert [len(blank) for blank in blanks] == [3, 3]
    run("fill", home / "run", "River [MASK].")
    assert capsys.readouterr().out.splitlines()[0].split() == ["guess", "probability"]


def test_a_fine_tuned_model_is_evaluated(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scores = answer(capsys, "evaluate", home / "tuned", "--json", "--quiet")
    assert 0 <= scores["accuracy"] <= 1
    assert answer(capsys, "evaluate", home / "tuned", "--data", home / "reviews.csv", "--json")["accuracy"] >= 0
    run("evaluate", home / "tuned")
    printed = capsys.readouterr()
    assert [line.split()[0] for line in printed.out.splitlines()] == ["score", "accuracy", "macro_f1", "matthews", "10"]
    assert "the whole report:" in printed.err


def test_a_finished_model_has_a_card_that_may_be_edited(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cards = {home / name / "model" / "README.md": name for name in ("run", "tuned")}
    for path, name in cards.items():
        kind = huggingface_hub.ModelCard.load(path).data.pipeline_tag
        assert kind == {"run": "fill-mask", "tuned": "text-classification"}[name]
        assert str(home) not in path.read_text()
        with path.open("a") as file:
            file.write("My own words.\n")
    card = (home / "tuned" / "model" / "README.md").read_text()
    digest = hashlib.sha256((home / "reviews.csv").read_bytes()).hexdigest()
    assert digest in card and "also picked the epoch" in card
    record = json.loads((home / "tuned" / "run.json").read_text())
    assert record["data"]["train"] == [
        {"file": "reviews.csv", "bytes": (home / "reviews.csv").stat().st_size, "sha256": digest}
    ]
    assert sum(record["examples"].values()) == 99
    (text,) = json.loads((home / "run" / "run.json").read_text())["data"]
    assert text["sha256"] == hashlib.sha256((home / "a.txt").read_bytes()).hexdigest()
    run("evaluate", home / "tuned", "--quiet")


def test_a_report_is_written_where_it_is_wanted(home: Path, tmp_path: Path) -> None:
    run("evaluate", home / "tuned", "--data", home / "reviews.csv", "-o", tmp_path / "a" / "report", "--quiet")
    assert sorted(path.name for path in (tmp_path / "a" / "report").iterdir()) == ["report.html", "report.json"]
    report = json.loads((tmp_path / "a" / "report" / "report.json").read_text())
    assert (report["examples"], report["split"]) == (99, "dev")
    assert report["scores"]["accuracy"]["low"] <= report["accuracy"] <= report["scores"]["accuracy"]["high"]
    run("evaluate", home / "tuned", "--quiet")
    assert (home / "tuned" / "evaluation-dev" / "report.html").read_text().startswith("<!DOCTYPE html>")


def test_two_models_are_compared(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "compare", home / "tuned", home / "tuned", home / "reviews.csv", "--json")
    assert found["scores"]["accuracy"]["p"] == 1.0 and found["examples"] == 99
    run("compare", home / "tuned", home / "tuned")
    assert capsys.readouterr().out.splitlines()[-1].startswith("No difference larger than chance between")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".txt", ".parquet"])
def test_a_file_is_answered(home: Path, tmp_path: Path, suffix: str) -> None:
    run("predict", home / "tuned", home / "reviews.csv", "-o", tmp_path / f"out{suffix}", "--quiet")
    assert [path.name for path in tmp_path.iterdir()] == [f"out{suffix}"]
    if suffix != ".parquet":
        lines = (tmp_path / f"out{suffix}").read_text().splitlines()
        assert len(lines) == 99 + (suffix in (".csv", ".tsv"))


def test_a_stream_is_answered(home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", iter(["river stone\n", "early garden\n"]))
    capsys.readouterr()
    run("predict", home / "tuned", "-", "-o", "-", "--quiet")
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["id"] for each in answers] == ["1", "2"]
    assert {each["label"] for each in answers} <= {"bad", "good"}


def test_tasks_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    listed = {each["name"]: each for each in answer(capsys, "finetune", "--list", "--json")}
    assert listed["glue:sst2"]["files"] == "dev.tsv, test.tsv, train.tsv"
    run("finetune", "--list")
    assert "glue:rte" in capsys.readouterr().out


def test_the_doctor_answers(capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(capsys, "doctor", "--json")["cores"] >= 1


@pytest.mark.parametrize(
    ("words", "exit_code", "message"),
    [
        ("fill {home}/rum x", 2, "no model at {home}/rum. Did you mean {home}/run?"),
        ("fill {home}/tuned [MASK]", 2, "{home}/tuned/model is fine-tuned for"),
        ("fill {home}/run nothing", 2, "there is no [MASK] in"),
        ("prepare --tokenizer {home}/tok -o {home}/x", 2, "name at least one text file."),
        (
            "prepare {home}/b.txt --tokenizer {home}/tok -o {home}/x",
            2,
            "no file at {home}/b.txt. Did you mean {home}/a.txt?",
        ),
        ("pretrain {home}/data --steps 3", 2, "pretrain needs DATA and -o RUN, or --resume RUN."),
        ("pretrain {home}/data --resume {home}/run", 2, "a resumed run has its data, its folder and its architecture"),
        ("pretrain --resume {home}/tuned", 2, "{home}/tuned is not a pre-training run; only those are resumed."),
        ("pretrain {home}/dota --steps 3 -o {home}/x", 3, "no data at {home}/dota."),
        ("pretrain {home}/data --size mimi -o {home}/x", 2, 'no size named "mimi". Did you mean "mini"?'),
        ("pretrain {home}/data --set seeed=1 -o {home}/x", 2, "--set: unknown key seeed. Did you mean seed?"),
        ("finetune glue:sst --model {home}/run -o {home}/x", 2, 'no task named "glue:sst". Did you mean "glue:sst2"?'),
        ("finetune {home}/review.csv --model {home}/run -o {home}/x", 2, "no file at {home}/review.csv. Did you mean"),
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
            "--lr: lr is -1.0; a learning rate is",
        ),
        ("finetune {home}/reviews.csv --model {home}/run -o {home}/x --lr nan", 2, "--lr: lr is nan; a learning rate"),
        ("finetune {home}/reviews.csv --model {home}/run -o {home}/x --seeds 0", 2, "--seeds: seeds is 0; it must be"),
        (
            "finetune {home}/reviews.csv --model {home}/run -o {home}/x --limit=-3",
            2,
            "--limit: limit is -3; it must be",
        ),
        (
            "finetune {home}/reviews.csv --model {home}/run -o {home}/x --set task.max_length=2",
            2,
            "--set: max_length is 2; 3 tokens are the least",
        ),
        ("finetune glue:sst2 -o {home}/x", 2, 'command "finetune" parameter --model requires an argument.'),
        ("finetune", 2, 'command "finetune" parameter TASK requires an argument.'),
        ("evaluate {home}/tuned --data {home}/no.csv", 3, "no file or folder at {home}/no.csv."),
        ("evaluate {home}/run", 2, "{home}/run/model is not fine-tuned for a task."),
        ("predict {home}/tuned {home}/reviews.csv -o {home}/x.cvs", 2, '{home}/x.cvs: no format named ".cvs".'),
        ("config show {home}/data", 2, "{home}/data is not a run folder"),
    ],
)
def test_mistakes_are_one_line(
    home: Path, capsys: pytest.CaptureFixture[str], words: str, exit_code: int, message: str
) -> None:
    before = sorted(home.rglob("*"))
    capsys.readouterr()
    assert app.run([word.format(home=home) for word in words.split()]) == exit_code
    printed = capsys.readouterr()
    last = printed.err.splitlines()[-1]
    assert last.startswith(f"error: {message.format(home=home)}"), last
    assert printed.out == ""
    assert sorted(home.rglob("*")) == before
