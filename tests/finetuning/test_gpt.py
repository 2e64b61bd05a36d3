"""GPT fine-tuned: from the pieces that it gets for it to answers on real data."""

from __future__ import annotations

import csv
import json
import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.checkpoint.theirs import reconfigure, rewrite, save_as_theirs
from torch import Tensor

from bertkit import api
from bertkit.batch import Batch, EncoderOutput
from bertkit.checkpoint.model_folder import ModelFolder, save_model
from bertkit.data.features import collate
from bertkit.encoders import gpt
from bertkit.errors import BertkitError
from bertkit.finetuning.record import FinetuneRun
from bertkit.finetuning.starting_point import add_language_model, build_encoder
from bertkit.inference.pipeline import Pipeline
from bertkit.model import Model
from bertkit.objectives.clm import CausalLanguageModel, label_next
from bertkit.runs import read_metrics
from bertkit.storage.atomic import read_json
from bertkit.task_types import TaggingTask, TextClassificationTask, TextExample
from bertkit.task_types.tagging import TagExample
from bertkit.tasks.glue import mrpc, sst2
from bertkit.tasks.swag import swag
from bertkit.text import bpe
from bertkit.training.fit import accumulate_gradients

WORDS = ["river", "stone", "early", "garden", "music", "letter", "winter", "seven", "market", "silver", "bridge"]

pytestmark = pytest.mark.usefixtures("no_pictures")

QUICK: dict[str, Any] = {"epochs": 1, "batch_size": 13, "progress": "quiet"}


@pytest.fixture(scope="module")
def left_to_right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "gpt"
    tokenizer = bpe.train([" ".join(WORDS)] * 7, vocab_size=67)
    torch.manual_seed(7)
    encoder = gpt.Gpt(gpt.size("3/12/2", vocab_size=tokenizer.vocab_size, max_positions=37))
    save_model(folder, Model(encoder, {}), tokenizer, metadata={})
    return folder


@pytest.fixture
def published(tmp_path: Path, left_to_right: Path) -> Path:
    """As OpenAI published it: without the three last pieces, of which neither file nor table knows."""
    encoder, tokenizer = ModelFolder.open(left_to_right).load_encoder(), ModelFolder.open(left_to_right).tokenizer
    folder = save_as_theirs(tmp_path, Model(encoder, {}), tokenizer)
    _, start, delimiter, extract = tokenizer.tokens_to_ids(bpe.SpecialTokens())  # type: ignore[attr-defined]
    assert (start, delimiter, extract) == (1, 2, 3), "they are the first that are learned, and have to become the last"
    keep = [0, *range(4, tokenizer.vocab_size)]
    pieces = [tokenizer.id_to_token(number) for number in keep]
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    (folder / "vocab.json").write_text(repr({piece: place for place, piece in enumerate(pieces)}).replace("'", '"'))
    rewrite(folder, **{"tokens_embed.weight": load_file(folder / "model.safetensors")["tokens_embed.weight"][keep]})
    reconfigure(folder, vocab_size=len(keep))
    return folder


def write_table(path: Path, columns: tuple[str, ...] = ("review",)) -> Path:
    draw = random.Random(7)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow((*columns, "label"))
        for row in range(67):
            writer.writerow((*(" ".join(draw.choices(WORDS, k=5)) for _ in columns), ("bad", "good")[row % 2]))
    return path


def weights(run: Path) -> dict[str, Tensor]:
    found = load_file(run / "model" / "model.safetensors")
    return {name.removeprefix("transformer."): value for name, value in found.items()}


def begin(model: Path, **changes: Any) -> gpt.Gpt:
    run = FinetuneRun(task=sst2, model=model, output=Path("run"), **changes)
    encoder = build_encoder(run, ModelFolder.open(model))
    assert isinstance(encoder, gpt.Gpt)
    return encoder


def test_a_published_folder_gets_three_rows_and_keeps_the_others(published: Path) -> None:
    old = ModelFolder.open(published).load_encoder()
    assert isinstance(old, gpt.Gpt)
    drawn = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        new = begin(published)
        assert new.config.vocab_size == old.config.vocab_size + 3
        for name, weight in old.state_dict().items():
            assert torch.equal(new.state_dict()[name][: len(weight)], weight), name
        drawn.append(new.embeddings.word.weight[-3:].detach())
        assert 0 < drawn[-1].abs().max() <= 0.04
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


def test_a_published_folder_is_fine_tuned_saved_and_asked(published: Path, tmp_path: Path) -> None:
    table, run = write_table(tmp_path / "reviews.csv"), tmp_path / "run"
    api.finetune(table, model=published, output=run, lr=1e-3, **QUICK)
    assert ModelFolder.open(run).config.vocab_size == ModelFolder.open(published).config.vocab_size + 3
    assert ModelFolder.open(run).tokenizer.fingerprint == ModelFolder.open(published).tokenizer.fingerprint
    assert api.load(run).classify("early winter river").label in ("bad", "good")
    again = api.finetune(table, model=run, output=tmp_path / "again", lr=0.0, **QUICK)
    assert torch.equal(weights(tmp_path / "again")["tokens_embed.weight"], weights(run)["tokens_embed.weight"])
    assert again.best.scores == {name: score.value for name, score in api.evaluate(run).scores.items()}


def test_more_pieces_than_fine_tuning_adds_are_refused(published: Path) -> None:
    table = load_file(published / "model.safetensors")["tokens_embed.weight"]
    rewrite(published, **{"tokens_embed.weight": table[:-1]})
    reconfigure(published, vocab_size=len(table) - 1)
    with pytest.raises(BertkitError, match="they do not belong together"):
        _ = ModelFolder.open(published).tokenizer


def test_fresh_weights_and_fresh_layers(left_to_right: Path) -> None:
    before = ModelFolder.open(left_to_right).load_encoder().state_dict()
    torch.manual_seed(8)
    for changes, kept in ({"from_scratch": True}, 0), ({"reinit_layers": 1}, 3), ({}, 4):
        encoder = begin(left_to_right, **changes)
        for name, weight in encoder.state_dict().items():
            if weight.ndim > 1:
                assert torch.equal(weight, before[name]) == (encoder.depth(name) < kept), (changes, name)
    with pytest.raises(BertkitError, match=r"reinit_layers is 4; .*gpt has 3"):
        begin(left_to_right, reinit_layers=4)


def test_with_rates_of_nothing_below_them_the_heads_alone_learn(left_to_right: Path, tmp_path: Path) -> None:
    before = load_file(left_to_right / "model.safetensors")
    table = write_table(tmp_path / "reviews.csv")
    api.finetune(table, model=left_to_right, output=tmp_path / "run", lr=1e-2, layer_decay=1e-30, **QUICK)
    after = weights(tmp_path / "run")
    assert all(torch.allclose(value, after[name], atol=1e-9) for name, value in before.items())


def test_no_tag_depends_on_a_later_word(left_to_right: Path) -> None:
    encoder, tokenizer, seen = begin(left_to_right), ModelFolder.open(left_to_right).tokenizer, list[Tensor]()
    encoder.embeddings.register_forward_hook(lambda module, inputs, states: seen.append(states))
    task = TaggingTask(name="tags", labels=("O", "B-x", "I-x"))
    examples = [TagExample("1", tuple(WORDS[:count]), None) for count in (7, 3)]
    batch = collate([each for one in examples for each in task.encode(one, tokenizer)], pad_id=tokenizer.pad_id)
    logits = Model(encoder, task.objectives(encoder)).eval()(batch)["tags"]["logits"]
    for row, place in batch.attention_mask.nonzero().tolist():
        (gradient,) = torch.autograd.grad(logits[row, place].sin().sum(), seen, retain_graph=True)
        depends = gradient.abs().sum(dim=-1) > 0
        assert depends[row, : place + 1].all()
        assert int(depends.sum()) == place + 1


def test_every_other_shape_of_task_is_learned_and_answered(left_to_right: Path, tmp_path: Path) -> None:
    """A number, several labels, tags and passages; classes and choices are learned from real data below."""
    texts = [" ".join(WORDS[place : place + 3]) for place in range(7)] * 3

    def finetune(name: str, content: str, *settings: str) -> Pipeline:
        (tmp_path / name).write_text(content, encoding="utf-8")
        run = tmp_path / f"{name}.run"
        api.finetune(tmp_path / name, model=left_to_right, output=run, dev=tmp_path / name, set=settings, **QUICK)
        return api.load(run)

    numbers = finetune("numbers.csv", "text,label\n" + "".join(f"{text},{len(text) / 3:.3f}\n" for text in texts))
    assert isinstance(numbers.predict(["early garden"])[0].label, float)
    labels = ("long;dull", "long", "dull", "[]")
    cells = "".join(f"{text},{labels[place % 4]}\n" for place, text in enumerate(texts))
    assert isinstance(finetune("labels.csv", f"text,label\n{cells}").predict(["early garden"])[0].label, tuple)
    tagged = [[f"{word} {'B-x' if word == 'stone' else 'O'}" for word in text.split()] for text in texts]
    tags = "\n\n".join("\n".join(lines) for lines in tagged)
    assert isinstance(finetune("tags.conll", tags).tag("river stone early"), list)
    rows = [json.dumps({"question": "which", "context": text, "answer": text.split()[1]}) for text in texts]
    asked = finetune("spans.jsonl", "\n".join(rows), "task.max_length=37", "task.stride=5")
    answer = asked.answer("which", "silver bridge river")
    assert answer.text
    assert "silver bridge river"[answer.start : answer.end] == answer.text


def gradients(model: Model, batch: Batch) -> dict[str, Tensor]:
    model.eval().zero_grad()
    accumulate_gradients(model, [batch], model.counts(batch), torch.device("cpu"), "float32")
    return {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}


def test_the_gradient_is_that_of_the_task_and_so_much_of_the_language_model(left_to_right: Path) -> None:
    encoder, tokenizer = begin(left_to_right), ModelFolder.open(left_to_right).tokenizer
    task = sst2.objectives(encoder)
    examples = [TextExample(str(count), " ".join(WORDS[:count]), label="positive") for count in (3, 7, 5)]
    features = [each for one in examples for each in sst2.encode(one, tokenizer)]
    batch = label_next(collate(features, pad_id=tokenizer.pad_id))
    alone = gradients(Model(encoder, task), batch)
    pieces = gradients(Model(encoder, {"clm": CausalLanguageModel(encoder.embeddings.word)}), batch)
    asked = Model(encoder, task)
    model = add_language_model(asked, 0.37)
    assert model.state_dict().keys() == asked.state_dict().keys()
    for name, gradient in gradients(model, batch).items():
        expected = alone.get(name, torch.zeros(())) + 0.37 * pieces.get(name, torch.zeros(()))
        torch.testing.assert_close(gradient, expected, rtol=1e-5, atol=1e-8)
    losses = accumulate_gradients(model, [batch], model.counts(batch), torch.device("cpu"), "float32")
    assert losses["clm"] == pytest.approx(math.log(tokenizer.vocab_size), rel=0.01)
    assert list(asked(batch)) == ["class"]


def test_a_run_learns_the_pieces_beside_its_task(left_to_right: Path, tmp_path: Path) -> None:
    table, settings = write_table(tmp_path / "reviews.csv"), ["lm_loss_weight=0.5"]
    options = {**QUICK, "epochs": 5}
    api.finetune(table, model=left_to_right, output=tmp_path / "run", lr=1e-2, set=settings, **options)
    steps = [each for each in read_metrics(tmp_path / "run" / "metrics.jsonl") if each["kind"] == "train"]
    assert {"class", "clm"} <= steps[0].keys()
    assert steps[-1]["clm"] < steps[0]["clm"] - 0.5
    assert set(load_file(tmp_path / "run" / "model" / "model.safetensors")) == {
        *(f"transformer.{name}" for name in load_file(left_to_right / "model.safetensors")),
        "classifier.weight",
        "classifier.bias",
    }
    assert api.load(tmp_path / "run").classify("early winter river").label in ("bad", "good")


def test_a_model_that_reads_both_ways_is_asked_for_no_next_piece(model: Path, table: Path, tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match="lm_loss_weight is for a model that is trained and reads from left to"):
        api.finetune(table, model=model, output=tmp_path / "run", set=["lm_loss_weight=0.5"], **QUICK)
    with pytest.raises(BertkitError, match=r"lm_loss_weight is -0\.5; it must be 0 or more"):
        api.finetune(table, model=model, output=tmp_path / "run", set=["lm_loss_weight=-0.5"], **QUICK)


def test_a_pair_in_both_orders_is_told_the_same_when_it_changes_over(left_to_right: Path, tmp_path: Path) -> None:
    table, run = write_table(tmp_path / "pairs.csv", ("first", "second")), tmp_path / "run"
    settings = ["task.both_orders=true", "lm_loss_weight=0.5"]
    api.finetune(table, model=left_to_right, output=run, lr=1e-2, text="first", pair="second", set=settings, **QUICK)
    pairs = [("early winter", "silver bridge river"), ("stone", "music letter seven garden market")]
    asked = api.load(run)
    assert isinstance(asked.task, TextClassificationTask)
    assert asked.task.both_orders
    for one, other in zip(asked.classify(pairs), asked.classify([pair[::-1] for pair in pairs]), strict=True):
        assert one == other
    scores = api.evaluate(run).scores
    assert scores["accuracy"].value == read_json(run / "results.json")["best"]["scores"]["accuracy"]


def test_both_orders_are_two_rows_of_one_feature(left_to_right: Path) -> None:
    tokenizer = ModelFolder.open(left_to_right).tokenizer
    start, between, end = tokenizer.start_id, tokenizer.between_ids, tokenizer.end_id
    a, b = (tokenizer.encode(text).ids for text in ("river", "early garden"))
    task = replace(mrpc, both_orders=True, max_length=3 + len(a) + len(b))
    (feature,) = task.encode(TextExample("1", "river", "early garden music"), tokenizer)
    assert feature.input_ids.tolist() == [[start, *a, *between, *b, end], [start, *b, *between, *a, end]]
    assert feature.num_truncated == len(tokenizer.encode("music").ids)
    encoder = begin(left_to_right).eval()
    head = task.objectives(encoder)["class"].eval()
    batch = collate([feature], pad_id=0)
    states = encoder(batch)
    summed = EncoderOutput(hidden_states=states.hidden_states[:1], pooled=states.pooled.sum(dim=0, keepdim=True))
    (logits,) = Model(encoder, {"class": head}).eval()(batch)["class"]["logits"]
    torch.testing.assert_close(logits, head(summed, replace(batch, choices=None))["logits"][0], rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("task", "changes", "message"),
    [
        (sst2, {}, "both_orders is for pairs that are read whole; glue:sst2 is about one text"),
        (mrpc, {"stride": 7}, "glue:mrpc is read in windows, which have a stride"),
    ],
)
def test_both_orders_of_no_pair_are_refused(
    task: TextClassificationTask, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(BertkitError, match=message):
        replace(task, both_orders=True, **changes)


def test_a_profile_gives_way_to_what_is_typed(left_to_right: Path, tmp_path: Path) -> None:
    table = write_table(tmp_path / "reviews.csv")
    options = {**QUICK, "batch_size": 37}
    api.finetune(table, model=left_to_right, output=tmp_path / "run", profile="gpt", **options)
    settings = {each.path: each for each in api.config_show(tmp_path / "run")}
    assert (settings["lm_loss_weight"].value, settings["lm_loss_weight"].origin) == (0.5, "--profile gpt")
    assert (settings["batch_size"].value, settings["batch_size"].origin) == (37, "--batch-size")
    assert (settings["optimizer.lr"].value, settings["epochs"].value) == (6.25e-5, 1)


@pytest.fixture(scope="module")
def real_vocabulary(tmp_path_factory: pytest.TempPathFactory, data_folder: Path) -> Path:
    """Random weights behind the published 40,478 pieces."""
    folder = tmp_path_factory.mktemp("model") / "gpt"
    tokenizer = bpe.BPE.load(data_folder / "vocab" / "gpt1-bpe")
    torch.manual_seed(7)
    encoder = gpt.Gpt(gpt.size("2/32/2", vocab_size=tokenizer.vocab_size, dropout=0.0, attention_dropout=0.0))
    save_model(folder, Model(encoder, {}), tokenizer, metadata={})
    return folder


@pytest.mark.parametrize("task", ["mrpc", "swag"])
def test_it_learns_the_rows_of_real_tasks_by_heart(
    task: str, real_vocabulary: Path, data_folder: Path, tmp_path: Path
) -> None:
    train = data_folder / {"mrpc": "glue/MRPC/train.tsv", "swag": "swag/codah-train.csv"}[task]
    rows = train.read_text(encoding="utf-8").splitlines(keepends=True)[:38]
    few = tmp_path / train.name
    few.write_text("".join(rows), encoding="utf-8")
    result = api.finetune(
        {"mrpc": mrpc, "swag": swag}[task].with_files(train=[few], dev=[few]),
        model=real_vocabulary,
        output=tmp_path / "run",
        lr=3e-3,
        batch_size=37,
        epochs=30,
        progress="quiet",
        set=["schedule.decay=constant", *(["task.both_orders=true"] if task == "mrpc" else [])],
    )
    assert result.best.scores["accuracy"] > 0.9
