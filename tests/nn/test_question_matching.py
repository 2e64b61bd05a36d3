"""Where the words of a question occur in a context."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

from bertkit.nn.init import initialize
from bertkit.nn.question_matching import RANGES, QuestionMatching

H = 20
WORDS = 9 * torch.eye(H)


def rows(*texts: tuple[list[int], list[int]]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]:
    """Embeddings, mask and segments of rows, and the length of the longest question: 0 is [CLS], 1 is [SEP]."""
    ids = [[0, *question, 1, *context, 1] for question, context in texts]
    width = max(map(len, ids))
    segments = [[0] * (len(question) + 2) + [1] * (len(context) + 1) for question, context in texts]
    padded = torch.tensor([[*row, *[0] * (width - len(row))] for row in ids])
    mask = torch.tensor([[place < len(row) for place in range(width)] for row in ids])
    longest = max(len(question) + 2 for question, _ in texts)
    return WORDS[padded], mask, torch.tensor([[*row, *[0] * (width - len(row))] for row in segments]), longest


def make(seed: int = 0) -> QuestionMatching:
    torch.manual_seed(seed)
    matching = QuestionMatching(H)
    initialize(matching)
    return matching


def shares_of(matching: QuestionMatching, *inputs: torch.Tensor | int) -> torch.Tensor:
    """The shares that the layer of the features reads."""
    read: list[torch.Tensor] = []
    handle = matching.dense.register_forward_pre_hook(lambda module, args: read.append(args[0]))
    matching(*inputs)
    handle.remove()
    return read[0][:, :, 3 * H :].detach()


def test_a_token_is_shown_how_much_of_the_question_is_near_it() -> None:
    question, context = [5, 6], [5, 7, 7, 7, 6, *[8] * 50, 6]
    embeddings, mask, segments, longest = rows((question, context))
    shares = shares_of(make(), torch.randn_like(embeddings), embeddings, mask, segments, longest)[0]
    rare, common = 1 / (0.3 + 1), 1 / (0.3 + 2)  # 6 occurs twice in the context, 5 once
    whole, first = rare + common, len(question) + 2
    for place in range(len(context)):
        for column, size in enumerate(RANGES):
            near = context[max(0, place - size) : place + size + 1]
            expected = (rare * (5 in near) + common * (6 in near)) / whole
            assert float(shares[first + place, column]) == pytest.approx(expected, abs=2e-3)
    weights = [1 / 0.3, rare, common, 1 / 0.3]  # [CLS] and [SEP] are found nowhere
    torch.testing.assert_close(shares[0], torch.full((len(RANGES),), whole / sum(weights)), atol=2e-3, rtol=0)
    assert not shares[1:first].any()


def test_an_answer_is_near_the_words_of_its_question_and_none_of_them() -> None:
    embeddings, mask, segments, longest = rows(([5, 6], [8] * 60 + [5, 7, 6] + [9] * 60))
    _, scores = make()(torch.randn_like(embeddings), embeddings, mask, segments, longest)
    best = scores[0].argmax(dim=0)
    assert best.tolist() == [4 + 61] * 2, "7 is between both words"
    assert not scores[0, :4].any()


def test_trained_importance_decides_which_words_count() -> None:
    matching, (embeddings, mask, segments, longest) = make(), rows(([5, 6], [5, *[8] * 90, 6]))
    with torch.no_grad():
        matching.importance[H + 6] = 1.0
    _, scores = matching(torch.zeros_like(embeddings), embeddings, mask, segments, longest)
    assert scores[0, 4 + 91 - 1, 0] > scores[0, 5, 0], "near 6 is better than near 5"


def test_a_row_does_not_depend_on_the_others() -> None:
    matching, short, long = make(), ([5, 6], [5, 7, 6]), ([5, 6, 7, 8, 9], [9] * 70)
    alone, both = rows(short), rows(short, long)
    states = torch.randn(2, both[0].shape[1], H)
    width = alone[0].shape[1]
    for one, other in zip(matching(states[:1, :width], *alone), matching(states, *both), strict=True):
        torch.testing.assert_close(one, other[:1, :width])


@pytest.mark.parametrize("texts", [([], [5]), ([5], []), ([], [])], ids=str)
def test_a_row_without_a_question_or_a_context_is_finite(texts: tuple[list[int], list[int]]) -> None:
    embeddings, mask, segments, longest = rows(texts, ([5, 6], [7, 5]))
    for found in make()(torch.randn_like(embeddings), embeddings, mask, segments, longest):
        assert found.isfinite().all()


def test_equal_embeddings_match_and_others_hardly() -> None:
    embeddings = F.normalize(torch.randn(1, 6, 256), dim=2)
    embeddings[0, 4] = embeddings[0, 1]
    mask, segments = torch.ones(1, 6) > 0, torch.tensor([[0, 0, 0, 1, 1, 1]])
    matching = QuestionMatching(256)
    initialize(matching)
    scores = matching(torch.zeros_like(embeddings), embeddings, mask, segments, 3)[1].detach()
    assert float(scores[0, 4, 0]) == pytest.approx(-8 + 1.6 + 4 + 4 + 1.6, abs=0.1)
    assert math.isclose(float(scores[0, 3, 0]), 1.6 + 4 + 4 + 1.6, abs_tol=0.2)
