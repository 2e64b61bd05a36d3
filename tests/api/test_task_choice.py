"""The task that a user means by a name, a file, a folder or a value."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from contextlib import redirect_stderr
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.workspace import WORDS

from bertkit.api.task_choice import choose_task, find_task, list_tasks, refuse_unused
from bertkit.errors import BertkitError
from bertkit.options.finetuning import TaskTrainingOptions
from bertkit.report.progress import Progress
from bertkit.task_types import FileTask, TextClassificationTask
from bertkit.tasks.glue import sst2


def write_table(path: Path, labels: Sequence[str] = ("bad", "good")) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("id", "review", "label"))
        for row in range(40):
            writer.writerow((row, f"{WORDS[row % 11]} {WORDS[row % 7]} {row}", labels[row % len(labels)]))
    return path


def choose(options: TaskTrainingOptions) -> tuple[FileTask, str]:
    """The chosen task, and what was shown."""
    with redirect_stderr(io.StringIO()) as shown, Progress("plain") as bar:
        task = choose_task(options, bar)
    return task, shown.getvalue()


@pytest.fixture
def options(tmp_path: Path) -> TaskTrainingOptions:
    return TaskTrainingOptions(write_table(tmp_path / "reviews.csv"), model="m", output="o")


def test_a_table_is_guessed_and_the_guess_is_shown(options: TaskTrainingOptions) -> None:
    task, shown = choose(options)
    assert isinstance(task, TextClassificationTask)
    assert set(task.labels) == {"bad", "good"}
    assert "review" in shown


def test_columns_that_are_given_are_not_guessed(options: TaskTrainingOptions) -> None:
    with pytest.raises(BertkitError, match='no column "words"'):
        choose(replace(options, text="words"))


def test_more_training_files_are_added_to_the_table(options: TaskTrainingOptions, tmp_path: Path) -> None:
    more = write_table(tmp_path / "more.csv")
    alone, _ = choose(options)
    together, _ = choose(replace(options, train=[more]))
    assert len(list(together.examples("train"))) > len(list(alone.examples("train")))


def test_more_training_files_are_added_to_texts_by_their_labels(options: TaskTrainingOptions, tmp_path: Path) -> None:
    for label in ("bad", "good"):
        (tmp_path / "reviews" / label).mkdir(parents=True)
        for number in range(20):
            (tmp_path / "reviews" / label / f"{number}.txt").write_text(f"{WORDS[number % 11]} {label} {number}")
    more = tmp_path / "more.csv"
    more.write_text("id,text,label\n" + "".join(f"{number},a river {number},good\n" for number in range(9)))
    given = replace(options, task=str(tmp_path / "reviews"), train=[more])
    task, _ = choose(given)
    assert sum(len(task.examples(split)) for split in ("train", "dev")) == 49


def test_more_training_files_for_a_folder_are_refused(options: TaskTrainingOptions, tmp_path: Path) -> None:
    more = write_table(tmp_path / "more.csv")
    (tmp_path / "splits").mkdir()
    write_table(tmp_path / "splits" / "train.csv")
    with pytest.raises(BertkitError, match="splits is a folder with a train file of its own: leave out --train"):
        choose(replace(options, task=str(tmp_path / "splits"), train=[more]))


def test_a_named_task_reads_the_files_that_are_given(options: TaskTrainingOptions, tmp_path: Path) -> None:
    (tmp_path / "glue").mkdir()
    (tmp_path / "glue" / "dev.tsv").write_text("sentence\tlabel\nseven rivers\t1\n")
    (tmp_path / "train.tsv").write_text("sentence\tlabel\nan old mill\t0\n")
    task, _ = choose(replace(options, task="glue:sst2", data=tmp_path / "glue", train=[tmp_path / "train.tsv"]))
    assert task.name == "glue:sst2"
    assert [example.first for example in task.examples("train")] == ["an old mill"]
    assert [example.first for example in task.examples("dev")] == ["seven rivers"]


def test_a_value_is_taken_as_it_is(options: TaskTrainingOptions, tmp_path: Path) -> None:
    table = tmp_path / "t.tsv"
    table.write_text("sentence\tlabel\nan old mill\t0\n")
    given = sst2.with_files(train=[table], dev=[table])
    assert choose(replace(options, task=given))[0] is given


@pytest.mark.parametrize(
    ("task", "given", "message"),
    [
        (
            "glue:sst2",
            {"text": "a", "fold_labels": True},
            "glue:sst2 has its own columns: leave out --text, --fold-labels",
        ),
        ("glue:stsb", {"kind": "number"}, "glue:stsb has its own columns: leave out --kind"),
        (
            "reviews.csv",
            {"data": "glue"},
            "is a table, and --data the folder of a task that bertkit knows by name: leave",
        ),
        (sst2, {"dev": "dev.tsv"}, "glue:sst2 has its files and columns: leave out --dev"),
    ],
)
def test_an_option_that_would_be_ignored_is_refused(
    options: TaskTrainingOptions, tmp_path: Path, task: FileTask | str, given: dict[str, Any], message: str
) -> None:
    refuse_unused(options)
    refuse_unused(replace(options, task="glue:stsb", kind="similarity", data="glue"))
    refuse_unused(replace(options, data="glue"), then="glue:rte")
    with pytest.raises(BertkitError, match="leave out --label"):
        refuse_unused(replace(options, task="glue:stsb", label="similarity"))
    named = tmp_path / "reviews.csv" if task == "reviews.csv" else task
    with pytest.raises(BertkitError, match=message):
        refuse_unused(replace(options, task=named, **given))


def test_classes_are_weighted(options: TaskTrainingOptions) -> None:
    task, _ = choose(replace(options, class_weights="bad=2,good=1"))
    assert isinstance(task, TextClassificationTask)
    assert task != choose(options)[0]


@pytest.mark.parametrize("task", [[{"text": "a", "label": "b"}], {"text": ["a"]}, 3])
def test_what_is_no_path_name_or_table_is_refused(options: TaskTrainingOptions, task: Any) -> None:
    with pytest.raises((BertkitError, TypeError), match="task"):  # a TypeError where types are checked
        choose(replace(options, task=task))


def test_a_class_has_one_weight(options: TaskTrainingOptions) -> None:
    with pytest.raises(BertkitError, match='class weights "bad=2,bad=1": "bad" has two'):
        choose(replace(options, class_weights="bad=2,bad=1"))


def test_a_task_without_classes_has_no_class_weights(options: TaskTrainingOptions) -> None:
    with pytest.raises(BertkitError, match="does not classify texts, so its classes cannot have weights"):
        choose(replace(options, task="squad:v1", class_weights="balanced"))


def test_a_folder_of_tables_is_a_table_and_another_folder_is_refused(
    options: TaskTrainingOptions, tmp_path: Path
) -> None:
    folder = tmp_path / "saved"
    folder.mkdir()
    with pytest.raises(BertkitError, match=r"is a folder without a train file, such as .*saved/train\.csv"):
        choose(replace(options, task=str(folder)))
    write_table(folder / "train.csv")
    assert set(choose(replace(options, task=str(folder)))[0].labels) == {"bad", "good"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("glue:sst", 'no task named "glue:sst". Did you mean "glue:sst2"?'),
        ("./reviews", "no file at ./reviews."),
        ("no_lab.irony:irony", "no file at no_lab.irony:irony, and no module named no_lab."),
    ],
)
def test_unknown_tasks_are_refused(name: str, message: str) -> None:
    with pytest.raises(BertkitError) as caught:
        find_task(name)
    assert str(caught.value).startswith(message)


def test_a_task_may_be_in_a_module_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "flower_lab"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "petals.py").write_text("from bertkit.tasks.glue import sst2 as petals\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert find_task("flower_lab.petals:petals") == sst2
    with pytest.raises(BertkitError, match=r'has no .* named "roses"'):
        find_task("flower_lab.petals:roses")


def test_tasks_are_listed_with_their_files() -> None:
    entries = {entry.name: entry for entry in list_tasks()}
    assert entries["glue:sst2"].metric == "accuracy"
    assert entries["glue:sst2"].files == "dev.tsv, test.tsv, train.tsv"
    assert all(entry.about for entry in entries.values())


def test_a_table_in_another_encoding_with_several_spellings_of_a_label(tmp_path: Path) -> None:
    table = write_table(tmp_path / "reviews.csv", labels=("bad", "très bon", "Très bon"))
    table.write_bytes(table.read_bytes().decode().encode("cp1252"))
    options = TaskTrainingOptions(table, model="m", output="o")
    with pytest.raises(BertkitError, match=r'it reads as Windows-1252 \("très"\): --encoding cp1252'):
        choose(options)
    with pytest.raises(BertkitError, match="--fold-labels treats them as one"):
        choose(replace(options, encoding="cp1252"))
    task, shown = choose(replace(options, encoding="cp1252", fold_labels=True))
    assert task.labels == ("bad", "très bon")
    assert "2 classes" in shown
    assert task.files.encoding == "cp1252"
