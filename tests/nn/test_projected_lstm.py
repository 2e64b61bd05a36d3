"""The LSTM with a projection: against torch's without clipping, and number by number with clipping."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from bertkit.nn.projected_lstm import LstmState, ProjectedLstm, reverse_rows

# torch warns that its own LSTM with a projection has no fast path.
pytestmark = pytest.mark.filterwarnings("ignore:LSTM with projections is not supported:UserWarning")

B, T, INPUT, OUTPUT, CELLS = 3, 9, 5, 2, 7
REAL = torch.arange(T) < torch.tensor([[T], [4], [1]])
ALL = torch.ones(B, T, dtype=torch.bool)


def make(clip: float = math.inf, scale: float = 1.0) -> ProjectedLstm:
    gates, projection = nn.Linear(INPUT + OUTPUT, 4 * CELLS), nn.Linear(CELLS, OUTPUT, bias=False)
    for weight in (gates.weight, gates.bias, projection.weight):
        nn.init.normal_(weight, std=scale)
    return ProjectedLstm(gates=gates, projection=projection, cell_clip=clip, output_clip=clip / 2)


def to_torch(ours: ProjectedLstm) -> nn.LSTM:
    """torch's LSTM with the same weights; the order of its gates is input, forget, new, output."""
    official = nn.LSTM(INPUT, CELLS, proj_size=OUTPUT, batch_first=True)
    input_gate, new, forget_gate, output_gate = ours.gates.weight.detach().chunk(4)
    in_bias, new_bias, forget_bias, out_bias = ours.gates.bias.detach().chunk(4)
    weight = torch.cat([input_gate, forget_gate, new, output_gate])
    official.load_state_dict(
        {
            "weight_ih_l0": weight[:, :INPUT],
            "weight_hh_l0": weight[:, INPUT:],
            "bias_ih_l0": torch.cat([in_bias, forget_bias + 1, new_bias, out_bias]),
            "bias_hh_l0": torch.zeros(4 * CELLS),
            "weight_hr_l0": ours.projection.weight,
        }
    )
    return official


def sigmoid(number: float) -> float:
    return 1 / (1 + math.exp(-number))


def step_by_hand(lstm: ProjectedLstm, inputs: list[float], output: list[float], cells: list[float]) -> LstmState:
    """One step of one row, one number at a time."""
    features = torch.tensor(inputs + output)
    gates = [float(weight @ features + bias) for weight, bias in zip(lstm.gates.weight, lstm.gates.bias, strict=True)]
    after = []
    for cell in range(CELLS):
        input_gate, new, forget_gate = (gates[part * CELLS + cell] for part in range(3))
        value = cells[cell] * sigmoid(forget_gate + 1) + sigmoid(input_gate) * math.tanh(new)
        after.append(min(max(value, -lstm.cell_clip), lstm.cell_clip))
    visible = torch.tensor([sigmoid(gates[3 * CELLS + cell]) * math.tanh(after[cell]) for cell in range(CELLS)])
    projected = [float(weight @ visible) for weight in lstm.projection.weight]
    bounded = [min(max(value, -lstm.output_clip), lstm.output_clip) for value in projected]
    return LstmState(torch.tensor(bounded), torch.tensor(after))


@pytest.mark.parametrize("clip", [math.inf, 50.0])
def test_without_clipping_it_equals_torchs(clip: float) -> None:
    ours, states = make(clip), torch.randn(B, T, INPUT, requires_grad=True)
    official = to_torch(ours)
    outputs, after = ours(states, ALL)
    expected, (their_output, their_cells) = official(states)
    torch.testing.assert_close(outputs, expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(after.output, their_output[0], rtol=0, atol=1e-5)
    torch.testing.assert_close(after.cells, their_cells[0], rtol=0, atol=1e-5)
    (gradient,) = torch.autograd.grad(outputs.cos().sum(), states)
    (their_gradient,) = torch.autograd.grad(expected.cos().sum(), states)
    torch.testing.assert_close(gradient, their_gradient, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_with_clipping_it_equals_the_formula() -> None:
    lstm, states = make(clip=0.8, scale=2.0), torch.randn(B, T, INPUT)
    outputs, after = lstm(states, ALL)
    for row in range(B):
        expected = LstmState(torch.zeros(OUTPUT), torch.zeros(CELLS))
        for step in range(T):
            before = expected.output.tolist(), expected.cells.tolist()
            expected = step_by_hand(lstm, states[row, step].tolist(), *before)
            torch.testing.assert_close(outputs[row, step], expected.output, rtol=0, atol=1e-5)
        torch.testing.assert_close(after.cells[row], expected.cells, rtol=0, atol=1e-5)
    assert (after.cells.abs() == 0.8).any(), "no cell was clipped"
    assert (outputs.abs() == 0.4).any(), "no output was clipped"
    assert not torch.allclose(outputs, to_torch(lstm)(states)[0], atol=1e-2)


def test_padding_is_ignored() -> None:
    lstm, states = make(), torch.randn(B, T, INPUT)
    outputs, after = lstm(states, REAL)
    for row, length in enumerate((T, 4, 1)):
        alone, state = lstm(states[row : row + 1, :length], ALL[row : row + 1, :length])
        torch.testing.assert_close(outputs[row, :length], alone[0], rtol=0, atol=1e-6)
        torch.testing.assert_close(after.cells[row], state.cells[0], rtol=0, atol=1e-6)
        torch.testing.assert_close(after.output[row], state.output[0], rtol=0, atol=1e-6)
        assert not outputs[row, length:].any()


def test_a_row_may_be_run_in_parts_with_the_state_passed_on() -> None:
    lstm, states = make(), torch.randn(B, T, INPUT)
    outputs, end = lstm(states, ALL)
    first, between = lstm(states[:, :4], ALL[:, :4])
    second, last = lstm(states[:, 4:], ALL[:, 4:], between)
    torch.testing.assert_close(torch.cat([first, second], dim=1), outputs, rtol=0, atol=1e-6)
    torch.testing.assert_close(last.cells, end.cells, rtol=0, atol=1e-6)


def test_the_state_is_in_float32_where_products_are_in_bfloat16() -> None:
    lstm = make()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        _, state = lstm(torch.randn(B, T, INPUT).bfloat16(), ALL)
    assert {each.dtype for each in state} == {torch.float32}


def test_reversing_keeps_padding_in_place() -> None:
    numbers = torch.arange(1.0, 1 + B * T).view(B, T, 1)

    def rows(states: Tensor) -> list[list[float]]:
        return [row.tolist() for row in states.squeeze(2)]

    reversed_rows = reverse_rows(numbers, REAL)
    assert rows(reversed_rows) == [
        [9, 8, 7, 6, 5, 4, 3, 2, 1],
        [13, 12, 11, 10, 14, 15, 16, 17, 18],
        [19, 20, 21, 22, 23, 24, 25, 26, 27],
    ]
    assert torch.equal(reverse_rows(reversed_rows, REAL), numbers)
