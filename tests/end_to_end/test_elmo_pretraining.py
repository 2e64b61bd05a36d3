"""Pre-training of ELMo from text to a model folder: what it learns, what each direction sees, and a resume."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.interruptible_run import outcome
from tests.published import published_run

import bertkit
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.data.prepare import prepare
from bertkit.data.shards import Corpus
from bertkit.encoders.elmo import Elmo, ElmoConfig, size
from bertkit.errors import BertkitError
from bertkit.pretraining.job import build_job
from bertkit.pretraining.planning import PretrainPlan
from bertkit.pretraining.record import PretrainRun, pretraining_from_json
from bertkit.pretraining.run import pretrain, resume
from bertkit.report.progress import Progress
from bertkit.runs import read_metrics, read_run
from bertkit.text import words
from bertkit.training.optimizer import OptimizerConfig

SENTENCES = ["Seven wide rivers ran slowly.", "The old mill stood still.", "A miller counts coins.", "It was dawn."]
TEXTS = [" ".join(SENTENCES[number % 3 :] * (2 + number % 5)) for number in range(37)]


@pytest.fixture
def run(tmp_path: Path) -> PretrainRun:
    (tmp_path / "texts.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in TEXTS))
    tokenizer = words.train(TEXTS, vocab_size=99, word_length=9)
    prepare([tmp_path / "texts.jsonl"], tokenizer=tokenizer, output=tmp_path / "data", heldout=0.3)
    encoder = size("2/12/17", word_length=9, filters=((1, 4), (2, 9), (3, 8)))
    return published_run(
        tmp_path / "data",
        tmp_path / "run",
        encoder,
        steps=7,
        seq_length=5,
        batch_size=7,
        log_every=1,
        evaluate_every=7,
        precision="float32",
    )


def test_the_loss_falls_far_below_the_unigram_entropy(run: PretrainRun) -> None:
    adam = OptimizerConfig(lr=1e-2, bias_correction=True)
    result = pretrain(replace(run, steps=90, optimizer=adam, evaluate_every=90), Progress("quiet"))
    corpus = Corpus.open(run.data)
    counts = Counter(token for shard in corpus.shards for token in shard.tokens.tolist())
    sentences = sum(len(shard.sentence_offsets) - 1 for shard in corpus.shards)
    counts |= {-1: sentences, -2: sentences}
    total = sum(counts.values())
    entropy = -sum(count / total * math.log(count / total) for count in counts.values())
    assert result.heldout["bilm"] < entropy / 2
    assert result.heldout["bilm_perplexity"] == pytest.approx(math.exp(result.heldout["bilm"]))
    assert result.heldout["bilm_accuracy"] > 0.6


def test_a_resume_with_cell_states_is_bit_exact(run: PretrainRun) -> None:
    pretrain(replace(run, save_every=3), Progress("quiet"))
    expected = outcome(run.output)
    shutil.rmtree(run.output / "checkpoints" / "step-00000007")
    shutil.rmtree(run.output / "model")
    resume(run.output, Progress("quiet"))
    assert outcome(run.output) == expected


def test_rows_continue_from_batch_to_batch(run: PretrainRun) -> None:
    """In the forward direction, two consecutive batches are the same as one batch of twice the length."""
    job = build_job(run)
    encoder, source = job.state.model.encoder.eval(), job.phases[0].source
    assert isinstance(encoder, Elmo)
    assert encoder.stateful
    first, second = (source.batch(0, source.order(7, step)) for step in (0, 1))  # type: ignore[union-attr]
    encoder(first)
    states = encoder(second).hidden_states
    encoder.load_state({})
    whole = replace(
        first,
        input_ids=torch.cat([first.input_ids, second.input_ids], dim=1),
        segment_ids=torch.cat([first.segment_ids, second.segment_ids], dim=1),
        attention_mask=torch.cat([first.attention_mask, second.attention_mask], dim=1),
    )
    torch.testing.assert_close(states[..., :12], encoder(whole).hidden_states[:, 5:, :12], rtol=0, atol=1e-6)


def test_no_direction_sees_the_word_that_it_predicts(run: PretrainRun) -> None:
    """Changing later words changes no forward prediction, changing earlier words no backward prediction."""
    job = build_job(run)
    model, source = job.state.model.eval(), job.phases[0].source
    assert isinstance(model.encoder, Elmo)
    model.encoder.stateful = False
    batch = source.batch(0, np.arange(7))
    logits = model(batch)["bilm"]["logits"][: 7 * 5 * 2].view(7, 5, 2, -1)
    for position in range(5):
        for side, hidden in ((0, slice(position + 1, None)), (1, slice(None, position))):
            ids = batch.input_ids.clone()
            ids[:, hidden] = ids[:, hidden].flip(0)
            changed = model(replace(batch, input_ids=ids))["bilm"]["logits"][: 7 * 5 * 2].view(7, 5, 2, -1)
            torch.testing.assert_close(changed[:, position, side], logits[:, position, side], rtol=0, atol=1e-6)
            other = changed[:, position, 1 - side] - logits[:, position, 1 - side]
            assert bool(other.any()) == bool(ids[:, hidden].numel())


def test_evaluation_does_not_change_training(run: PretrainRun, tmp_path: Path) -> None:
    pretrain(run, Progress("quiet"))
    pretrain(replace(run, output=tmp_path / "other", evaluate_every=2), Progress("quiet"))
    one, other = (ModelFolder.open(folder).load_encoder().state_dict() for folder in (run.output, tmp_path / "other"))
    assert all(torch.equal(other[name], weight) for name, weight in one.items())


def test_the_model_folder_holds_an_elmo_and_its_vocabulary(run: PretrainRun) -> None:
    pretrain(run, Progress("quiet"))
    assert ModelFolder.open(run.output).load_encoder().config == run.encoder
    tokenizer = ModelFolder.open(run.output).tokenizer
    assert len(tokenizer.encode("An unheard mill").ids[1]) == 1 + 9
    assert "# ELMo 2/12/17" in (run.output / "model" / "README.md").read_text()


def test_the_published_settings(run: PretrainRun) -> None:
    assert (run.optimizer.kind, run.optimizer.lr) == ("adagrad", 0.2)
    # A norm of 10 and accumulators of 1 are those of a loss that is multiplied by the 20 tokens of a row.
    assert (run.optimizer.clip_norm, run.optimizer.initial_accumulator) == (10.0 / 20, 1.0 / 400)
    assert run.task.samples is None
    tokenizer = Corpus.open(run.data).load_tokenizer()
    assert run.task.targets == tokenizer.vocab_size


def test_settings_that_do_not_fit_are_refused(run: PretrainRun) -> None:
    assert isinstance(run.encoder, ElmoConfig)
    for changes, message in (
        ({"encoder": replace(run.encoder, word_length=13)}, "encoder.word_length is 13; .* has words of 9 characters"),
        ({"micro_batch_size": 3}, "rows that continue from batch to batch cannot be divided"),
        (
            {"micro_batch_size": run.batch_size, "long_seq_length": 40, "long_batch_size": 2 * run.batch_size},
            rf"a batch has {2 * run.batch_size} rows; rows that continue from batch to batch cannot be divided",
        ),
        ({"shard": True}, "shard needs an encoder that is a stack of equal layers"),
        ({"task": replace(run.task, samples=99)}, "task.samples is 99 and task.targets"),
    ):
        with pytest.raises(BertkitError, match=message):
            build_job(replace(run, **changes))


def test_pretrain_and_resume_from_python(run: PretrainRun, tmp_path: Path) -> None:
    options: dict[str, Any] = {"steps": 2, "batch_size": 7, "progress": "quiet"}
    letters = ["encoder.word_length=9", "encoder.filters=[[1, 4], [3, 7]]"]
    bertkit.pretrain(run.data, output=tmp_path / "verb", architecture="elmo", size="1/12/17", set=letters, **options)
    recorded = pretraining_from_json(read_run(tmp_path / "verb")["run"])
    assert recorded.encoder == size("1/12/17", word_length=9, filters=((1, 4), (3, 7)))
    assert recorded.seq_length == 20
    origins = {each.path: each.origin for each in bertkit.config_show(tmp_path / "verb")}
    assert origins["task.targets"] == "--architecture elmo"
    again = bertkit.pretrain(resume=tmp_path / "verb", progress="quiet")
    assert not isinstance(again, PretrainPlan)
    assert again.steps == 2


def test_sampled_softmax_is_used_in_training_only(run: PretrainRun) -> None:
    task, optimizer = replace(run.task, samples=3, targets=13), replace(run.optimizer, lr=0.01)
    result = pretrain(replace(run, task=task, optimizer=optimizer), Progress("quiet"))
    trained = [each for each in read_metrics(run.output / "metrics.jsonl") if each["kind"] == "train"]
    assert max(each["loss/bilm"] for each in trained) < 1.5 * math.log(1 + 3) < math.log(13)
    assert abs(result.heldout["bilm"] - math.log(13)) < 1
