"""A trivial choice that a multiple-choice model has to beat: the text that is most similar to the prompt."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bertkit.task_types.baselines import character_ngrams
from bertkit.task_types.choice_reader import ChoiceExample

SIMILARITY = "TF-IDF similarity to the prompt"


def predict_most_similar(train: Sequence[ChoiceExample], dev: Sequence[ChoiceExample]) -> list[int]:
    """The choice with the highest cosine to the prompt and the stem; of equal ones the first."""
    vectorizer = character_ngrams()
    vectorizer.fit([text for example in train for text in (_given(example), *example.choices)])
    prompts = vectorizer.transform([_given(example) for example in dev])
    choices = vectorizer.transform([choice for example in dev for choice in example.choices])
    owners = np.repeat(np.arange(len(dev)), [len(example.choices) for example in dev])
    cosines = np.asarray(prompts[owners].multiply(choices).sum(axis=1)).ravel()
    ends = np.cumsum([len(example.choices) for example in dev])
    return [int(each.argmax()) for each in np.split(cosines, ends[:-1])]


def _given(example: ChoiceExample) -> str:
    return f"{example.prompt} {example.stem}".strip() or "-"
