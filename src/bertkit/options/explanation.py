"""Options of the verbs that look into a model: attention and explain."""

from __future__ import annotations

from dataclasses import dataclass, field

from bertkit.options.inputs import ModelPath
from bertkit.options.job import AnyPath, ModelOptions


@dataclass(frozen=True, kw_only=True)
class AttentionOptions(ModelOptions):
    """Write a page that shows what each head of a model attends to in a text."""

    model: ModelPath = field(kw_only=False)
    """Run folder or model folder of a transformer."""
    text: str = field(kw_only=False)
    """Text to read."""
    pair: str | None = None
    """Second text."""
    output: AnyPath
    """HTML page to write."""
    overwrite: bool = False
    """Replace OUTPUT if it exists."""


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(ModelOptions):
    """Write a page that shows which tokens a prediction rests on, by integrated gradients.

    The prediction is one or several classes, a number, tags, an answer or a masked word; not a similarity or a choice.
    """

    model: ModelPath = field(kw_only=False)
    """Run folder of a fine-tuning, or a model with its masked-LM head."""
    text: str = field(kw_only=False)
    """Text to predict; the question for a model that answers questions, a text with a mask for one that fills it."""
    pair: str | None = None
    """Second text, or the text with the answer."""
    output: AnyPath
    """HTML page to write."""
    overwrite: bool = False
    """Replace OUTPUT if it exists."""
