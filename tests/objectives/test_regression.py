from __future__ import annotations

import torch

from bertkit.batch import IGNORE, Batch, EncoderOutput
from bertkit.objectives.regression import Regression, tiny


def test_squared_error_ignores_rows_without_a_label(padded_batch: Batch) -> None:
    head = Regression(24)
    batch = padded_batch.with_labels(number=torch.tensor([1.0, IGNORE, 3.0, 0.0]))
    term = head.loss({"value": torch.tensor([0.0, 5.0, 1.0, 0.5])}, batch)["number"]
    assert (term.sum.item(), term.count) == (1 + 4 + 0.25, 3)


def test_numbers_are_float32_where_products_are_bfloat16(padded_batch: Batch) -> None:
    """In bfloat16 numbers near 4 would be multiples of 1/64."""
    head, batch = tiny(24, padded_batch)
    rows, tokens = batch.input_ids.shape
    torch.nn.init.constant_(head.regressor.bias, 4.0)
    states = EncoderOutput(torch.randn(rows, tokens, 24), torch.randn(rows, 24))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        values = head.eval()(states, batch)["value"]
    assert values.dtype == torch.float32
    assert (values * 64 != (values * 64).round()).all()
