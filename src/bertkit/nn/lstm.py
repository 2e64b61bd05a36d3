"""A bidirectional LSTM (Hochreiter and Schmidhuber 1997) over rows of different lengths.

Letters: B rows, T steps, I width of the input, H width of the output, W any width.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from bertkit.nn.dropout import Dropout
from bertkit.nn.projected_lstm import reverse_rows


class BiLstm(nn.Module):
    """``num_layers`` bidirectional LSTM layers, each direction ``width / 2`` wide (BERT's tagger, section 5.3).

    The backward direction of a row starts at the row's own last real step, so padding does not change the result. The
    output is 0 on padding. ``dropout`` is applied to the input of every layer.
    """

    def __init__(self, input_width: int, width: int, num_layers: int, dropout: float) -> None:
        super().__init__()
        assert width % 2 == 0, f"two directions cannot share a width of {width}"
        self.layers = nn.ModuleList(
            nn.LSTM(width if layer else input_width, width // 2, batch_first=True, bidirectional=True)
            for layer in range(num_layers)
        )
        self.dropout = Dropout(dropout)

    def reset_parameters(self) -> None:
        """torch's default initialisation: uniform up to ``1 / sqrt(width / 2)``."""
        for layer in self.layers:
            assert isinstance(layer, nn.LSTM)
            layer.reset_parameters()

    def forward(self, states: Float[Tensor, "B T I"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B T H"]:
        """The states of the last layer. ``mask`` is True on the real steps, which come first in every row.

        ``mask`` should be on the host, because the lengths of the rows are computed there.
        """
        return self._run_padded(states, mask) if states.device.type == "cpu" else self._run_packed(states, mask)

    def _run_packed(self, states: Float[Tensor, "B T I"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B T H"]:
        lengths = mask.sum(1).cpu()
        # Sorted here, because pack_padded_sequence(enforce_sorted=False) copies the order from the device and so waits.
        order = lengths.argsort(descending=True, stable=True)
        steps = lengths[order].clamp(min=1)
        states = _select_rows(states, order)
        for layer in self.layers:
            packed = pack_padded_sequence(self.dropout(states), steps, batch_first=True)
            states, _ = pad_packed_sequence(layer(packed)[0], batch_first=True, total_length=mask.shape[1])
        states = _select_rows(states, order.argsort())
        empty = lengths == 0
        return states.masked_fill(empty[:, None, None].to(states.device), 0) if empty.any() else states

    def _run_padded(self, states: Float[Tensor, "B T I"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, "B T H"]:
        """The same result computed on padded rows; the backward direction runs forward over reversed rows.

        On a CPU torch runs packed rows step by step, but padded rows with oneDNN: training takes half of the time at
        200 units per direction, and a quarter at 32.
        """
        for layer in self.layers:
            inputs = self.dropout(states)
            forward = _run_direction(layer, inputs, "l0")
            backward = reverse_rows(_run_direction(layer, reverse_rows(inputs, mask), "l0_reverse"), mask)
            states = torch.cat([forward, backward], dim=2)
        return states.masked_fill(~mask.unsqueeze(2), 0)


def _run_direction(layer: nn.Module, states: Float[Tensor, "B T I"], which: str) -> Float[Tensor, "B T W"]:
    """One direction (``l0`` or ``l0_reverse``) of a layer, from zero states, over every step of every row.

    oneDNN has no bfloat16 LSTM for a processor without AVX-512: there it is computed in float32.
    """
    weights = [getattr(layer, f"{name}_{which}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    if not (torch._C._has_mkldnn and torch.ops.mkldnn._is_mkldnn_bf16_supported()):
        with torch.autocast("cpu", enabled=False):
            return _run_lstm(layer, states.float(), [weight.float() for weight in weights])
    return _run_lstm(layer, states, weights)


def _run_lstm(layer: nn.Module, states: Float[Tensor, "B T I"], weights: list[Tensor]) -> Float[Tensor, "B T W"]:
    zeros = states.new_zeros(1, len(states), weights[1].shape[1])
    outputs: Tensor = torch.lstm(states, (zeros, zeros), weights, True, 1, 0.0, layer.training, False, True)[0]
    return outputs


def _select_rows(states: Float[Tensor, "B T W"], order: Int[Tensor, " B"]) -> Float[Tensor, "B T W"]:
    return states.index_select(0, order.to(states.device, non_blocking=True))
