"""The number of floating-point operations of a step against torch's own counter, and the peak of a device."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from bertkit.batch import IGNORE, Batch
from bertkit.contracts import Objective
from bertkit.encoders import elmo, gpt
from bertkit.encoders.bert import Bert, BertConfig, size
from bertkit.encoders.gpt import Gpt
from bertkit.model import Model
from bertkit.objectives.bilm import BidirectionalLanguageModel, label_words
from bertkit.objectives.clm import CausalLanguageModel, label_next
from bertkit.objectives.mlm import MaskedLanguageModel
from bertkit.objectives.nsp import NextSentencePrediction
from bertkit.training import flops
from bertkit.training.fit import accumulate_gradients, count_labels
from bertkit.training.flops import count_flops, peak_flops

SHAPE = size("3/12/2", vocab_size=99, intermediate_size=37, max_positions=17)
CPU = torch.device("cpu")


def make_batch(*lengths: int, masked: int, pairs: bool = True) -> Batch:
    rows, width = len(lengths), max(lengths)
    real = torch.arange(width) < torch.tensor(lengths)[:, None]
    ids = torch.randint(5, 99, (rows, width), generator=torch.Generator().manual_seed(1)).masked_fill(~real, 0)
    columns = torch.arange(width).expand(rows, width)
    labels = {"mlm": torch.where((columns >= 1) & (columns <= masked), ids, IGNORE)}
    if pairs:
        labels["nsp"] = torch.arange(rows) % 2
    return Batch(ids, torch.zeros_like(ids), real, labels)


@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize(("rows", "width", "masked"), [(3, 13, 4), (5, 7, 1), (1, 17, 2)])
def test_the_count_of_bert_equals_torchs(rows: int, width: int, masked: int, dropout: float) -> None:
    config = size("3/12/2", vocab_size=99, intermediate_size=37, max_positions=17, attention_dropout=dropout)
    encoder = Bert(config)
    heads: dict[str, Objective] = {
        "mlm": MaskedLanguageModel(encoder.embeddings.word),
        "nsp": NextSentencePrediction(12),
    }
    model = Model(encoder, heads).train()
    batch = make_batch(*[width] * rows, masked=masked)
    with FlopCounterMode(display=False) as counted:
        accumulate_gradients(model, [batch], count_labels(model, [batch]), CPU, "float32")
    assert count_flops(model, batch) == counted.get_total_flops()


def bert(config: BertConfig, *, pairs: bool = True) -> Model:
    encoder = Bert(config)
    words: Objective = (
        CausalLanguageModel(encoder.embeddings.word) if config.causal else MaskedLanguageModel(encoder.embeddings.word)
    )
    return Model(encoder, {"words": words, **({"nsp": NextSentencePrediction(12)} if pairs else {})})


def test_padding_is_not_counted() -> None:
    model = bert(SHAPE)
    alone = [count_flops(model, make_batch(length, masked=2)) for length in (13, 7, 17)]
    assert count_flops(model, make_batch(13, 7, 17, masked=2)) == sum(alone)


def test_without_next_sentences_only_masked_positions_are_counted_in_the_last_block() -> None:
    config = size("1/12/2", vocab_size=99, intermediate_size=37)
    found = count_flops(bert(config, pairs=False), make_batch(13, masked=2, pairs=False))
    keys, queries, words = 13 * 2 * 144, 2 * (2 * 144 + 2 * 12 * 37 + 2 * 13 * 12), 2 * (144 + 12 * 99)
    assert found == 6 * (keys + queries + words)


def test_causal_attention_counts_the_pairs_of_tokens_that_it_allows() -> None:
    config = size("2/12/2", vocab_size=99, intermediate_size=37, causal=True)
    batch = label_next(replace(make_batch(13, 7, masked=1), labels={}))
    per_token = 4 * 144 + 2 * 12 * 37
    below = 20 * per_token + 2 * 12 * (sum(range(14)) + sum(range(8)))
    last = 20 * 2 * 144 + 18 * (2 * 144 + 2 * 12 * 37) + 2 * 12 * (sum(range(13)) + sum(range(7)))
    assert count_flops(bert(config, pairs=False), batch) == 6 * (below + last + 18 * 12 * 99)


def test_gpt_counts_as_many_operations_as_a_causal_bert_of_the_same_size() -> None:
    encoder = Gpt(gpt.size("3/12/2", vocab_size=99, max_positions=17))
    model = Model(encoder, {"clm": CausalLanguageModel(encoder.embeddings.word)})
    same = bert(size("3/12/2", vocab_size=99, max_positions=17, causal=True), pairs=False)
    batch = label_next(replace(make_batch(13, 7, masked=1), labels={}))
    assert count_flops(model, batch) == count_flops(same, batch)


@pytest.mark.parametrize("samples", [None, 37])
def test_the_count_of_elmo_is_close_to_torchs(samples: int | None) -> None:
    """torch does not count element-wise products. All words are computed, whatever positions are needed."""
    encoder = elmo.tiny()
    model = Model(encoder, {"bilm": BidirectionalLanguageModel(encoder.hidden_size, 99, num_samples=samples)}).train()
    words = torch.randint(4, 99, (3, 13))
    labels = torch.stack([torch.from_numpy(label_words(row.numpy())) for row in words])
    letters = words.unsqueeze(2) * torch.arange(1, 8) % 101
    batch = Batch(letters, torch.zeros_like(words), torch.ones_like(words, dtype=torch.bool), {"bilm": labels})
    with FlopCounterMode(display=False) as counted:
        accumulate_gradients(model, [batch], count_labels(model, [batch]), CPU, "float32")
    assert count_flops(model, batch) == pytest.approx(counted.get_total_flops(), rel=0.1)


def test_the_peak_of_a_cpu_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flops, "measure_matmul_speed", lambda device: {"float32": 86.0, "bfloat16": 206.0})
    assert peak_flops(CPU, "bfloat16") == 206e9
    assert peak_flops(CPU, "float32") == 86e9


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("NVIDIA H200", 989e12),
        ("NVIDIA H100 PCIe", 756e12),
        ("NVIDIA H100 80GB HBM3", 989e12),
        ("NVIDIA L40", 181e12),
        ("NVIDIA RTX A1000 Laptop GPU", None),
        ("NVIDIA A100-SXM4-80GB", 312e12),
        ("NVIDIA H100 MIG 1g.10gb", None),
        ("Unheard Of 1", None),
    ],
)
def test_the_peak_of_a_gpu_is_from_its_data_sheet(
    monkeypatch: pytest.MonkeyPatch, name: str, peak: float | None
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: name)
    assert peak_flops(torch.device("cuda"), "bfloat16") == peak
    assert peak_flops(torch.device("cuda"), "float32") is None
