"""Word models: copied weights, initialisation of the others, and fine-tuning."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.checkpoint.save_model import save_model
from bertkit.data.prepare import prepare
from bertkit.encoder_types.words import WordEncoder
from bertkit.encoders.elmo import Elmo, ElmoConfig
from bertkit.encoders.tagger import Tagger
from bertkit.errors import BertkitError
from bertkit.finetuning.record import FinetuneRun
from bertkit.finetuning.run import finetune
from bertkit.finetuning.starting_point import build_encoder
from bertkit.finetuning.word_models import build_word_model, list_word_models
from bertkit.inference.pipeline import load
from bertkit.model import Model
from bertkit.report.progress import Progress
from bertkit.tasks.conll2003 import conll2003
from bertkit.text.words import WordLevel, train
from bertkit.training.optimizer import OptimizerConfig

WORD_LENGTH = 9
ELMO = ElmoConfig(
    word_length=WORD_LENGTH,
    character_width=3,
    filters=((1, 4), (3, 2)),
    cell_size=11,
    projection_size=5,
    num_highways=1,
)
SMALL = {"hidden_size": 7, "num_layers": 1, "dropout": 0.0}
PLACES = ["river", "garden", "market", "bridge"]
PEOPLE = ["Miller", "Stone", "Winter"]


@pytest.fixture(scope="module")
def words() -> WordLevel:
    return train([" ".join(["the", "saw", "near", *PLACES, *PEOPLE])], word_length=WORD_LENGTH)


@pytest.fixture(scope="module")
def elmo(words: WordLevel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "elmo"
    save_model(folder, Model(Elmo(ELMO), {}), words, metadata={})
    return folder


@pytest.fixture(scope="module")
def glove(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("vectors") / "glove.txt"
    path.write_text("the 1 2 3 4 5\nriver 5 4 3 2 1\nmiller 0 1 0 1 0\n", encoding="utf-8")
    return path


@pytest.fixture
def folder(elmo: Path, glove: Path, tmp_path: Path) -> Path:
    return build_word_model("tagger", tmp_path / "tagger", elmo=elmo, vectors=glove, settings=SMALL)


def weights(encoder: torch.nn.Module) -> dict[str, Tensor]:
    return {name: weight.clone() for name, weight in encoder.state_dict().items()}


def test_weights_of_elmo_and_vectors_are_copied(folder: Path, elmo: Path, words: WordLevel) -> None:
    encoder = ModelFolder.open(folder).load_encoder()
    assert isinstance(encoder, Tagger)
    assert encoder.words.vectors is not None and encoder.words.elmo is not None
    (river,) = words.tokens_to_ids(["river"])
    assert encoder.words.vectors.weight[river].tolist() == [5, 4, 3, 2, 1]
    original = ModelFolder.open(elmo).load_encoder().state_dict()
    assert all(torch.equal(weight, original[name]) for name, weight in encoder.words.elmo.state_dict().items())
    assert ModelFolder.open(folder).config.words.mixture_l2 == 0.1, "as the published tagger"
    assert ModelFolder.open(folder).tokenizer.fingerprint == words.fingerprint
    metadata = ModelFolder.open(folder).metadata
    assert metadata["kind"] == "word-model"
    assert metadata["vectors"]["found"] == 3
    assert metadata["vectors"]["trained"] is False


def test_a_model_without_elmo_has_no_input_for_it(words: WordLevel, glove: Path, tmp_path: Path) -> None:
    build_word_model("tagger", tmp_path / "m", vectors=glove, words=words, settings=SMALL)
    encoder = ModelFolder.open(tmp_path / "m").load_encoder()
    assert isinstance(encoder, WordEncoder)
    assert encoder.words.width == 5 + 128, "the vector and the published network of characters"
    assert encoder.words.elmo is None


def test_each_seed_initialises_all_weights_that_were_not_copied(folder: Path, tmp_path: Path) -> None:
    run = FinetuneRun(task=conll2003, model=folder, output=tmp_path / "run")
    torch.manual_seed(1)
    one = weights(build_encoder(run, ModelFolder.open(run.model)))
    torch.manual_seed(2)
    other = weights(build_encoder(run, ModelFolder.open(run.model)))
    same = {name for name, weight in one.items() if torch.equal(weight, other[name])}
    copied = {name for name in one if name.startswith(("words.elmo.", "words.vectors."))}
    assert same == copied | {"words.mixture.weights", "words.mixture.gamma"}
    with pytest.raises(BertkitError, match="leave out gradient_checkpointing"):
        build_encoder(replace(run, gradient_checkpointing=True), ModelFolder.open(run.model))


def test_vectors_can_be_trained_on_a_corpus(words: WordLevel, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("the river near the bridge\n\nMiller saw Stone\n" * 9, encoding="utf-8")
    prepare([tmp_path / "a.txt"], tokenizer=words, output=tmp_path / "data", heldout=0.0)
    build_word_model("tagger", tmp_path / "m", vectors=tmp_path / "data", settings=SMALL)
    assert ModelFolder.open(tmp_path / "m").config.words.vector_size == 50, "as the published tagger"
    assert ModelFolder.open(tmp_path / "m").metadata["vectors"]["trained"] is True
    others = train(["other words"], word_length=WORD_LENGTH)
    with pytest.raises(BertkitError, match="prepared with another vocabulary"):
        build_word_model("tagger", tmp_path / "n", vectors=tmp_path / "data", words=others)


def write_sentences(path: Path, count: int, generator: random.Random) -> None:
    rows = []
    for _ in range(count):
        rows += [
            f"{generator.choice(PEOPLE)} N N B-PER",
            "saw V V O",
            "the D D O",
            f"{generator.choice(PLACES)} N N B-LOC",
            "",
        ]
    path.write_text("\n".join(rows), encoding="utf-8")


@pytest.mark.usefixtures("no_pictures")
def test_the_tagger_learns_and_keeps_elmo_frozen(folder: Path, tmp_path: Path) -> None:
    generator = random.Random(7)
    for split in conll2003.files.splits.values():
        write_sentences(tmp_path / split.files[0], 20, generator)
    task = replace(conll2003, crf=True).at(tmp_path)
    rate = OptimizerConfig(lr=0.03, bias_correction=True, weight_decay=0.0, clip_norm=5.0)
    run = FinetuneRun(task=task, model=folder, output=tmp_path / "run", epochs=15, batch_size=7, optimizer=rate)
    result = finetune(run, Progress("quiet"))
    assert result.mean > 0.9
    found = load(tmp_path / "run").tag("Winter saw the market")
    assert [(entity.type, entity.text) for entity in found] == [("PER", "Winter"), ("LOC", "market")]
    kept = ModelFolder.open(tmp_path / "run").load_model(task.objectives).encoder
    before = ModelFolder.open(folder).load_encoder()
    assert isinstance(kept, Tagger) and isinstance(before, Tagger)
    frozen = [encoder.words.elmo.state_dict() for encoder in (kept, before) if encoder.words.elmo is not None]
    assert all(torch.equal(weight, frozen[1][name]) for name, weight in frozen[0].items())


def test_invalid_word_models_are_refused(elmo: Path, glove: Path, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match=r'no word model named "taggr"\. Did you mean "?tagger'):
        build_word_model("taggr", tmp_path / "m", elmo=elmo)
    with pytest.raises(BertkitError, match="is not an ELMo"):
        build_word_model("tagger", tmp_path / "m", elmo=folder)
    with pytest.raises(BertkitError, match="needs a vocabulary of words"):
        build_word_model("tagger", tmp_path / "m", vectors=glove)
    with pytest.raises(BertkitError, match='tagger has no setting "hidden"'):
        build_word_model("tagger", tmp_path / "m", elmo=elmo, settings={"hidden": 7})
    assert "bert" not in list_word_models()
