"""ESIM and BiDAF: built from ELMo and word vectors, fine-tuned on real rows, saved and loaded again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import bertkit
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.checkpoint.save_model import save_model
from bertkit.encoder_types.words import WordEncoder
from bertkit.encoders.elmo import Elmo, size
from bertkit.finetuning.word_models import build_word_model
from bertkit.model import Model
from bertkit.task_types import FileTask
from bertkit.tasks.squad import v1
from bertkit.tasks.swag import swag
from bertkit.text import words

pytestmark = pytest.mark.usefixtures("no_pictures")

TEXT = "an angry river runs past seven silver bridges and sings a song of winter to the people in town"
QUICK: dict[str, Any] = {"epochs": 1, "batch_size": 7, "progress": "quiet"}


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small untrained ELMo in ``elmo/``, and vectors of size 13 in ``glove.txt``."""
    folder = tmp_path_factory.mktemp("parts")
    tokenizer = words.train([TEXT], word_length=9)
    torch.manual_seed(7)
    save_model(folder / "elmo", Model(Elmo(size("2/6/11", word_length=9)), {}), tokenizer, metadata={})
    lines = [f"{word} {' '.join(f'{number:.3f}' for number in torch.randn(13))}" for word in TEXT.split()]
    (folder / "glove.txt").write_text("\n".join(lines), encoding="utf-8")
    return folder


@pytest.fixture
def endings(data_folder: Path, tmp_path: Path) -> FileTask:
    few = tmp_path / "few.csv"
    rows = (data_folder / "swag" / "codah-train.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    few.write_text("".join(rows[:8]), encoding="utf-8")
    return swag.with_files(train=[few], dev=[few])


@pytest.fixture
def questions(data_folder: Path, tmp_path: Path) -> FileTask:
    file = json.loads((data_folder / "squad" / "tydiqa-en-train-v1.1.json").read_text(encoding="utf-8"))
    short = [each for each in file["data"] if all(len(one["context"]) < 250 for one in each["paragraphs"])]
    few = tmp_path / "few.json"
    few.write_text(json.dumps({"version": "1.1", "data": short[:5]}), encoding="utf-8")
    return v1.with_files(train=[few], dev=[few])


@pytest.mark.parametrize(
    ("name", "task_fixture", "changes"),
    [("esim", "endings", {"hidden_size": 7}), ("bidaf", "questions", {"width": 5})],
)
def test_elmo_and_vectors_stay_fixed_and_the_saved_model_predicts_the_same(
    name: str, task_fixture: str, changes: dict[str, int], parts: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """All other weights are trained."""
    task, run = request.getfixturevalue(task_fixture), tmp_path / "run"
    model = build_word_model(name, tmp_path / name, elmo=parts / "elmo", vectors=parts / "glove.txt", settings=changes)
    result = bertkit.finetune(task, model=model, output=run, lr=1e-2, **QUICK)
    assert {name: score.value for name, score in bertkit.evaluate(run).scores.items()} == result.best.scores
    assert ModelFolder.open(run).config == ModelFolder.open(model).config
    before, after = (
        ModelFolder.open(model).load_encoder().state_dict(),
        ModelFolder.open(run).load_encoder().state_dict(),
    )
    elmo = ModelFolder.open(parts / "elmo").load_encoder().state_dict()
    copied = {"words.vectors.weight", *(f"words.elmo.{name}" for name in elmo)}
    assert {name for name, value in after.items() if torch.equal(value, before[name])} == copied
    assert all(torch.equal(after[f"words.elmo.{name}"], value) for name, value in elmo.items())


@pytest.mark.parametrize("name", ["esim", "bidaf"])
def test_published_configurations_with_vectors_and_with_elmo(name: str, parts: Path, tmp_path: Path) -> None:
    """With vectors alone, and with ELMo: ESIM then reads ELMo only, BiDAF reads both."""
    tokenizer = ModelFolder.open(parts / "elmo").tokenizer
    assert isinstance(tokenizer, words.WordLevel)
    plain = ModelFolder.open(
        build_word_model(name, tmp_path / "plain", vectors=parts / "glove.txt", words=tokenizer)
    ).load_encoder()
    vectors = parts / "glove.txt" if name == "bidaf" else None
    with_elmo = ModelFolder.open(
        build_word_model(name, tmp_path / "elmo", elmo=parts / "elmo", vectors=vectors)
    ).load_encoder()
    assert isinstance(plain, WordEncoder)
    assert isinstance(with_elmo, WordEncoder)
    assert (plain.words.width, with_elmo.words.width) == {"esim": (13, 12), "bidaf": (113, 125)}[name]
    assert plain.hidden_size == {"esim": 300, "bidaf": 1200}[name]


def test_each_seed_initialises_what_was_not_copied(parts: Path, endings: FileTask, tmp_path: Path) -> None:
    """Copied weights are the same for every seed."""
    model = build_word_model("esim", tmp_path / "esim", elmo=parts / "elmo", settings={"hidden_size": 7})
    found = []
    for number, seed in enumerate((3, 3, 4)):
        bertkit.finetune(endings, model=model, output=tmp_path / str(number), first_seed=seed, lr=0.0, **QUICK)
        found.append(ModelFolder.open(tmp_path / str(number)).load_encoder().state_dict())
    first, again, other = found
    assert all(torch.equal(value, again[name]) for name, value in first.items())
    lstms = {name for name in first if name.startswith(("encoding", "composition"))}
    assert {name for name, value in first.items() if not torch.equal(value, other[name])} == lstms | {
        "projection.weight",
        "output.weight",
    }
