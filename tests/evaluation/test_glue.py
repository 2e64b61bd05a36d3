"""GLUE over several runs: averages of the rows of the paper, and submission files for the real test sets."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

import bertkit
from bertkit.checkpoint.save_model import save_model
from bertkit.cli import app
from bertkit.config.records import to_plain
from bertkit.encoders.bert import Bert, BertConfig
from bertkit.errors import WRONG_USAGE, BertkitError
from bertkit.finetuning.results import FinetuneResult, SeedResult
from bertkit.model import Model
from bertkit.runs import FORMAT
from bertkit.storage.atomic import write_json
from bertkit.task_types import TextTask
from bertkit.tasks import glue
from bertkit.text.wordpiece import WordPiece, train

pytestmark = pytest.mark.usefixtures("without_shape_checks")

PAPER = {
    "OpenAI GPT": ([82.1, 81.4, 70.3, 87.4, 91.3, 45.4, 80.0, 82.3, 56.0], 75.1),
    "BERT base": ([84.6, 83.4, 71.2, 90.5, 93.5, 52.1, 85.8, 88.9, 66.4], 79.6),
    "BERT large": ([86.7, 85.9, 72.1, 92.7, 94.9, 60.5, 86.5, 89.3, 70.1], 82.1),
}
"""Rows of Table 1: MNLI-m, MNLI-mm, QQP, QNLI, SST-2, CoLA, STS-B, MRPC, RTE, and the average."""


@pytest.fixture(scope="module")
def tokenizer() -> WordPiece:
    return train(["the old mill by the river was sold to a man from the city"] * 7, vocab_size=67)


def make_run(folder: Path, task: TextTask, tokenizer: WordPiece, shift: float = 0.0) -> Path:
    """A run folder with an untrained model; ``shift`` is the bias of a regression."""
    shape = BertConfig(
        vocab_size=tokenizer.vocab_size,
        hidden_size=6,
        num_layers=1,
        num_heads=1,
        intermediate_size=7,
        max_positions=37,
        initializer_range=0.9,
    )
    task = dataclasses.replace(task, max_length=13)
    encoder = Bert(shape)
    model = Model(encoder, task.objectives(encoder))
    if shift:
        (head,) = model.objectives.values()
        with torch.no_grad():
            next(weight for name, weight in head.named_parameters() if name.endswith("bias")).fill_(shift)
    save_model(folder / "model", model, tokenizer, metadata={"kind": "finetune", "task": task.record()})
    return folder


def write_results(folder: Path, task: TextTask, *seeds: dict[str, float]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    results = [
        SeedResult(seed=seed, epochs=[scores], best_epoch=1, scores=scores, seconds=1.0, examples_per_second=1.0)
        for seed, scores in enumerate(seeds)
    ]
    best = max(results, key=lambda result: result.scores[task.metric])
    result = FinetuneResult(folder=folder, metric=task.metric, seeds=results, mean=0.0, sd=None, best=best)
    write_json(folder / "results.json", to_plain(result))
    write_json(folder / "run.json", {"format": FORMAT, "kind": "finetune", "run": {"task": task.record()}})
    return folder


def write_paper(home: Path, values: Sequence[float]) -> list[Path]:
    """One run folder per task, with the scores of a row of the paper."""
    scores: dict[str, dict[str, float]] = {}
    for column, value in zip([each for each in glue.TABLE if each.counts], values, strict=True):
        scores.setdefault(column.task.name, {})[column.score] = value
    tasks = {column.task.name: column.task for column in glue.TABLE}
    return [write_results(home / name.replace(":", "-"), tasks[name], each) for name, each in scores.items()]


def read(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("row", PAPER)
def test_averages_equal_those_of_the_paper(row: str, tmp_path: Path) -> None:
    values, average = PAPER[row]
    runs = write_paper(tmp_path, values)
    table = bertkit.glue_table([*runs, write_results(tmp_path / "wnli", glue.wnli, {"accuracy": 0.0})])
    assert [score.best for score in table.scores] == [*values, 0.0]
    assert table.best == pytest.approx(average, abs=0.06)
    assert table.missing == []


def test_there_is_no_average_if_a_task_is_missing(tmp_path: Path) -> None:
    rte = write_results(tmp_path / "rte", glue.rte, {"accuracy": 0.5}, {"accuracy": 0.625}, {"accuracy": 0.375})
    mnli = write_results(tmp_path / "mnli", glue.mnli, {"accuracy": 0.25})
    table = bertkit.glue_table([rte, mnli])
    assert [(score.column, score.best, score.mean, score.sd) for score in table.scores] == [
        ("MNLI-m", 0.25, 0.25, None),
        ("RTE", 0.625, 0.5, 0.125),
    ]
    assert (table.best, table.mean) == (None, None)
    assert table.missing == ["MNLI-mm", "QQP", "QNLI", "SST-2", "CoLA", "STS-B", "MRPC"]


def test_the_score_of_a_part_of_dev_is_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_results(tmp_path / "rte", glue.rte, {"accuracy": 0.5})
    record = json.loads((run / "run.json").read_text(encoding="utf-8"))
    write_json(run / "run.json", {**record, "run": {**record["run"], "dev_limit": 1200}})
    assert [score.dev_limit for score in bertkit.glue_table([run]).scores] == [1200]
    assert app.run(["glue", "table", str(run)]) == 0
    assert "not of all dev examples, and so no scores of GLUE: RTE (the first 1,200)" in capsys.readouterr().out


def test_two_runs_of_one_task_are_refused(tmp_path: Path) -> None:
    runs = [write_results(tmp_path / name, glue.rte, {"accuracy": 0.5}) for name in ("a", "b")]
    with pytest.raises(BertkitError, match=r"a and .*b are both runs of glue:rte") as caught:
        bertkit.glue_table(runs)
    assert caught.value.exit_code == WRONG_USAGE


def test_a_run_of_another_task_is_refused(tmp_path: Path) -> None:
    run = write_results(tmp_path / "mine", dataclasses.replace(glue.rte, name="files:mine.csv"), {"accuracy": 0.5})
    with pytest.raises(
        BertkitError, match=r"mine is a run of files:mine.csv, which is not one of GLUE's tasks: glue:mnli"
    ):
        bertkit.glue_table([run])


def test_an_unfinished_run_is_refused(tmp_path: Path) -> None:
    run = write_results(tmp_path / "rte", glue.rte, {"accuracy": 0.5})
    (run / "results.json").unlink()
    with pytest.raises(BertkitError, match="rte has no results yet"):
        bertkit.glue_table([run])


def test_a_submission_has_a_row_per_row_of_the_real_test_files(
    data_folder: Path, tokenizer: WordPiece, tmp_path: Path
) -> None:
    small = [glue.cola, glue.mrpc, glue.stsb, glue.rte, glue.wnli, glue.mnli]
    runs = [make_run(tmp_path / task.name.replace(":", "-"), task, tokenizer) for task in small]
    result = bertkit.glue_submit(runs, output=tmp_path / "out", data=data_folder / "glue", progress="quiet")
    sources = {
        "CoLA.tsv": ("CoLA/test.tsv", {"0", "1"}),
        "MRPC.tsv": ("MRPC/test.tsv", {"0", "1"}),
        "STS-B.tsv": ("STS-B/test.tsv", None),
        "RTE.tsv": ("RTE/test.tsv", {"entailment", "not_entailment"}),
        "WNLI.tsv": ("WNLI/test.tsv", {"0", "1"}),
        "AX.tsv": ("AX/diagnostic.tsv", {"entailment", "neutral", "contradiction"}),
    }
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(sources)
    for name, (source, answers) in sources.items():
        expected = (data_folder / "glue" / source).read_text(encoding="utf-8").split("\n")[1:]
        header, *rows = read(tmp_path / "out" / name)
        assert header == ["index", "prediction"]
        assert [index for index, _ in rows] == [line.split("\t")[0] for line in expected if line]
        assert result.rows[name] == len(rows)
        assert answers is None or {prediction for _, prediction in rows} <= answers
    assert result.missing["QNLI.tsv"] == "no run of glue:qnli was given"
    assert result.missing["MNLI-m.tsv"].endswith("glue/MNLI/test_matched.tsv does not exist")
    assert set(result.rows) | set(result.missing) == {entry.file for entry in glue.SUBMISSION}


@pytest.mark.parametrize(("shift", "expected"), [(77.0, "5.000"), (-77.0, "0.000")])
def test_similarities_are_clipped(shift: float, expected: str, tokenizer: WordPiece, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", glue.stsb.at(tmp_path), tokenizer, shift)
    (tmp_path / "test.tsv").write_text("index\tsentence1\tsentence2\n0\tthe mill\tthe river\n1\ta\tb\n")
    bertkit.glue_submit([run], output=tmp_path / "out", progress="quiet")
    assert read(tmp_path / "out" / "STS-B.tsv") == [["index", "prediction"], ["0", expected], ["1", expected]]


def test_one_mnli_run_predicts_both_test_sets_and_the_diagnostic_set(tokenizer: WordPiece, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", glue.mnli.at(tmp_path / "MNLI"), tokenizer)
    files = {"MNLI/test_matched.tsv": 3, "MNLI/test_mismatched.tsv": 2, "AX/diagnostic.tsv": 4}
    for name, count in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        rows = "".join(f"{9 + row}\tthe mill\tthe city {row}\n" for row in range(count))
        (tmp_path / name).write_text(f"index\tsentence1\tsentence2\n{rows}")
    result = bertkit.glue_submit([run], output=tmp_path / "out", progress="quiet")
    assert result.rows == {"MNLI-m.tsv": 3, "MNLI-mm.tsv": 2, "AX.tsv": 4}
    assert [index for index, _ in read(tmp_path / "out" / "AX.tsv")[1:]] == ["9", "10", "11", "12"]


def test_a_submission_without_files_is_an_error(tokenizer: WordPiece, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", glue.rte.at(tmp_path), tokenizer)
    with pytest.raises(BertkitError, match=r"no file of the submission can be written: .*test.tsv does not exist"):
        bertkit.glue_submit([run], output=tmp_path / "out", progress="quiet")
    assert not (tmp_path / "out").exists()


def test_an_output_that_is_a_file_is_refused_before_the_predictions(
    tokenizer: WordPiece, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bertkit.evaluation.glue._write_predictions", lambda *given: pytest.fail("it predicts"))
    run = make_run(tmp_path / "run", glue.rte.at(tmp_path), tokenizer)
    (tmp_path / "test.tsv").write_text("index\tsentence1\tsentence2\n0\tthe mill\tthe river\n")
    (tmp_path / "out").write_text("")
    with pytest.raises(BertkitError, match=r"cannot write to .*out: File exists"):
        bertkit.glue_submit([run], output=tmp_path / "out", progress="quiet")


def write_nli(path: Path, rows: int) -> None:
    lines = [f"the mill {row}\tthe river\t{glue.mnli.labels[row % 3]}\n" for row in range(rows)]
    path.write_text("sentence1\tsentence2\tgold_label\n" + "".join(lines))


def test_finetuning_on_mnli_scores_matched_and_mismatched_dev(tokenizer: WordPiece, tmp_path: Path) -> None:
    source = make_run(tmp_path / "source", glue.mnli, tokenizer)
    for name, rows in (("train", 7), ("dev_matched", 5), ("dev_mismatched", 13)):
        write_nli(tmp_path / f"{name}.tsv", rows)
    words: dict[str, object] = {"model": source, "data": tmp_path, "epochs": 1, "progress": "quiet"}
    options = {**words, "set": ["task.max_length=13"]}
    result = bertkit.finetune("glue:mnli", output=tmp_path / "both", **options)  # type: ignore[arg-type]
    mismatched = bertkit.evaluate(tmp_path / "both", split="dev_mismatched", progress="quiet")
    assert result.best.scores == {
        "accuracy": bertkit.evaluate(tmp_path / "both", progress="quiet")["accuracy"],
        "accuracy_mismatched": mismatched["accuracy"],
    }
    assert set(result.best.epochs[0]) == {"accuracy"}
    assert [score.column for score in bertkit.glue_table([tmp_path / "both"]).scores] == ["MNLI-m", "MNLI-mm"]
    (tmp_path / "dev_mismatched.tsv").unlink()
    result = bertkit.finetune("glue:mnli", output=tmp_path / "one", **options)  # type: ignore[arg-type]
    assert set(result.best.scores) == {"accuracy"}


def test_the_diagnostic_set_is_scored_with_a_model_of_mnli(tokenizer: WordPiece, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", glue.mnli, tokenizer)
    lines = [f"\t\t\t\tNews\tthe mill {row}\tthe city\t{glue.ax.labels[row % 3]}\n" for row in range(7)]
    names = ("Lexical Semantics", "Predicate-Argument Structure", "Logic", "Knowledge", "Domain")
    header = "\t".join((*names, "Premise", "Hypothesis", "Label"))
    (tmp_path / "diagnostic-full.tsv").write_text(header + "\n" + "".join(lines))
    scores = bertkit.evaluate(run, on="glue:ax", data=tmp_path, progress="quiet")
    assert set(scores) == {"matthews", "accuracy"}
    with pytest.raises(BertkitError, match="a model for glue:mnli does not give the answers of glue:rte"):
        bertkit.evaluate(run, on="glue:rte", progress="quiet")


def test_the_diagnostic_set_cannot_be_trained_on(tokenizer: WordPiece, tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", glue.mnli, tokenizer)
    with pytest.raises(BertkitError, match=r"glue:ax has no train split. It has: dev, test"):
        bertkit.finetune("glue:ax", model=run, data=tmp_path, output=tmp_path / "out", progress="quiet")


def test_the_commands_list_what_they_wrote(
    tokenizer: WordPiece, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "run", glue.rte.at(tmp_path), tokenizer)
    (tmp_path / "test.tsv").write_text("index\tsentence1\tsentence2\n7\tthe mill\tthe river\n")
    assert app.run(["glue", "submit", str(run), "-o", str(tmp_path / "out"), "--quiet"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[1].split() == ["RTE.tsv", "1"]
    assert "no CoLA.tsv: no run of glue:cola was given" in printed
    assert app.run(["glue", "submit", str(run), "-o", str(tmp_path / "out"), "--json", "--quiet", "--overwrite"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == {"RTE.tsv": 1}
    shutil.rmtree(run)
    write_results(run, glue.rte, {"accuracy": 0.5})
    assert app.run(["glue", "table", str(run)]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:3] == ["RTE", "accuracy", "0.5000"]


@pytest.mark.parametrize("kind", ["pretrain", "tune"])
def test_a_run_of_another_verb_is_refused(kind: str, tmp_path: Path) -> None:
    write_json(tmp_path / "run.json", {"format": FORMAT, "kind": kind, "run": {"task": {"sampling": {}}}})
    with pytest.raises(BertkitError, match=f"is a run of bertkit {kind}\\. Give runs of bertkit finetune") as caught:
        bertkit.glue_table([tmp_path])
    assert caught.value.exit_code == WRONG_USAGE
