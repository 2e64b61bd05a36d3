"""Trivial predictions that a model has to beat: the most frequent answer, and a linear model on a bag of words.

They are fitted on the training examples of a run and scored on its dev examples, so that every score can be read beside
what a user would try first. Texts become TF-IDF weights of words and pairs of words, and of character n-grams within
words. One model reads both, so that nothing is chosen on dev: with 2,000 examples of SST-2 the accuracy is 69.6 % from
words, 73.4 % from characters, and 74.9 % from both.
"""

from __future__ import annotations

import itertools
import random
import re
import warnings
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bertkit.contracts import Example
from bertkit.optional import load
from bertkit.task_types.example_reports import texts_of
from bertkit.task_types.text_reader import TextExample
from bertkit.task_types.thresholds import EVEN, FEWEST_FOR_THRESHOLD, best_f1_threshold
from bertkit.text.marks import word_pattern

MOST_FREQUENT = "most frequent answer"
MEAN = "mean of train"
BEST_SINGLE = "best single answer"
BAG_OF_WORDS = "bag of words"

_MOST_EXAMPLES = 20_000
_MOST_CHARACTERS = 10_000_000
"""What a baseline is fitted on at most: more take minutes, and gain less than a point on SST-2."""

_TOLERANCE, _TOLERANCE_OF_CLASSES = 1e-4, 1e-3
"""The largest gradient at which a regression ends: scikit-learn's, and one that is divided by the number of classes,
as the gradients are. With the first alone a regression of 1,000 classes ends before its first step."""

_MOST_WEIGHTS = 10_000_000
"""Classes times features of a logistic regression, whose memory is 37 doubles for each: 3 GB."""

_HELD_FOR_THRESHOLD = 0.2
"""The share of train to choose thresholds on."""

_LONGEST_TEXT = 5_000
"""Characters of a text that are read."""

_CAPITAL_INSIDE = re.compile(r"[^a-z]*[a-z][^A-Z]*[A-Z]")
_MOST_CAPITALS_INSIDE = 0.02
"""The share of words with a capital after a small letter up to which case is ignored: Wikipedia has 0.0035, programs in
Python 0.04, chemical formulas (SMILES) 0.5 to 0.8."""

A = TypeVar("A", bound=Hashable)
E = TypeVar("E", bound=Example)


def most_frequent(answers: Sequence[A]) -> A:
    """The most frequent of several answers; of equally frequent ones the first."""
    return Counter(answers).most_common(1)[0][0]


def predict_classes(
    train: Sequence[TextExample], dev: Sequence[TextExample], weights: Mapping[str, float] | None = None
) -> list[str]:
    """The class of each dev example by logistic regression, on the features that most texts have if there are many
    classes; classes have the ``weights`` of the model's loss."""
    features, dev_features = _bag_of_words(train, dev)
    labels = [str(example.label) for example in train]
    if len(set(labels)) < 2:
        return [labels[0]] * len(dev)
    most = _MOST_WEIGHTS // len(set(labels))
    if features.shape[1] > most:
        kept = np.sort(np.argsort(-features.getnnz(axis=0), kind="stable")[:most])
        features, dev_features = features[:, kept], dev_features[:, kept]
    of_rows = [weights.get(label, 1.0) for label in labels] if weights else None
    model = _fit_logistic_regression(features, labels, of_rows)
    return [str(label) for label in model.predict(dev_features)]


def predict_mean(train: Sequence[TextExample], dev: Sequence[TextExample]) -> list[float]:
    """The mean of the numbers of train for each dev example."""
    return [float(_numbers_of(train).mean())] * len(dev)


def predict_numbers(train: Sequence[TextExample], dev: Sequence[TextExample]) -> list[float]:
    """The number of each dev example by ridge regression."""
    features, dev_features = _bag_of_words(train, dev)
    numbers = _numbers_of(train)
    mean = float(numbers.mean())
    model = (
        load("sklearn.linear_model")
        .Ridge(alpha=1.0, fit_intercept=False, solver="sparse_cg")
        .fit(features, numbers - mean)
    )
    predicted: NDArray[np.float64] = np.asarray(model.predict(dev_features)) + mean
    return [float(number) for number in predicted]


def _numbers_of(examples: Sequence[TextExample]) -> NDArray[np.float64]:
    return np.array([float(str(example.label)) for example in examples])


def predict_cosines(train: Sequence[TextExample], dev: Sequence[TextExample]) -> list[float]:
    """The cosine of the two texts of each dev example, by TF-IDF weights of character n-grams fitted on train."""
    vectorizer = character_ngrams()
    vectorizer.fit(itertools.chain(*_texts(train)))
    first, second = (vectorizer.transform(texts) for texts in _texts(dev))
    return [float(cosine) for cosine in np.asarray(first.multiply(second).sum(axis=1)).ravel()]


def predict_labels(
    train: Sequence[TextExample],
    dev: Sequence[TextExample],
    labels: Sequence[str],
    weights: Mapping[str, float] | None = None,
) -> list[tuple[str, ...]]:
    """The labels that apply to each dev example, by a logistic regression for each label.

    A label has a threshold of its own, like the model's; it is chosen on a fifth of train, by a regression on the rest.
    """
    features, dev_features = _bag_of_words(train, dev)
    is_held = np.random.default_rng(0).random(len(train)) < _HELD_FOR_THRESHOLD
    applies = np.zeros((len(dev), len(labels)), dtype=bool)
    for column, label in enumerate(labels):
        gold = np.array([isinstance(example.label, tuple) and label in example.label for example in train])
        if len(set(gold.tolist())) == 1:
            applies[:, column] = gold[0]
            continue
        threshold, of_rows = EVEN, np.where(gold, (weights or {}).get(label, 1.0), 1.0)
        if gold[is_held].sum() >= FEWEST_FOR_THRESHOLD and len(set(gold[~is_held].tolist())) == 2:
            model = _fit_logistic_regression(features[~is_held], gold[~is_held], of_rows[~is_held])
            threshold = best_f1_threshold(gold[is_held], model.predict_proba(features[is_held])[:, 1])
        found = _fit_logistic_regression(features, gold, of_rows).predict_proba(dev_features)[:, 1]
        applies[:, column] = found >= threshold
    return [tuple(label for label, applied in zip(labels, row, strict=True) if applied) for row in applies]


def sample_training(train: Sequence[E]) -> Sequence[E]:
    """What a baseline is fitted on: all examples, or as many as its limits on examples and characters allow.

    They are drawn at random, since the first rows of a file may all have one label, and keep their order.
    """
    order = list(range(len(train)))
    random.Random(0).shuffle(order)
    characters = [sum(map(len, texts_of(train[place]))) for place in order[:_MOST_EXAMPLES]]
    count = sum(total <= _MOST_CHARACTERS for total in itertools.accumulate(characters))
    return [train[place] for place in sorted(order[: max(count, 1)])]


def character_ngrams(*, lowercase: bool = True) -> Any:
    """TF-IDF weights of 2 to 5 characters within words."""
    return _tf_idf(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True, lowercase=lowercase)


def _tf_idf(**settings: object) -> Any:
    return load("sklearn.feature_extraction.text").TfidfVectorizer(**settings)


def _case_matters(texts: Sequence[str]) -> bool:
    """Whether many words have a capital after a small letter, as in formulas of chemistry and in programs."""
    words = list(itertools.chain.from_iterable(map(str.split, texts)))
    return sum(_CAPITAL_INSIDE.match(word) is not None for word in words) > _MOST_CAPITALS_INSIDE * len(words)


def _fit_logistic_regression(
    features: Any,
    answers: Sequence[str] | NDArray[np.bool_],
    weights: Sequence[float] | NDArray[np.float64] | None = None,
) -> Any:
    """The fitted regression, without scikit-learn's warning of very many classes; rows have these ``weights``.

    Its weights by class would take the class "1" for the number 1, and refuse it.
    """
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        tolerance = min(_TOLERANCE, _TOLERANCE_OF_CLASSES / len(set(answers)))
        model = load("sklearn.linear_model").LogisticRegression(max_iter=200, tol=tolerance)
        return model.fit(features, answers, sample_weight=weights)


def _bag_of_words(train: Sequence[TextExample], dev: Sequence[TextExample]) -> tuple[Any, Any]:
    """Features of train and dev as sparse matrices.

    Those of a pair are the difference of the texts, their product, and their cosines.

    The texts of a pair are no features of their own: with 2,000 examples of STS-B, Spearman is 0.74 without them and
    0.69 with them (the cosine of characters alone has 0.75).
    """
    first, second = _texts(train)
    texts = [*first, *second]
    lowercase = not _case_matters(texts)
    words = _tf_idf(ngram_range=(1, 2), sublinear_tf=True, token_pattern=word_pattern(), lowercase=lowercase)
    characters = character_ngrams(lowercase=lowercase)
    # Texts of emojis or punctuation have no words, which a vectorizer refuses.
    vectorizers = [words, characters] if any(map(re.compile(r"\w").search, texts)) else [characters]
    for vectorizer in vectorizers:
        vectorizer.fit(texts)

    sparse = load("scipy.sparse")

    def features(examples: Sequence[TextExample]) -> Any:
        first, second = _texts(examples)
        columns = []
        for vectorizer in vectorizers:
            one = vectorizer.transform(first)
            if second:
                other = vectorizer.transform(second)
                shared = one.multiply(other)
                columns += [abs(one - other), shared, shared.sum(axis=1)]
            else:
                columns.append(one)
        return sparse.csr_matrix(sparse.hstack(columns))

    return features(train), features(dev)


def _texts(examples: Sequence[TextExample]) -> tuple[list[str], list[str]]:
    """The first texts, and the second texts of pairs; a blank text becomes "-"."""
    first = [_shorten(example.first) for example in examples]
    second = [_shorten(example.second) for example in examples if example.second is not None]
    return first, second


def _shorten(text: str) -> str:
    shortened = text[:_LONGEST_TEXT]
    return shortened if shortened.strip() else "-"
