"""Activations of a frozen encoder, computed once and cached in a file: BERT as features (paper, section 5.3).

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
from threading import Lock
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool
from numpy.typing import NDArray
from torch import Tensor

from bertkit.batch import Batch, EncoderOutput
from bertkit.contracts import Encoder
from bertkit.model import Model
from bertkit.storage.atomic import explain_writing


class _Entry(NamedTuple):
    offset: int
    shape: tuple[int, ...]


class ActivationCache:
    """Hidden states of all layers in half precision, in a temporary file that is deleted when the process ends.

    There is one entry per row of a batch. Threads may read and write at the same time. A token takes 2 bytes per layer
    and hidden unit: 5 GB for BERT-base on the words of CoNLL-2003.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._entries: dict[bytes, _Entry] = {}
        self._lock = Lock()  # the file has one position, which reading and writing move

    @cached_property
    def _file(self) -> BufferedRandom:
        file = TemporaryFile(dir=self._folder)  # noqa: SIM115 - open as long as this object lives
        weakref.finalize(self, file.close)
        return file

    def __contains__(self, key: bytes) -> bool:
        return key in self._entries

    def write(self, key: bytes, states: NDArray[np.float16]) -> None:
        """Add the states of a row under ``key``, if there are none yet: two threads may have computed them."""
        with self._lock, explain_writing(self._folder):
            if key in self._entries:
                return
            offset = self._file.seek(0, os.SEEK_END)
            self._file.write(states.tobytes())
            self._file.flush()  # here, so that a full disk is reported with the name of the folder
            self._entries[key] = _Entry(offset, states.shape)

    def read(self, key: bytes) -> NDArray[np.float16]:
        """The states that were written under ``key``."""
        offset, shape = self._entries[key]
        states = np.empty(shape, dtype=np.float16)
        if states.size:  # a row may have no selected token, such as a sentence of control characters
            with self._lock:
                self._file.seek(offset)
                self._file.readinto(states.data.cast("B"))
        return states


class CachedEncoder(Encoder):
    """A frozen encoder that computes each row once and reads it from the cache afterwards.

    This is valid because the output for a row depends on that row only: there is no dropout, and the other rows of a
    batch change at most the last bits. The weights of the frozen encoder are not part of this module's state.
    """

    def __init__(self, encoder: Encoder, activations: ActivationCache) -> None:
        super().__init__()
        assert not any(weight.requires_grad for weight in encoder.parameters()), "only a frozen encoder can be cached"
        self.config = encoder.config
        self.hidden_size, self.num_layers = encoder.hidden_size, encoder.num_layers
        self.word_length = encoder.word_length
        self._encoder = (encoder.eval(),)  # a tuple, so that it is not registered as a submodule
        self._activations = activations

    def forward(
        self, batch: Batch, positions: Bool[Tensor, "B T"] | None = None, *, output_hidden_states: bool = False
    ) -> EncoderOutput:
        """The layers at ``positions`` (by default all real tokens), zeros elsewhere; the pooled state is zero."""
        host, device = batch.on_host, batch.input_ids.device
        selected = host.attention_mask if positions is None else positions
        keys = [_key(*row) for row in zip(host.input_ids, host.segment_ids, host.attention_mask, selected, strict=True)]
        if missing := {key: row for row, key in enumerate(keys) if key not in self._activations}:
            self._compute(host, selected, missing, device)
        states = np.concatenate([self._activations.read(key) for key in keys], axis=1)
        layers = torch.zeros(self.num_layers + 1, *selected.shape, self.hidden_size)
        layers[:, selected] = torch.from_numpy(states).float()
        layers = layers.to(device, non_blocking=True)
        return EncoderOutput(hidden_states=layers[-1], pooled=torch.zeros_like(layers[-1][:, 0]), layers=tuple(layers))

    def _compute(
        self, batch: Batch, selected: Bool[Tensor, "B T"], missing: Mapping[bytes, int], device: torch.device
    ) -> None:
        """Run the encoder on the rows of ``missing`` (key -> row of ``batch``) and add them to the cache."""
        rows = list(missing.values())
        part = Batch(batch.input_ids[rows], batch.segment_ids[rows], batch.attention_mask[rows], labels={})
        # In float32 whatever the precision of the training: predictions read the same cache.
        with torch.no_grad(), torch.autocast(device.type, enabled=False):
            layers = torch.stack(self._encoder[0](part.to(device), output_hidden_states=True).layers).half().cpu()
        for index, (key, row) in enumerate(missing.items()):
            self._activations.write(key, layers[:, index, selected[row]].numpy())


def cache_activations(model: Model, activations: ActivationCache) -> Model:
    """A model with the heads of the frozen ``model``, whose encoder output is cached in ``activations``."""
    return Model(CachedEncoder(model.encoder, activations), model.heads)


def _key(input_ids: Tensor, segment_ids: Tensor, mask: Tensor, selected: Tensor) -> bytes:
    """The row without its padding, and which of its tokens are selected. Rows of words have (T, C) ids."""
    return torch.cat([input_ids[mask].flatten(), segment_ids[mask], selected[mask].long()]).numpy().tobytes()
