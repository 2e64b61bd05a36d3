from __future__ import annotations

import json
import platform
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bertkit
from bertkit.batch import Feature
from bertkit.contracts import Encoder, Objective, OutputArrays, Tokenizer
from bertkit.errors import WRONG_USAGE, BertkitError
from bertkit.evaluation.evaluate import evaluate_model, predict_split, read_split
from bertkit.inference.pipeline import load
from bertkit.report.progress import Progress
from bertkit.task_types import FileTask, TaskFiles, TextClassificationTask, TextExample, TextReader, TextTask
from bertkit.tasks.glue import sst2
from bertkit.user_tables.guess import guess
from bertkit.user_tables.input_columns import with_encoding

pytestmark = pytest.mark.usefixtures("without_shape_checks")

QUIET = Progress("quiet")


@pytest.fixture(scope="module")
def run(model: Path, table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("runs") / "reviews"
    options: dict[str, Any] = {"epochs": 1, "batch_size": 33, "progress": "quiet"}
    bertkit.finetune(table, model=model, output=output, **options)
    return output


def write_rows(path: Path, labels: list[str]) -> Path:
    path.write_text(
        "id,review,label\n" + "".join(f"{row},early river {row},{label}\n" for row, label in enumerate(labels))
    )
    return path


def test_a_split_is_read_from_a_folder(tmp_path: Path) -> None:
    (tmp_path / "dev.tsv").write_text("sentence\tlabel\nearly river\t1\nlate river\t0\n")
    split = read_split(sst2, tmp_path, "dev")
    assert split.name == "glue:sst2 dev"
    texts = [example.first for example in split.examples if isinstance(example, TextExample)]
    assert texts == [
        "early river",
        "late river",
    ]


def test_a_file_replaces_a_split(run: Path, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "more.csv", ["good", "bad", "good"])
    assert [each.label for each in read_split(load(run).task, file, "dev").examples] == ["good", "bad", "good"]


def test_predictions_are_not_taken_for_labels(run: Path, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "more.csv", ["good", "bad", "good"])
    bertkit.predict(run, file, output=tmp_path / "predictions.csv", progress="quiet")
    with pytest.raises(BertkitError, match="a file of predictions: its column label has what a model said, and input_"):
        bertkit.evaluate(run, data=tmp_path / "predictions.csv", progress="quiet")


def test_predicted_choices_are_not_taken_for_labels(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("prompt,A,B,label\nIt is so,hot,cold,A\nIt is,big,small,B\n")
    (tmp_path / "predictions.csv").write_text("label,prompt,A,B,input_label\nA,It is so,hot,cold,B\n")
    with pytest.raises(BertkitError, match="a file of predictions: its column label has what a model said, and input_"):
        read_split(guess(tmp_path / "train.csv").task, tmp_path / "predictions.csv", "dev")


def test_missing_and_unlabelled_data_are_errors(run: Path, tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match="no file or folder at") as caught:
        read_split(load(run).task, tmp_path / "nowhere.csv", "dev")
    assert caught.value.exit_code == WRONG_USAGE
    with pytest.raises(BertkitError, match="there is nothing to score"):
        read_split(load(run).task, write_rows(tmp_path / "unlabelled.csv", ["", ""]), "dev")


def test_predictions_are_in_the_order_of_the_examples(run: Path) -> None:
    pipeline = load(run)
    split = read_split(pipeline.task, None, "dev")
    predictions = predict_split(pipeline, split, QUIET)
    texts = [example.first for example in split.examples if isinstance(example, TextExample)]
    expected = [pipeline.predict([text])[0].label for text in texts]
    assert [prediction.label for prediction in predictions] == expected


def test_the_report_is_written_to_the_run_folder(run: Path) -> None:
    pipeline = load(run)
    found = evaluate_model(pipeline, read_split(pipeline.task, None, "dev"), None, QUIET)
    written = json.loads((run / "evaluation-dev" / "report.json").read_text())
    assert written["accuracy"] == found["accuracy"]
    assert (written["device"]["device"], written["environment"]["python"]) == ("cpu", platform.python_version())
    page = (run / "evaluation-dev" / "report.html").read_text()
    assert str(run) in page
    assert (
        page.index('class="verdict"') < page.index("<h2>Scores") < page.index("<h2>Seeds") < page.index("<h2>Training")
    )


def test_more_examples_than_those_of_the_training_are_noted(model: Path, table: Path, tmp_path: Path) -> None:
    """And texts of train beyond its limit, which the model has not seen, are no reason to distrust a score."""
    options: dict[str, Any] = {"epochs": 1, "batch_size": 33, "limit": 20, "set": ["dev_limit=3"], "progress": "quiet"}
    dev = tmp_path / "dev.csv"
    dev.write_text(table.read_text())
    bertkit.finetune(table, dev=dev, model=model, output=tmp_path / "run", no_baseline=True, **options)
    found = bertkit.evaluate(tmp_path / "run", progress="quiet")
    total = len(table.read_text().splitlines()) - 1
    assert f"the scores of the fine-tuning are those of the first 3 of these {total} examples" in found.warnings
    assert f"20 of {total} dev examples have a text that is also in train, so the scores are too high" in found.notes


@dataclass(frozen=True, slots=True)
class Rank:
    """A prediction of one's own, without a ``label``."""

    rank: int


@dataclass(frozen=True, kw_only=True)
class RankTask(FileTask[TextExample, Rank]):
    """The place of a label among those of the task."""

    @property
    def classes(self) -> TextClassificationTask:
        return TextClassificationTask(name=self.name, metric="accuracy", labels=self.labels, files=self.files)

    @property
    def reader(self) -> TextReader:
        return self.classes.reader

    def encode(self, example: TextExample, tokenizer: Tokenizer) -> list[Feature]:
        return self.classes.encode(example, tokenizer)

    def objectives(self, encoder: Encoder) -> dict[str, Objective]:
        return self.classes.objectives(encoder)

    def decode(self, example: TextExample, features: Sequence[Feature], outputs: Sequence[OutputArrays]) -> Rank:
        return Rank(self.labels.index(str(self.classes.decode(example, features, outputs).label)))

    def describe(self, example: TextExample, prediction: Rank) -> dict[str, Any]:
        return {"id": example.id, "rank": prediction.rank}

    def score(self, examples: Iterable[TextExample], predictions: Iterable[Rank]) -> dict[str, float]:
        pairs = zip(examples, predictions, strict=True)
        return {"right": float(np.mean([self.labels[found.rank] == each.label for each, found in pairs]))}


def test_predictions_of_a_task_of_ones_own_need_no_label(model: Path, table: Path, tmp_path: Path) -> None:
    guessed = guess(table).task
    split = replace(guessed.files.splits["train"], files=(str(table),))
    files = TaskFiles(splits={"train": split, "dev": split})
    task = RankTask(name="ranks", metric="right", labels=guessed.labels, files=files)
    result = bertkit.finetune(task, model=model, output=tmp_path / "run", epochs=1, limit=13, progress="quiet")
    found = bertkit.evaluate(tmp_path / "run", progress="quiet")
    assert found["right"] == result.mean
    assert all("rank: " in each.answer for each in found.worst)
    assert [type(each) for each in load(tmp_path / "run").predict(["early river", "late river"])] == [Rank, Rank]
    with pytest.raises(BertkitError, match=r"and not for ranks\.$"):
        bertkit.explain(tmp_path / "run", "early river", output=tmp_path / "page.html")


def test_a_report_can_be_written_elsewhere(run: Path, tmp_path: Path) -> None:
    pipeline = load(run)
    evaluate_model(pipeline, read_split(pipeline.task, None, "dev"), tmp_path / "a" / "b", QUIET)
    assert sorted(path.name for path in (tmp_path / "a" / "b").iterdir()) == ["report.html", "report.json"]


def test_the_user_is_told_why_there_is_no_report(run: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    shutil.copytree(run / "model", tmp_path / "theirs")
    pipeline = load(tmp_path / "theirs")
    evaluate_model(pipeline, read_split(load(run).task, None, "dev"), None, Progress("plain"))
    message = f"no report is written for {tmp_path}/theirs, which is not in a run folder: -o FOLDER writes one there"
    assert message in capsys.readouterr().err


def test_the_scores_of_a_run_that_cannot_be_written_are_shown(
    run: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    shutil.copytree(run, tmp_path / "run", ignore=shutil.ignore_patterns("evaluation-*"))
    (tmp_path / "run" / "evaluation-dev").write_text("")
    pipeline = load(tmp_path / "run")
    labelled = read_split(pipeline.task, None, "dev")
    assert evaluate_model(pipeline, labelled, None, Progress("plain")).examples > 0
    message = "evaluation-dev: File exists. The previous content is intact; -o FOLDER writes one there"
    assert message in capsys.readouterr().err


def test_an_ensemble_has_no_default_folder_for_its_report(run: Path) -> None:
    pipeline = load(run, run)
    before = sorted(run.iterdir())
    found = evaluate_model(pipeline, read_split(pipeline.task, None, "dev"), None, QUIET)
    assert sorted(run.iterdir()) == before
    assert found.examples > 0


def test_a_folder_that_does_not_say_it_is_for_pairs_is_scored_on_pairs(tmp_path: Path, run: Path) -> None:
    hf = pytest.importorskip("transformers")
    tokenizer = load(run).tokenizer
    shape = {"hidden_size": 14, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 37}
    config = hf.BertConfig(vocab_size=tokenizer.vocab_size, num_labels=1, max_position_embeddings=41, **shape)
    hf.BertForSequenceClassification(config).save_pretrained(tmp_path / "hf")
    tokenizer.save(tmp_path / "hf")
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("text,second,label\n" + "".join(f"a river {n},a stone {n % 3},{n / 7}\n" for n in range(20)))
    found = bertkit.evaluate(tmp_path / "hf", data=pairs, text="text", pair="second", progress="quiet")
    assert found.examples == 20


def test_an_unknown_split_is_named_beside_those_that_are_there(run: Path) -> None:
    task = replace(load(run).task, heldout=0.2)
    with pytest.raises(BertkitError, match=r"has no tset split\. It has: train, .*dev") as raised:
        read_split(task, None, "tset")
    assert "files:" not in str(raised.value)


def test_a_file_may_be_called_by_a_known_split_only(run: Path, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "t.csv", ["good", "bad"])
    assert read_split(load(run).task, file, "test").split == "test"
    for split in ("testt", "../../elsewhere"):
        with pytest.raises(BertkitError, match=f"has no {split} split"):
            read_split(load(run).task, file, split)


def test_a_file_of_the_training_is_noted(run: Path, table: Path, tmp_path: Path) -> None:
    pipeline = load(run)
    found = evaluate_model(pipeline, read_split(pipeline.task, table, "test"), tmp_path / "out", QUIET)
    assert f"{table.name} was read in the training: the score says nothing about new texts" in found.warnings
    assert found.verdict == "", "the bag of words has read these texts, too"


def test_a_file_of_the_training_of_any_model_of_an_ensemble_is_noted(run: Path, table: Path, tmp_path: Path) -> None:
    shutil.copytree(run / "model", tmp_path / "theirs")
    for folders in ((tmp_path / "theirs", run), (run, tmp_path / "theirs"), (run, run)):
        pipeline = load(*folders)
        found = evaluate_model(pipeline, read_split(pipeline.task, table, "test"), tmp_path / "out", QUIET)
        assert sum("was read in the training" in warning for warning in found.warnings) == 1


def test_texts_of_the_training_in_another_file_are_noted(run: Path, tmp_path: Path) -> None:
    model = load(run)
    assert isinstance(model.task, TextTask)
    rows = [f"{each.id},{each.first},{each.label}\n" for each in model.task.examples("train")[:7]]
    (tmp_path / "t.csv").write_text("id,review,label\n" + "".join([*rows, "99,a new text,good\n"]))
    found = evaluate_model(model, read_split(model.task, tmp_path / "t.csv", "test"), tmp_path / "out", QUIET)
    assert "7 of 8 test examples have a text that is also in train, so the scores are too high" in found.warnings
    assert found.verdict


def test_a_file_of_the_training_in_a_folder_is_noted(run: Path, table: Path, tmp_path: Path) -> None:
    (tmp_path / "splits").mkdir()
    shutil.copy(table, tmp_path / "splits" / "dev.csv")
    write_rows(tmp_path / "splits" / "test.csv", ["good", "bad"])
    pipeline = load(run)
    note = "splits was read in the training: the score says nothing about new texts"
    for split, expected in (("dev", True), ("test", False)):
        labelled = read_split(pipeline.task, tmp_path / "splits", split)
        assert (note in evaluate_model(pipeline, labelled, tmp_path / split, QUIET).warnings) is expected


def test_examples_that_are_held_out_from_another_file_than_in_training_are_noted(
    model: Path, table: Path, tmp_path: Path
) -> None:
    file = Path(shutil.copy(table, tmp_path / "t.csv"))
    options: dict[str, Any] = {"epochs": 1, "batch_size": 33, "progress": "quiet"}
    bertkit.finetune(file, model=model, output=tmp_path / "run", **options)
    note = "dev is held out from a file that is not, or no longer, that of the training"
    assert not any(note in each for each in bertkit.evaluate(tmp_path / "run", progress="quiet").warnings)
    file.write_text(file.read_text() + "999,early river,good\n")
    found = bertkit.evaluate(tmp_path / "run", no_baseline=True, overwrite=True, progress="quiet")
    assert any(note in each for each in found.warnings)


def test_a_dev_file_that_has_changed_is_noted(model: Path, table: Path, tmp_path: Path) -> None:
    dev = write_rows(tmp_path / "dev.csv", ["good", "bad"] * 20)
    options: dict[str, Any] = {"epochs": 1, "batch_size": 33, "progress": "quiet"}
    bertkit.finetune(table, dev=dev, model=model, output=tmp_path / "run", **options)
    note = "the dev file is not, or no longer, that of the training"
    assert not any(note in each for each in bertkit.evaluate(tmp_path / "run", progress="quiet").warnings)
    write_rows(dev, ["bad", "good"] * 20)
    found = bertkit.evaluate(tmp_path / "run", no_baseline=True, overwrite=True, progress="quiet")
    assert any(note in each for each in found.warnings)


def test_a_comparison_notes_a_model_that_was_trained_on_another_file(
    run: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = ["good", "bad"] * 20
    file = write_rows(tmp_path / "more.csv", labels)
    bertkit.finetune(file, model=model, output=tmp_path / "other", epochs=1, progress="quiet")
    bertkit.compare(run, tmp_path / "other", progress="plain")
    messages = capsys.readouterr().err
    assert f"{tmp_path / 'other'}: dev is held out from a file that is not" in messages
    assert f"{run}: dev" not in messages


def test_a_threshold_is_no_reason_to_distrust_the_scores_of_a_file(model: Path, tmp_path: Path) -> None:
    table = write_rows(tmp_path / "several.csv", ["good", "bad", "good;bad"] * 33)
    run = tmp_path / "run"
    bertkit.finetune(table, model=model, output=run, epochs=1, batch_size=33, progress="quiet")
    file = write_rows(tmp_path / "more.csv", ["good", "bad", "good;bad"])
    of_dev, of_file = (bertkit.evaluate(run, data=data, progress="quiet").warnings for data in (None, file))
    assert any("the threshold of each label was chosen on these" in each for each in of_dev)
    assert not any("the threshold of each label" in each for each in of_file)


def test_unlabelled_rows_are_noted(run: Path, tmp_path: Path) -> None:
    pipeline = load(run)
    file = write_rows(tmp_path / "more.csv", ["good", "", "bad", ""])
    found = evaluate_model(pipeline, read_split(pipeline.task, file, "test"), tmp_path / "out", QUIET)
    assert found.examples == 2
    assert "2 rows of test have no label and are left out" in found.notes
    assert "with 2 test examples the score is uncertain, as its interval shows" in found.warnings


def test_a_model_compared_with_itself_does_not_differ(run: Path) -> None:
    found = bertkit.compare(run, run, progress="quiet")
    assert found.scores["accuracy"].difference.value == 0
    assert found.disagreements == []
    assert (found.first, found.second) == (str(run), str(run))


def test_other_files_of_a_comparison_are_utf8_whatever_the_training_files_were(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load(run)
    first.task = with_encoding(first.task, "cp1252")
    models = cycle([first, load(run)])
    monkeypatch.setattr("bertkit.api.evaluation.load", lambda run, precision: next(models))
    file = write_rows(tmp_path / "more.csv", ["good", "bad"])
    file.write_text(file.read_text().replace("early", "\u00c1rok"), encoding="utf-8")
    assert bertkit.compare(run, run, data=file, progress="quiet").examples == 2
    file.write_bytes(file.read_text(encoding="utf-8").encode("cp1252"))
    with pytest.raises(BertkitError, match=r"is not UTF-8.* --encoding cp1252"):
        bertkit.compare(run, run, data=file, progress="quiet")


def test_a_comparison_reads_a_file_with_other_names_of_columns(run: Path, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "more.csv", ["good", "bad", "good"])
    renamed = tmp_path / "renamed.csv"
    renamed.write_text(file.read_text().replace("review", "opinion", 1))
    expected = bertkit.compare(run, run, data=file, progress="quiet")
    assert bertkit.compare(run, run, data=renamed, progress="quiet").scores == expected.scores


def test_the_report_of_a_file_has_its_path_and_leaves_those_of_dev_and_of_files_with_the_same_name(
    run: Path, tmp_path: Path
) -> None:
    bertkit.evaluate(run, progress="quiet")
    dev = (run / "evaluation-dev" / "report.json").read_bytes()
    name = load(run).task.name.removeprefix("files:")  # that of the training file
    for number in range(2):
        (tmp_path / str(number)).mkdir()
        file = write_rows(tmp_path / str(number) / name, ["good", "bad", "good"][number:])
        assert bertkit.evaluate(run, data=file, progress="quiet").task == str(file)
    written = sorted(run.glob(f"evaluation-dev-{Path(name).stem}-*"))
    reported = {json.loads((folder / "report.json").read_text())["task"] for folder in written}
    assert reported == {str(tmp_path / str(number) / name) for number in range(2)}
    assert (run / "evaluation-dev" / "report.json").read_bytes() == dev


def test_a_text_may_end_in_half_a_character(run: Path, tmp_path: Path) -> None:
    """JSON can spell one, and the report is written in UTF-8, which cannot."""
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(f'{{"review": "early \\ud83d", "label": "{label}"}}\n' for label in ("good", "bad")))
    model = load(run)
    evaluation = evaluate_model(model, read_split(model.task, rows, "dev"), tmp_path / "out", QUIET)
    assert json.loads((tmp_path / "out" / "report.json").read_text())["examples"] == evaluation.examples == 2
