"""What a frozen encoder says, computed once: the features of the feature-based approach (paper, section 5.3).

Letters: B rows, T tokens.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from functools import cached_property
from io import BufferedRandom
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool
from numpy.typing import NDArray
from torch import Tensor

from bertkit.batch import Batch, EncoderOutput
from bertkit.contracts import Encoder, Objective
from bertkit.model import Model
from bertkit.storage.atomic import explain_writing


class _Place(NamedTuple):
    start: int
    shape: tuple[int, ...]


class ActivationCache:
    """A file of layer states in half precision, one block a row of a batch; it is gone when the process ends.

    A token takes 2 bytes for each layer and hidden number: BERT-base on the words of CoNLL-2003 is 5 GB.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._places: dict[bytes, _Place] = {}

    @cached_property
    def _file(self) -> BufferedRandom:
        file = TemporaryFile(dir=self._folder)  # noqa: SIM115 - it lives as long as this object
        weakref.finalize(self, file.close)
        return file

    def __contains__(self, key: bytes) -> bool:
        return key in self._places

    def write(self, key: bytes, states: NDArray[np.float16]) -> None:
        """Write the states of a row."""
        with explain_writing(self._folder):
            start = self._file.seek(0, os.SEEK_END)
            self._file.write(states.tobytes())
            self._file.flush()
        self._places[key] = _Place(start, states.shape)

    def read(self, key: bytes) -> NDArray[np.float16]:
        """The states of a row that was kept."""
        start, shape = self._places[key]
        states = np.empty(shape, dtype=np.float16)
        self._file.seek(start)
        self._file.readinto(states.data.cast("B"))
        return states


class CachedEncoder(Encoder):
    """A frozen encoder that computes a row when it meets it first, and looks it up from then on.

    What it says to a row depends on nothing but the row: it has no dropout, and other rows of a batch change no more
    than the last bits. It belongs to the weights that it was given, which are no part of its own state.
    """

    def __init__(self, encoder: Encoder, activations: ActivationCache) -> None:
        super().__init__()
        assert not any(weight.requires_grad for weight in encoder.parameters()), "a frozen encoder does not learn"
        self.hidden_size, self.num_layers, self.output_hidden_states = encoder.hidden_size, encoder.num_layers, True
        self.word_length = encoder.word_length
        self._encoder = (encoder.eval(),)  # in a tuple it is no module of this one
        self._activations = activations

    def forward(self, batch: Batch, positions: Bool[Tensor, "B T"] | None = None) -> EncoderOutput:
        """The layers at the ``positions`` tokens, and zeros elsewhere, for the pooled state too."""
        host, device = batch.on_host, batch.input_ids.device
        chosen = host.attention_mask if positions is None else positions
        keys = [_key(*row) for row in zip(host.input_ids, host.segment_ids, host.attention_mask, chosen, strict=True)]
        if unknown := {key: row for row, key in enumerate(keys) if key not in self._activations}:
            self._meet(host, chosen, unknown, device)
        states = np.concatenate([self._activations.read(key) for key in keys], axis=1)
        layers = torch.zeros(self.num_layers + 1, *chosen.shape, self.hidden_size)
        layers[:, chosen] = torch.from_numpy(states).float()
        layers = layers.to(device, non_blocking=True)
        return EncoderOutput(hidden_states=layers[-1], pooled=torch.zeros_like(layers[-1][:, 0]), layers=tuple(layers))

    def _meet(
        self, batch: Batch, chosen: Bool[Tensor, "B T"], unknown: Mapping[bytes, int], device: torch.device
    ) -> None:
        rows = list(unknown.values())
        part = Batch(batch.input_ids[rows], batch.segment_ids[rows], batch.attention_mask[rows], labels={})
        with torch.no_grad():
            layers = torch.stack(self._encoder[0](part.to(device)).layers).half().cpu()
        for place, (key, row) in enumerate(unknown.items()):
            self._activations.write(key, layers[:, place, chosen[row]].numpy())


def cache_activations(model: Model, activations: ActivationCache) -> Model:
    """The heads of a frozen model on activations that are computed once."""
    heads = {name: head for name, head in model.objectives.items() if isinstance(head, Objective)}
    return Model(CachedEncoder(model.encoder, activations), heads)


def _key(input_ids: Tensor, segment_ids: Tensor, real: Tensor, chosen: Tensor) -> bytes:
    """The row without its padding, and which of its tokens are asked for."""
    return torch.cat([input_ids[real].flatten(), segment_ids[real], chosen[real].long()]).numpy().tobytes()
