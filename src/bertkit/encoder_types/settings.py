"""What the configurations of encoders share: sizes by name, and checks of their values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeVar

from bertkit.contracts import Context, EncoderConfig
from bertkit.errors import did_you_mean, usage_error
from bertkit.nn.activation import ACTIVATIONS
from bertkit.nn.neighbour_heads import fits

Config = TypeVar("Config")

PositionInit = Literal["normal", "sinusoidal", "neighbour_heads"]
"""How learned position embeddings are initialised; with sinusoidal ones pre-training needs fewer steps."""


def context_of(config: EncoderConfig) -> Context:
    """Which tokens a state depends on: the ``context`` of the configuration, "bidirectional" if it has none."""
    context: Context = getattr(config, "context", "bidirectional")
    return context


def has_lstm(config: EncoderConfig) -> bool:
    """Whether a BiLSTM is on top of the blocks (paper, section 5.1)."""
    return bool(getattr(config, "lstm_layers", 0))


MINIATURES: Mapping[str, tuple[int, int, int]] = {
    "tiny": (2, 128, 2),
    "mini": (4, 256, 4),
    "small": (4, 512, 8),
    "medium": (8, 512, 8),
}
"""Layers, hidden width and heads of the small BERTs (google-research/bert README), also used for other transformers."""


def read_size(name: str, sizes: Mapping[str, tuple[int, int, int]]) -> dict[str, int]:
    """Layers, width and heads as fields, from a name in ``sizes`` or of the form ``4/256/4``."""
    parts = name.split("/")
    if name in sizes:
        numbers = sizes[name]
    elif len(parts) == 3 and all(part.isdecimal() for part in parts):
        numbers = (int(parts[0]), int(parts[1]), int(parts[2]))
    else:
        raise usage_error(
            f'no size named "{name}".{did_you_mean(name, sizes)} There are: {", ".join(sizes)}, '
            f"or layers/width/heads such as 4/256/4."
        )
    return dict(zip(("num_layers", "hidden_size", "num_heads"), numbers, strict=True))


def configure(kind: type[Config], model: str, fields: Mapping[str, object]) -> Config:
    """The configuration with these fields; an error for an unknown one names the ``model``."""
    known: Mapping[str, object] = kind.__dataclass_fields__  # type: ignore[attr-defined]
    for field in fields:
        if field not in known:
            raise usage_error(
                f'{model} has no setting "{field}".{did_you_mean(field, known)} It has: {", ".join(known)}.'
            )
    return kind(**fields)


def check_heads(hidden_size: int, num_heads: int, position_init: str) -> None:
    """Check the fields that the heads of all transformers depend on."""
    if hidden_size % num_heads:
        raise usage_error(
            f"hidden_size {hidden_size} is not a multiple of num_heads {num_heads}; every head has the same width."
        )
    if position_init == "neighbour_heads" and not fits(hidden_size, num_heads):
        raise usage_error(
            f"position_init=neighbour_heads needs two heads or more of an even width; hidden_size is {hidden_size} "
            f"and num_heads {num_heads}: give position_init=sinusoidal."
        )


def check_pad(pad_id: int, vocab_size: int) -> None:
    """Check that the padding token is in the vocabulary."""
    if not 0 <= pad_id < vocab_size:
        raise usage_error(f"pad_id is {pad_id}; the vocabulary has the ids 0 to {vocab_size - 1}.")


def check_activation(name: str) -> None:
    """Check that there is an activation of this name."""
    if name not in ACTIVATIONS:
        raise usage_error(
            f'activation "{name}" is unknown.{did_you_mean(name, ACTIVATIONS)} There are: {", ".join(ACTIVATIONS)}.'
        )
