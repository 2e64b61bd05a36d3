"""Finds pre-training objectives by the names of their modules, and builds their heads."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from bertkit.contracts import Encoder, Objective, PretrainingObjective
from bertkit.errors import BertkitError, did_you_mean, usage_error
from bertkit.lookup import find_class, list_modules
from bertkit.objective_settings import ObjectiveSettings


def build_objectives(
    names: Sequence[str], encoder: Encoder, settings: ObjectiveSettings | None = None
) -> dict[str, Objective]:
    """New heads for ``encoder``, by their labels."""
    kinds = map(find_objective, names)
    return {each.label: _build(each, encoder, settings or ObjectiveSettings()) for each in kinds}


def _build(kind: type[PretrainingObjective], encoder: Encoder, settings: ObjectiveSettings) -> Objective:
    head: object = kind.build(encoder, settings)
    if not isinstance(head, Objective):
        raise usage_error(f"{kind.__module__}: build of {kind.__name__} gives {head!r}, and no objective.")
    return head


def find_objective(name: str) -> type[PretrainingObjective]:
    """The pre-training objective in the module ``name`` of ``objectives/``, or in a module outside bertkit."""
    try:
        return find_class("objectives", name, PretrainingObjective)
    except BertkitError as error:
        known, is_module = list_objectives(), name in list_modules("objectives")
        if "." in name or (is_module and not _is_for_finetuning(name)):
            raise
        problem = f'no pre-training objective named "{name}".{did_you_mean(name, known)}'
        if is_module:
            problem = f"{name} is for fine-tuning: its class does not derive from PretrainingObjective."
        raise usage_error(f"{problem} There are: {', '.join(known)}.") from error


def _is_for_finetuning(name: str) -> bool:
    try:
        return not issubclass(find_class("objectives", name, Objective), PretrainingObjective)
    except BertkitError:
        return False


def list_objectives() -> list[str]:
    """The names of all pre-training objectives of bertkit; a module with an error is left out."""
    found = []
    for name in list_modules("objectives"):
        with suppress(Exception):
            find_class("objectives", name, PretrainingObjective)
            found.append(name)
    return found
