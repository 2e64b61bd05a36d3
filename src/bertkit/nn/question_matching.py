"""Where the words of a question occur in a context, for a head that looks for the answer near them.

Letters: B rows, T tokens, S tokens of the longest question, H hidden width.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from bertkit.nn.alignment import masked_softmax

RANGES = (0, 2, 6, 15, 40)
"""How many tokens before and after a token are near it: the token alone, a phrase, a sentence, several."""

_NEAR_ANSWERS = (-8.0, 1.6, 4.0, 4.0, 1.6)
"""The initial weights of the shares in ``RANGES`` for both scores: an answer is near the words of its question, and is
none of them. With initial weights near 0 the scores did not learn it from 2,000 questions (docs/decisions.md)."""

_SHARPNESS = 10.0
"""Two tokens match by exp(10 (cosine - 1)) of their embeddings: 1 for the same word, 0.007 for a cosine of 0.5."""

_UNIQUE = 0.3
"""Added to the number of tokens that match a token of the question. It is rare if there are few."""

_SCALE = 10.0
"""A factor of trained weights, which an optimizer changes by its learning rate per step, whatever their scale."""


class QuestionMatching(nn.Module):
    """Features of the tokens of a context, and scores for the start and the end of the answer to a question.

    A token of the question weighs more the fewer tokens of the context match it, and by a trained linear function of
    its state. Each token of the context is shown how much of the question, by these weights, is found within each of
    ``RANGES``, as a share of what the whole context has. A trained combination of these shares is added to the scores
    that a head makes from the features (the exact match and aligned question of Chen et al., arXiv 1704.00051, section
    3.2, here with distances).
    """

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.importance = nn.Parameter(torch.zeros(2 * hidden_size))
        self.near = nn.Parameter(torch.tensor([_NEAR_ANSWERS, _NEAR_ANSWERS]) / _SCALE)
        self.dense = nn.Linear(3 * hidden_size + len(RANGES), hidden_size)

    def forward(
        self,
        states: Float[Tensor, "B T H"],
        embeddings: Float[Tensor, "B T H"],
        mask: Bool[Tensor, "B T"],
        segment_ids: Int[Tensor, "B T"],
        longest: int,
    ) -> tuple[Float[Tensor, "B T H"], Float[Tensor, "B T 2"]]:
        """Features, and scores that are 0 outside the context; the first segment is the question.

        No question has more than ``longest`` tokens, the special ones included. The features of the first token show
        how much of the question the context has, for the score of no answer.
        """
        context, question = mask & (segment_ids == 1), (mask & (segment_ids == 0))[:, :longest]
        with torch.autocast(states.device.type, enabled=False):  # in bfloat16 cosines near 1 are multiples of 1/256
            alike = _match(embeddings.float(), question, context)
            both = torch.cat([states, embeddings], dim=2)[:, :longest].float()
            logits = _SCALE * (both @ self.importance) - torch.log(_UNIQUE + alike.sum(dim=1))
            weights = masked_softmax(logits, question).unsqueeze(1)
            total = weights @ alike.amax(dim=1).unsqueeze(2)
            found = torch.cat([weights @ each for each in _spread(alike.transpose(1, 2))], dim=1).transpose(1, 2)
            shares = found / total.clamp_min(1e-6) * context.unsqueeze(2)
            scores = _SCALE * shares @ self.near.T
            asked = (weights @ states[:, :longest].float()).expand_as(states)
            is_first = (torch.arange(mask.shape[1], device=mask.device) == 0)[:, None]
            shares = torch.where(is_first, total, shares)
        tokens = torch.cat([states, embeddings, asked.to(states.dtype), shares.to(states.dtype)], dim=2)
        return F.gelu(self.dense(tokens)), scores


def _match(
    embeddings: Float[Tensor, "B T H"], question: Bool[Tensor, "B S"], context: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T S"]:
    """How similar each token of the context is to each token of the question, from 0 to 1; 0 for all other tokens.

    The last token of a row is a separator, which would match those of the question.
    """
    directions = F.normalize(embeddings, dim=2)
    alike = torch.exp(_SHARPNESS * (directions @ directions[:, : question.shape[1]].transpose(1, 2) - 1))
    inside = context & context.roll(-1, dims=1)
    return alike * (inside.unsqueeze(2) & question.unsqueeze(1))


def _spread(alike: Float[Tensor, "B S T"]) -> list[Float[Tensor, "B S T"]]:
    """The greatest entry within each of ``RANGES`` of a token, for each token of the question."""
    spread = [alike]
    for near, far in pairwise(RANGES):  # in two dimensions, because max_pool1d cannot be exported for any length
        reach = far - near
        spread.append(F.max_pool2d(spread[-1].unsqueeze(1), (1, 2 * reach + 1), 1, (0, reach)).squeeze(1))
    return spread
