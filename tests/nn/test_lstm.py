"""The bidirectional LSTM: padding is ignored, and the result equals torch's."""

from __future__ import annotations

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from bertkit.nn.lstm import BiLstm


def test_padding_is_ignored() -> None:
    torch.manual_seed(3)
    lstm = BiLstm(input_width=5, width=14, num_layers=2, dropout=0.3).eval()
    states = torch.randn(3, 7, 5)
    mask = torch.arange(7) < torch.tensor([[4], [7], [1]])
    together = lstm(states, mask)
    assert together.shape == (3, 7, 14)
    for row, length in enumerate((4, 7, 1)):
        alone = lstm(states[row : row + 1, :length], torch.ones(1, length, dtype=torch.bool))
        torch.testing.assert_close(together[row, :length], alone[0], rtol=0, atol=1e-6)
        assert not together[row, length:].any()


def test_an_empty_row_has_zero_states() -> None:
    torch.manual_seed(3)
    lstm = BiLstm(input_width=5, width=14, num_layers=2, dropout=0.3).eval()
    states = torch.randn(3, 4, 5)
    mask = torch.arange(4) < torch.tensor([[2], [0], [4]])
    some = lstm(states, mask)
    assert not some[1].any()
    torch.testing.assert_close(some[[0, 2]], lstm(states[[0, 2]], mask[[0, 2]]), rtol=0, atol=1e-6)
    some.sum().backward()
    assert not lstm(states, torch.zeros(3, 4, dtype=torch.bool)).any()


@pytest.mark.parametrize("autocast", [True, False])
def test_bfloat16_is_computed_on_every_processor(autocast: bool) -> None:
    """oneDNN has no such LSTM without AVX-512."""
    torch.manual_seed(3)
    lstm = BiLstm(input_width=5, width=14, num_layers=2, dropout=0.0).eval()
    states, mask = torch.randn(3, 4, 5), torch.ones(3, 4, dtype=torch.bool)
    expected = lstm(states, mask)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        found = lstm(states, mask) if autocast else lstm.bfloat16()(states.bfloat16(), mask)
    torch.testing.assert_close(found.float(), expected, rtol=0, atol=0.02)


def test_two_layers_equal_torchs_lstm() -> None:
    torch.manual_seed(5)
    ours = BiLstm(input_width=5, width=14, num_layers=2, dropout=0.3).eval()
    official = torch.nn.LSTM(5, 7, num_layers=2, batch_first=True, bidirectional=True)
    with torch.no_grad():
        for number, layer in enumerate(ours.layers):
            for name, weight in layer.named_parameters():
                official.get_parameter(name.replace("_l0", f"_l{number}")).copy_(weight)
    states = torch.randn(3, 9, 5)
    torch.testing.assert_close(ours(states, torch.ones(3, 9, dtype=torch.bool)), official(states)[0])


@pytest.mark.parametrize("method", ["_run_padded", "_run_packed"])
def test_states_and_gradients_equal_those_of_packed_rows(method: str) -> None:
    """Against torch's packed sequences, layer by layer; the methods are those for a CPU and for a GPU."""
    lstm = BiLstm(input_width=5, width=14, num_layers=2, dropout=0.0)
    mask = torch.arange(7) < torch.tensor([3, 7, 1, 4])[:, None]
    states = torch.randn(4, 7, 5)
    expected = states
    for layer in lstm.layers:
        packed = pack_padded_sequence(expected, mask.sum(1), batch_first=True, enforce_sorted=False)
        expected, _ = pad_packed_sequence(layer(packed)[0], batch_first=True)
    found = getattr(lstm, method)(states, mask)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
    weights = list(lstm.parameters())
    gradients = [torch.autograd.grad(each.sin().sum(), weights) for each in (found, expected)]
    for gradient, expected_gradient in zip(*gradients, strict=True):
        torch.testing.assert_close(gradient, expected_gradient, rtol=1e-5, atol=1e-5)
