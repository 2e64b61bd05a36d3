from __future__ import annotations

import numpy as np
import torch

from bertkit.batch import Batch, Feature, id_of


def test_the_id_of_a_word_is_the_first_of_its_numbers() -> None:
    assert id_of(7) == id_of((7, 99, 37)) == 7


def test_padding_is_not_counted(padded_batch: Batch) -> None:
    assert len(padded_batch) == 4
    assert padded_batch.num_tokens == 13 + 7 + 11 + 2


def test_a_feature_of_several_rows_counts_the_tokens_of_all() -> None:
    rows = np.zeros((2, 5), dtype=np.int64)
    feature = Feature(rows, rows, lengths=np.array([5, 4]))
    assert (len(feature), feature.num_rows, feature.num_tokens) == (5, 2, 9)
    single = Feature(rows[0], rows[0])
    assert (len(single), single.num_rows, single.num_tokens) == (5, 1, 5)


def test_a_batch_on_a_device_keeps_the_one_on_the_host(padded_batch: Batch) -> None:
    assert padded_batch.to(torch.device("cpu")) is padded_batch
    assert padded_batch.on_host is padded_batch
    moved = padded_batch.with_labels(nsp=torch.tensor([0, 1, 1, 0])).to(torch.device("meta"))
    assert moved.labels["nsp"].device.type == moved.input_ids.device.type == "meta"
    assert moved.on_host.input_ids is padded_batch.input_ids
    assert moved.num_tokens == padded_batch.num_tokens


def test_labels_are_added_to_a_copy(padded_batch: Batch) -> None:
    one = padded_batch.with_labels(nsp=torch.tensor([0, 1, 1, 0]))
    both = one.with_labels(number=torch.tensor([1.0, 2.0, 3.0, 4.0]))
    assert set(padded_batch.labels) == set()
    assert set(one.labels) == {"nsp"}
    assert set(both.labels) == {"nsp", "number"}
