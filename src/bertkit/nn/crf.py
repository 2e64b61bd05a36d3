"""A linear-chain conditional random field (Lafferty et al. 2001): scores of tag sequences, and the best sequence.

    score(y) = start[y_1] + sum_t emissions[t, y_t] + sum_t transitions[y_t, y_t+1] + end[y_T]
    log p(y) = score(y) - log_partition

Letters: B rows, T steps, S tags, R = S + 1 (the tags, and the start or end of the sequence).
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

_FORBIDDEN = -1e4
"""Lower than any difference between two sequences, and still finite."""


class Crf(nn.Module):
    """Transition scores between tags, and from the start and to the end of a sequence.

    ``allowed`` (R, R) says which transitions ``decode`` may use: its rows are the tag before, its columns the tag
    after; the last row is the start of the sequence, the last column its end. In training all transitions are allowed,
    as in allennlp (``conditional_random_field.py``).

    In all methods ``mask`` is True on the real steps, which come first in every row; a row without any scores 0.
    """

    def __init__(self, allowed: Bool[Tensor, "R R"]) -> None:
        super().__init__()
        tags = len(allowed) - 1
        self.transitions = nn.Parameter(torch.empty(tags, tags))
        self.start = nn.Parameter(torch.empty(tags))
        self.end = nn.Parameter(torch.empty(tags))
        self.register_buffer("constraints", torch.where(allowed, 0.0, _FORBIDDEN), persistent=False)
        self.constraints: Tensor
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """As in allennlp: transitions are Xavier-normal (Glorot and Bengio 2010), start and end are standard normal."""
        nn.init.xavier_normal_(self.transitions)
        nn.init.normal_(self.start)
        nn.init.normal_(self.end)

    def score(
        self, emissions: Float[Tensor, "B T S"], tags: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"]
    ) -> Float[Tensor, " B"]:
        """The score of each row's sequence ``tags``; ``emissions`` are the scores of every tag at every step."""
        emitted = emissions.gather(2, tags.unsqueeze(2)).squeeze(2).masked_fill(~mask, 0).sum(dim=1)
        moved = self.transitions[tags[:, :-1], tags[:, 1:]].masked_fill(~mask[:, 1:], 0).sum(dim=1)
        last = tags.gather(1, _find_last(mask)).squeeze(1)
        ends = (self.start[tags[:, 0]] + self.end[last]).masked_fill(~mask[:, 0], 0)
        return emitted + moved + ends

    def log_partition(self, emissions: Float[Tensor, "B T S"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, " B"]:
        """``log(sum_y exp(score(y)))`` over all sequences y, by the forward algorithm."""
        total = self.start + emissions[:, 0]
        for step, real in zip(emissions[:, 1:].unbind(1), mask[:, 1:].unsqueeze(2).unbind(1), strict=True):
            after = (total.unsqueeze(2) + self.transitions).logsumexp(dim=1) + step
            total = torch.where(real, after, total)  # on padding the total of the last real step stays
        return (total + self.end).logsumexp(dim=1).masked_fill(~mask[:, 0], 0)

    @torch.no_grad()
    def decode(self, emissions: Float[Tensor, "B T S"], mask: Bool[Tensor, "B T"]) -> Int[Tensor, "B T"]:
        """The allowed sequence with the highest score (Viterbi), any one of several equal ones; 0 on padding."""
        transitions = self.transitions + self.constraints[:-1, :-1]
        best = self.start + self.constraints[-1, :-1] + emissions[:, 0]
        back_pointers = []
        for step, real in zip(emissions[:, 1:].unbind(1), mask[:, 1:].unsqueeze(2).unbind(1), strict=True):
            scores, before = (best.unsqueeze(2) + transitions).max(dim=1)
            best = torch.where(real, scores + step, best)
            # On padding a tag points to itself, so the path starts at the last real step.
            back_pointers.append(torch.where(real, before, torch.arange(before.shape[1], device=before.device)))
        tag = (best + self.end + self.constraints[:-1, -1]).argmax(dim=1, keepdim=True)
        path = [tag]
        for pointers in reversed(back_pointers):
            tag = pointers.gather(1, tag)
            path.append(tag)
        return torch.cat(path[::-1], dim=1).masked_fill(~mask, 0)


def _find_last(mask: Bool[Tensor, "B T"]) -> Int[Tensor, "B 1"]:
    """The index of the last real step of every row; 0 in a row without any."""
    return (mask.sum(dim=1, keepdim=True) - 1).clamp(min=0)
