"""Which encoder of the shelf a folder holds, and how Hugging Face spells it: the ``Foreign`` that its file has."""

from __future__ import annotations

from functools import cache

from bertkit import names
from bertkit.contracts import Encoder
from bertkit.encoders import Foreign
from bertkit.errors import data_error

MODEL_TYPE = "model_type"


def foreign_of(encoder: Encoder) -> Foreign:
    """The spelling of this encoder's weights."""
    (found,) = (each for each in _list() if isinstance(encoder, each.encoder))
    return found


def foreign_of_config(config: object) -> Foreign:
    """The spelling of this encoder's configuration."""
    (found,) = (each for each in _list() if each.config is type(config))
    return found


def find_foreign(model_type: object, source: str) -> Foreign:
    """The spelling that a ``config.json`` names."""
    for each in _list():
        if each.model_type == model_type:
            return each
    known = ", ".join(f'"{each.model_type}"' for each in _list())
    raise data_error(f'{source}: {MODEL_TYPE} is "{model_type}"; bertkit reads {known}.')


@cache
def _list() -> tuple[Foreign, ...]:
    return tuple(names.values("encoders", Foreign).values())
