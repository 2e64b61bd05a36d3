from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.data.batches import FeatureSource
from bertkit.errors import BertkitError
from bertkit.speed.finetuning import TrainingSet, huggingface_steps, own_steps, peer_systems
from bertkit.task_types.regression import RegressionTask
from bertkit.user_tables.guess import guess


@pytest.fixture
def training(workspace: Path) -> TrainingSet:
    task: Any = guess([workspace / "reviews.csv"]).task
    folder = ModelFolder.open(workspace / "run")
    task = replace(task, max_length=37)
    features = [task.encode(each, folder.tokenizer)[0] for each in task.examples("train")]
    return TrainingSet(folder.path, task, features, 13)


def test_steps_are_counted_in_examples_in_both_precisions(training: TrainingSet) -> None:
    epoch = [13] * (len(training.features) // 13) + [len(training.features) % 13]
    for precision in ("float32", "bfloat16"):
        assert list(islice(own_steps(training, precision), len(epoch) + 1)) == [*epoch, 13]


def test_hugging_face_trains_on_the_same_batches(training: TrainingSet) -> None:
    pytest.importorskip("transformers", reason="install transformers")
    names = [name for name, _ in peer_systems(training, ("float32", "bfloat16"), "hf")]
    assert names == ["Hugging Face float32", "Hugging Face bfloat16"]
    assert list(islice(huggingface_steps(training, "float32"), 3)) == [13, 13, 13]


def test_hugging_face_s_roberta_trains_on_pairs(
    training: TrainingSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its table of segments has one row."""
    transformers = pytest.importorskip("transformers", reason="install transformers")
    sizes = {"hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 13}
    vocab_size = ModelFolder.open(training.folder).tokenizer.vocab_size
    config = transformers.RobertaConfig(vocab_size=vocab_size, type_vocab_size=1, **sizes)
    transformers.RobertaForSequenceClassification(config).save_pretrained(tmp_path / "roberta")
    pairs = [replace(each, segment_ids=(np.arange(len(each)) > 2).astype(int)) for each in training.features]
    monkeypatch.setattr(TrainingSet, "source", lambda self: FeatureSource(self.features, pad_id=config.pad_token_id))
    roberta = replace(training, folder=tmp_path / "roberta", features=pairs)
    assert list(islice(huggingface_steps(roberta, "float32"), 2)) == [13, 13]


def test_hugging_face_is_refused_for_other_tasks(training: TrainingSet) -> None:
    pytest.importorskip("transformers", reason="install transformers")
    other = replace(training, task=RegressionTask(name="stars", metric="spearman", files=training.task.files))
    with pytest.raises(BertkitError, match="stars has none"):
        list(peer_systems(other, ("float32",), "hf"))
