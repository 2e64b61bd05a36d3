"""Zero-shot classification with a model for natural language inference (Yin et al. 2019, arXiv 1909.00161)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bertkit.server.activations import activate
from bertkit.server.call import BY_REQUEST, Call
from bertkit.server.errors import invalid, unable
from bertkit.server.inputs import refuse_repetition
from bertkit.server.models import ServedModel, TaskResult
from bertkit.task_types.text_task import mean_output

_ENTAILMENT, _CONTRADICTION = "entailment", "contradiction"
_HYPOTHESIS = "This example is {}."


def can_infer(model: ServedModel) -> bool:
    """Whether one of the labels of the model is "entailment"."""
    return _ENTAILMENT in map(str.casefold, model.labels)


async def classify_zero_shot(
    call: Call,
    model: ServedModel,
    text: str,
    labels: Sequence[str],
    *,
    template: str | None,
    several: bool,
    truncate: bool | None = None,
) -> list[tuple[str, float]]:
    """Candidate labels with the probability that the text entails the hypothesis with the label, the best first.

    The probabilities of all labels sum to 1; with ``several`` each label is decided alone, against contradiction.
    """
    template = template or _HYPOTHESIS
    if template.count("{}") != 1:
        raise invalid("`hypothesis_template` needs one {}, where the label goes", "parameters.hypothesis_template")
    characters = len(labels) * (len(text) + len(template)) + sum(map(len, labels))
    refuse_repetition(characters, call.service.limits, "parameters.candidate_labels")
    names = [label.casefold() for label in model.labels]
    if not can_infer(model):
        raise unable(f'the model "{model.name}" is not trained for inference: it has no label "{_ENTAILMENT}"')
    inputs = [model.text_input((text, template.replace("{}", label))) for label in labels]
    places = ["inputs"] * len(inputs)  # all are made of one text
    results: list[TaskResult] = await call.run(
        model, model.predictions, inputs, truncate=truncate, remedy=BY_REQUEST, places=places
    )
    logits = np.array([mean_output(result.outputs, "logits") for result in results])
    entailed = logits[:, names.index(_ENTAILMENT)]
    if several or len(labels) == 1:
        pairs = np.stack([logits[:, find_opposite(model, names)], entailed], axis=1)
        scores = [activate(pair, "softmax")[1] for pair in pairs]
    else:
        scores = activate(entailed, "softmax")
    return sorted(zip(labels, scores, strict=True), key=lambda each: -each[1])


def find_opposite(model: ServedModel, names: Sequence[str]) -> int:
    """The place of the label that says the opposite of "entailment": contradiction, or the other one of two."""
    if _CONTRADICTION in names:
        return names.index(_CONTRADICTION)
    if len(names) != 2:
        raise unable(f'the model "{model.name}" decides no label alone: it has no label "{_CONTRADICTION}"')
    return 1 - names.index(_ENTAILMENT)
