"""Fine-tuning of GPT: its three additional special tokens, every type of task, the auxiliary language model."""

from __future__ import annotations

import csv
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.checkpoint.transformers_folders import reconfigure, rewrite
from tests.tiny_gpt import build_gpt
from tests.tiny_runs import WORDS
from torch import Tensor

import bertkit
from bertkit.batch import EncoderOutput
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.checkpoint.save_model import save_model
from bertkit.data.features import collate
from bertkit.encoders import gpt
from bertkit.errors import BertkitError
from bertkit.inference.pipeline import Pipeline
from bertkit.model import Model
from bertkit.runs import read_metrics
from bertkit.storage.atomic import read_json
from bertkit.task_types import FileTask, TagExample, TaggingTask, TextClassificationTask, TextExample
from bertkit.tasks.glue import mrpc, sst2
from bertkit.tasks.swag import swag
from bertkit.text import bpe

pytestmark = pytest.mark.usefixtures("no_pictures", "without_shape_checks")

QUICK: dict[str, Any] = {"epochs": 1, "batch_size": 13, "progress": "quiet"}


def write_table(path: Path, columns: tuple[str, ...] = ("review",)) -> Path:
    generator = random.Random(7)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow((*columns, "label"))
        for row in range(67):
            writer.writerow((*(" ".join(generator.choices(WORDS, k=5)) for _ in columns), ("bad", "good")[row % 2]))
    return path


def weights(run: Path) -> dict[str, Tensor]:
    found = load_file(run / "model" / "model.safetensors")
    return {name.removeprefix("transformer."): value for name, value in found.items()}


def test_a_published_model_is_finetuned_saved_and_loaded(published: Path, tmp_path: Path) -> None:
    table, run = write_table(tmp_path / "reviews.csv"), tmp_path / "run"
    bertkit.finetune(table, model=published, output=run, lr=1e-3, **QUICK)
    assert ModelFolder.open(run).config.vocab_size == ModelFolder.open(published).config.vocab_size + 3
    assert ModelFolder.open(run).tokenizer.fingerprint == ModelFolder.open(published).tokenizer.fingerprint
    assert bertkit.load(run).classify("early winter river").label in ("bad", "good")
    again = bertkit.finetune(table, model=run, output=tmp_path / "again", lr=0.0, **QUICK)
    assert torch.equal(weights(tmp_path / "again")["tokens_embed.weight"], weights(run)["tokens_embed.weight"])
    assert again.best.scores == {name: score.value for name, score in bertkit.evaluate(run).scores.items()}


def test_a_tokenizer_with_too_many_subwords_is_refused(published: Path) -> None:
    table = load_file(published / "model.safetensors")["tokens_embed.weight"]
    rewrite(published, **{"tokens_embed.weight": table[:-1]})
    reconfigure(published, vocab_size=len(table) - 1)
    with pytest.raises(BertkitError, match="Use the tokenizer that the model was trained with"):
        _ = ModelFolder.open(published).tokenizer


def test_only_heads_learn_when_layer_decay_is_near_zero(left_to_right: Path, tmp_path: Path) -> None:
    before = load_file(left_to_right / "model.safetensors")
    table = write_table(tmp_path / "reviews.csv")
    bertkit.finetune(table, model=left_to_right, output=tmp_path / "run", lr=1e-2, layer_decay=1e-30, **QUICK)
    after = weights(tmp_path / "run")
    assert all(torch.allclose(value, after[name], atol=1e-9) for name, value in before.items())


def test_tags_do_not_depend_on_later_words(left_to_right: Path) -> None:
    encoder, tokenizer, seen = build_gpt(left_to_right), ModelFolder.open(left_to_right).tokenizer, list[Tensor]()
    encoder.embeddings.register_forward_hook(lambda module, inputs, states: seen.append(states))
    task = TaggingTask(name="tags", labels=("O", "B-x", "I-x"))
    examples = [TagExample("1", tuple(WORDS[:count]), None) for count in (7, 3)]
    batch = collate([each for one in examples for each in task.encode(one, tokenizer)], pad_id=tokenizer.pad_id)
    logits = Model(encoder, task.objectives(encoder)).eval()(batch)["tags"]["logits"]
    for row, position in batch.attention_mask.nonzero().tolist():
        (gradient,) = torch.autograd.grad(logits[row, position].sin().sum(), seen, retain_graph=True)
        depends = gradient.abs().sum(dim=-1) > 0
        assert depends[row, : position + 1].all()
        assert int(depends.sum()) == position + 1


def test_regression_multi_label_tagging_and_question_answering(left_to_right: Path, tmp_path: Path) -> None:
    """Classes and multiple choice are tested on real data below."""
    texts = [" ".join(WORDS[position : position + 3]) for position in range(7)] * 3

    def finetune(name: str, content: str, *settings: str) -> Pipeline:
        (tmp_path / name).write_text(content, encoding="utf-8")
        run = tmp_path / f"{name}.run"
        bertkit.finetune(tmp_path / name, model=left_to_right, output=run, dev=tmp_path / name, set=settings, **QUICK)
        return bertkit.load(run)

    numbers = finetune("numbers.csv", "text,label\n" + "".join(f"{text},{len(text) / 3:.3f}\n" for text in texts))
    assert isinstance(numbers.predict(["early garden"])[0].label, float)
    labels = ("long;dull", "long", "dull", "[]")
    cells = "".join(f"{text},{labels[position % 4]}\n" for position, text in enumerate(texts))
    assert isinstance(finetune("labels.csv", f"text,label\n{cells}").predict(["early garden"])[0].label, tuple)
    tagged = [[f"{word} {'B-x' if word == 'stone' else 'O'}" for word in text.split()] for text in texts]
    tags = "\n\n".join("\n".join(lines) for lines in tagged)
    assert isinstance(finetune("tags.conll", tags).tag("river stone early"), list)
    rows = [json.dumps({"question": "which", "context": text, "answer": text.split()[1]}) for text in texts]
    answering = finetune("spans.jsonl", "\n".join(rows), "task.max_length=37", "task.stride=5")
    answer = answering.answer("which", "silver bridge river")
    assert answer.text
    assert "silver bridge river"[answer.start : answer.end] == answer.text


def test_the_language_model_loss_falls_beside_the_task(left_to_right: Path, tmp_path: Path) -> None:
    table, settings = write_table(tmp_path / "reviews.csv"), ["lm_loss_weight=0.5"]
    options = {**QUICK, "epochs": 5}
    bertkit.finetune(table, model=left_to_right, output=tmp_path / "run", lr=1e-2, set=settings, **options)
    steps = [each for each in read_metrics(tmp_path / "run" / "metrics.jsonl") if each["kind"] == "train"]
    assert {"class", "clm"} <= steps[0].keys()
    assert steps[-1]["clm"] < steps[0]["clm"] - 0.5
    assert set(load_file(tmp_path / "run" / "model" / "model.safetensors")) == {
        *(f"transformer.{name}" for name in load_file(left_to_right / "model.safetensors")),
        "classifier.weight",
        "classifier.bias",
    }
    assert bertkit.load(tmp_path / "run").classify("early winter river").label in ("bad", "good")


def test_predictions_do_not_depend_on_the_order_of_a_pair(left_to_right: Path, tmp_path: Path) -> None:
    table, run = write_table(tmp_path / "pairs.csv", ("first", "second")), tmp_path / "run"
    settings = ["task.both_orders=true", "lm_loss_weight=0.5"]
    bertkit.finetune(
        table, model=left_to_right, output=run, lr=1e-2, text="first", pair="second", set=settings, **QUICK
    )
    pairs = [("early winter", "silver bridge river"), ("stone", "music letter seven garden market")]
    loaded = bertkit.load(run)
    assert isinstance(loaded.task, TextClassificationTask)
    assert loaded.task.both_orders
    for one, other in zip(loaded.classify(pairs), loaded.classify([pair[::-1] for pair in pairs]), strict=True):
        assert one == other
    scores = bertkit.evaluate(run).scores
    assert scores["accuracy"].value == read_json(run / "results.json")["best"]["scores"]["accuracy"]


def test_both_orders_of_a_pair_are_two_rows_whose_states_are_summed(left_to_right: Path) -> None:
    tokenizer = ModelFolder.open(left_to_right).tokenizer
    start, between, end = tokenizer.start_id, tokenizer.between_ids, tokenizer.end_id
    a, b = (tokenizer.encode(text).ids for text in ("river", "early garden"))
    task = replace(mrpc, both_orders=True, max_length=3 + len(a) + len(b))
    (feature,) = task.encode(TextExample("1", "river", "early garden music"), tokenizer)
    assert feature.input_ids.tolist() == [[start, *a, *between, *b, end], [start, *b, *between, *a, end]]
    assert feature.num_truncated == len(tokenizer.encode("music").ids)
    encoder = build_gpt(left_to_right).eval()
    head = task.objectives(encoder)["class"].eval()
    batch = collate([feature], pad_id=0)
    states = encoder(batch)
    summed = EncoderOutput(hidden_states=states.hidden_states[:1], pooled=states.pooled.sum(dim=0, keepdim=True))
    (logits,) = Model(encoder, {"class": head}).eval()(batch)["class"]["logits"]
    torch.testing.assert_close(
        logits, head(summed, replace(batch, rows_per_feature=None))["logits"][0], rtol=0, atol=1e-6
    )


@pytest.mark.parametrize(
    ("task", "changes", "message"),
    [
        (sst2, {}, "both_orders is for pairs of texts; an example of glue:sst2 is one text"),
        (mrpc, {"stride": 7}, "both_orders and stride cannot be combined"),
    ],
)
def test_both_orders_need_a_pair_without_windows(
    task: TextClassificationTask, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(BertkitError, match=message):
        replace(task, both_orders=True, **changes)


def test_options_take_precedence_over_a_profile(left_to_right: Path, tmp_path: Path) -> None:
    table = write_table(tmp_path / "reviews.csv")
    options = {**QUICK, "batch_size": 37}
    bertkit.finetune(table, model=left_to_right, output=tmp_path / "run", profile="gpt", **options)
    settings = {each.path: each for each in bertkit.config_show(tmp_path / "run")}
    assert (settings["lm_loss_weight"].value, settings["lm_loss_weight"].origin) == (0.5, "--profile gpt")
    assert (settings["batch_size"].value, settings["batch_size"].origin) == (37, "--batch-size")
    assert (settings["optimizer.lr"].value, settings["epochs"].value) == (6.25e-5, 1)


@pytest.fixture(scope="module")
def real_vocabulary(tmp_path_factory: pytest.TempPathFactory, data_folder: Path) -> Path:
    """Random weights with the published vocabulary of 40,478 subwords."""
    folder = tmp_path_factory.mktemp("model") / "gpt"
    tokenizer = bpe.BPE.load(data_folder / "vocab" / "gpt1-bpe")
    torch.manual_seed(7)
    encoder = gpt.Gpt(gpt.size("2/32/2", vocab_size=tokenizer.vocab_size, dropout=0.0, attention_dropout=0.0))
    save_model(folder, Model(encoder, {}), tokenizer, metadata={})
    return folder


@pytest.mark.parametrize("task", ["mrpc", "swag"])
def test_it_overfits_a_few_rows_of_real_tasks(
    task: str, real_vocabulary: Path, data_folder: Path, tmp_path: Path
) -> None:
    train = data_folder / {"mrpc": "glue/MRPC/train.tsv", "swag": "swag/codah-train.csv"}[task]
    rows = train.read_text(encoding="utf-8").splitlines(keepends=True)[:38]
    few = tmp_path / train.name
    few.write_text("".join(rows), encoding="utf-8")
    tasks: dict[str, FileTask] = {"mrpc": mrpc, "swag": swag}
    result = bertkit.finetune(
        tasks[task].with_files(train=[few], dev=[few]),
        model=real_vocabulary,
        output=tmp_path / "run",
        lr=3e-3,
        batch_size=37,
        epochs=30,
        progress="quiet",
        set=["schedule.decay=constant", *(["task.both_orders=true"] if task == "mrpc" else [])],
    )
    assert result.best.scores["accuracy"] > 0.9
