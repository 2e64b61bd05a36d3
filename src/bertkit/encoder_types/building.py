"""Encoders without weights, and larger ones with the weights of a smaller one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from bertkit.contracts import Encoder
from bertkit.encoder_types.spec import EncoderSpec


@contextmanager
def without_weights() -> Iterator[None]:
    """Modules that are built in this context are on the meta device: they have sizes, and take no memory."""
    with torch.device("meta"), _SkipNormalInit():
        yield


def sketch_encoder(spec: EncoderSpec, config: Any) -> Encoder:
    """An encoder without its weights."""
    with without_weights():
        encoder: Encoder = spec.encoder(config)
    return encoder


class _SkipNormalInit(TorchFunctionMode):
    """Skips ``normal_``: ``nn.Embedding`` calls it, and on the meta device it imports 800 modules in 2 s."""

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        kwargs = kwargs or {}
        return kwargs["tensor"] if func is nn.init.normal_ else func(*args, **kwargs)


def enlarge(encoder: Any, **changes: int) -> Any:
    """A larger network of the same kind, with ``changes`` to its configuration.

    It has the weights of ``encoder``; rows that a longer table adds, and new parameters, are initialised.
    """
    larger = type(encoder)(replace(encoder.config, **changes))
    weights = larger.state_dict()
    for name, weight in encoder.state_dict().items():
        copy_first_rows(weights[name], weight)
    return larger


def copy_first_rows(target: Tensor, weight: Tensor) -> None:
    """Copy ``weight`` into ``target``, whose first axis may be longer; a single number is copied as it is."""
    (target[: len(weight)] if weight.dim() else target).copy_(weight)
