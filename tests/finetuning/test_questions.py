"""Question answering on a user's own files: fine-tuning twice, ensembles, answers."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import bertkit
from bertkit.data.features import collate
from bertkit.errors import BertkitError
from bertkit.evaluation.evaluate import predict_split, read_split
from bertkit.inference.ensemble import Ensemble
from bertkit.model import Model
from bertkit.report.progress import Progress
from bertkit.runs import read_run
from bertkit.tasks.squad import v1, v2

WORDS = ["river", "stone", "early", "garden", "music", "letter", "winter", "seven", "market", "silver", "bridge"]

pytestmark = pytest.mark.usefixtures("no_pictures", "without_shape_checks")


def write(path: Path, contexts: int, seed: int, *, impossible: bool = False) -> Path:
    generator = random.Random(seed)
    paragraphs = []
    for number in range(contexts):
        words = generator.choices(WORDS, k=13)
        word = generator.choice(words)
        unanswerable = impossible and number % 3 == 1
        answers = [] if unanswerable else [{"text": word, "answer_start": " ".join(words).index(word)}]
        row = {"id": f"q{number}", "question": f"which {word}", "answers": answers, "is_impossible": unanswerable}
        paragraphs.append({"context": " ".join(words), "qas": [row]})
    path.write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}), encoding="utf-8")
    return path


FIXED: dict[str, Any] = {"epochs": 1, "batch_size": 7, "progress": "quiet"}
SHORT = ["task.max_length=23", "task.stride=5"]


def assert_same_weights(run: Path, other: Path) -> None:
    one, two = (load_file(each / "model" / "model.safetensors") for each in (run, other))
    assert one.keys() == two.keys()
    assert all(torch.equal(tensor, two[name]) for name, tensor in one.items())


def test_a_model_fine_tuned_again_for_the_same_type_of_task_keeps_its_heads(model: Path, tmp_path: Path) -> None:
    """With a learning rate of 0, the second fine-tuning ends with the weights of the first."""
    easy, hard = write(tmp_path / "easy.json", 37, 1), write(tmp_path / "hard.json", 37, 2, impossible=True)
    run = tmp_path / "run"
    result = bertkit.finetune(easy, then=hard, model=model, output=run, lr=0.0, seeds=2, set=SHORT, **FIXED)
    assert len(result.seeds) == 2
    assert result.metric == "f1"
    assert set(result.best.scores) >= {"exact", "HasAns_f1", "NoAns_f1"}
    assert len(list((run / "first" / "seeds").iterdir())) == 1
    assert read_run(run)["run"]["model"] == str(run / "first")
    assert read_run(run)["run"]["task"]["max_length"] == 23
    assert_same_weights(run, run / "first")
    again = bertkit.finetune(hard, model=run, output=tmp_path / "again", lr=0.0, set=SHORT, **FIXED)
    assert_same_weights(again.folder, run)


def test_a_repeated_command_with_then_returns_the_same_results(model: Path, tmp_path: Path) -> None:
    easy, hard = write(tmp_path / "easy.json", 13, 1), write(tmp_path / "hard.json", 13, 2)
    runs = [
        bertkit.finetune(easy, then=hard, model=model, output=tmp_path / "run", lr=1e-3, set=SHORT, **FIXED)
        for _ in range(2)
    ]
    assert runs[0] == runs[1]


def test_an_ensemble_predicts_from_the_mean_of_the_outputs(model: Path, tmp_path: Path) -> None:
    data, dev = write(tmp_path / "t.json", 37, 1), write(tmp_path / "dev.json", 13, 3)
    runs = [
        bertkit.finetune(
            data, model=model, output=tmp_path / f"run{seed}", first_seed=seed, lr=1e-2, set=SHORT, **FIXED
        ).folder
        for seed in (1, 2)
    ]
    together = bertkit.load(*runs)
    models = [bertkit.load(run).task_model for run in runs]
    assert isinstance(together.task_model, Ensemble)
    example = next(iter(together.task.reader.read(dev)))
    (feature, *_) = together.task.encode(example, together.tokenizer)
    from_all = _start_scores(together.task_model, feature)
    torch.testing.assert_close(from_all, sum(_start_scores(each, feature) for each in models) / 2)
    found = bertkit.evaluate(runs[0], data=dev, ensemble=[runs[1]], output=tmp_path / "report", progress="quiet")
    assert found.examples == 13
    assert not (runs[0] / "evaluation-dev").exists()
    assert bertkit.predict(runs[0], dev, output=tmp_path / "p.json", ensemble=runs[1:], progress="quiet") == 13
    answers = {example.id: each.text for example, each in _answers(together, dev)}
    assert json.loads((tmp_path / "p.json").read_text(encoding="utf-8")) == answers
    twice = {example.id: each.text for example, each in _answers(bertkit.load(runs[0], runs[0]), dev)}
    assert twice == {example.id: each.text for example, each in _answers(bertkit.load(runs[0]), dev)}


def _answers(model: Any, dev: Path) -> list[tuple[Any, Any]]:
    examples = list(model.task.reader.read(dev))
    return list(zip(examples, model.stream(examples), strict=True))


def _start_scores(model: Model | Ensemble, feature: Any) -> torch.Tensor:
    with torch.inference_mode():
        scores: torch.Tensor = model.eval()(collate([feature], pad_id=0))["span"]["start"]
    return scores


def test_models_of_different_tasks_are_not_an_ensemble(model: Path, table: Path, tmp_path: Path) -> None:
    questions = bertkit.finetune(
        write(tmp_path / "t.json", 13, 1), model=model, output=tmp_path / "q", set=SHORT, **FIXED
    ).folder
    classes = bertkit.finetune(table, model=model, output=tmp_path / "c", limit=13, **FIXED).folder
    with pytest.raises(
        BertkitError, match=r"is for files:reviews\.csv and .* for files:t\.json: they cannot be an ensemble"
    ):
        bertkit.load(questions, classes)


def test_a_table_of_questions_is_recognised_by_its_columns(model: Path, tmp_path: Path) -> None:
    rows = [
        f'{n},which {word}?,"{word}, a stone and a {WORDS[0]}",{word if n % 4 else ""}' for n, word in enumerate(WORDS)
    ]
    (tmp_path / "t.csv").write_text("\n".join(["id,question,context,answer", *rows]), encoding="utf-8")
    task = bertkit.finetune(tmp_path / "t.csv", model=model, output=tmp_path / "run", set=SHORT, **FIXED)
    assert set(task.best.scores) >= {"exact", "f1"}
    record = read_run(tmp_path / "run")["run"]["task"]
    assert (record["type"], record["null"], record["rules"]) == ("question_answering", True, "v2")
    card = (tmp_path / "run" / "model" / "README.md").read_text(encoding="utf-8")
    assert 'pipeline_tag: "question-answering"' in card


def test_a_task_without_unanswerable_questions_gets_the_best_span(model: Path, tmp_path: Path) -> None:
    """A model of SQuAD 2.0 whose threshold prefers no answer, evaluated on 2.0 and on 1.1."""
    hard = write(tmp_path / "hard.json", 37, 2, impossible=True)
    loaded = bertkit.load(
        bertkit.finetune(hard, model=model, output=tmp_path / "run", lr=0.0, set=SHORT, **FIXED).folder
    )
    loaded.task = replace(loaded.task, threshold=-1e9)  # type: ignore[call-arg]
    with Progress("quiet") as progress:
        with_null, without_null = (
            [*predict_split(loaded, read_split(task, hard, "dev"), progress)] for task in (v2, v1)
        )
    assert (len(with_null), {each.text for each in with_null}) == (37, {""})
    assert len(without_null) == sum(number % 3 != 1 for number in range(37))
    assert all(each.text for each in without_null)
