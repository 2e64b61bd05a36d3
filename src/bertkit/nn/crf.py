"""A linear-chain conditional random field (Lafferty et al. 2001): scores of whole sequences of tags, and the best one.

The score of a sequence is the sum of what each step says to its tag, what each tag says to the next, and what the
first and the last say to the beginning and the end.

Letters: B rows, T steps, S tags, R = S + 1.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

_FORBIDDEN = -1e4
"""More than any two sequences differ in, and still finite."""


class Crf(nn.Module):
    """What tags say to each other. ``allowed`` (R, R) forbids some of that in the best sequence.

    Its row is the tag before and its column the one behind, the last of both the beginning and the end. In training
    nothing is forbidden, as in allennlp (``conditional_random_field.py``).

    Masks are true on the real steps, which come first in every row; a row without any scores 0.
    """

    def __init__(self, allowed: Bool[Tensor, "R R"]) -> None:
        super().__init__()
        tags = len(allowed) - 1
        self.transitions = nn.Parameter(torch.empty(tags, tags))
        self.start = nn.Parameter(torch.empty(tags))
        self.end = nn.Parameter(torch.empty(tags))
        self.register_buffer("barred", torch.where(allowed, 0.0, _FORBIDDEN), persistent=False)
        self.barred: Tensor
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """First values, as allennlp has them: transitions normal (Glorot and Bengio 2010), ends too."""
        nn.init.xavier_normal_(self.transitions)
        nn.init.normal_(self.start)
        nn.init.normal_(self.end)

    def score(
        self, said: Float[Tensor, "B T S"], tags: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"]
    ) -> Float[Tensor, " B"]:
        """The scores of these sequences; ``said`` is what each step says to every tag."""
        steps = said.gather(2, tags.unsqueeze(2)).squeeze(2).masked_fill(~mask, 0).sum(dim=1)
        moves = self.transitions[tags[:, :-1], tags[:, 1:]].masked_fill(~mask[:, 1:], 0).sum(dim=1)
        last = tags.gather(1, _find_last(mask)).squeeze(1)
        ends = (self.start[tags[:, 0]] + self.end[last]).masked_fill(~mask[:, 0], 0)
        return steps + moves + ends

    def log_partition(self, said: Float[Tensor, "B T S"], mask: Bool[Tensor, "B T"]) -> Float[Tensor, " B"]:
        """The logarithm of the sum of the exponentials of all sequences' scores."""
        total = self.start + said[:, 0]
        for step, real in zip(said[:, 1:].unbind(1), mask[:, 1:].unsqueeze(2).unbind(1), strict=True):
            after = (total.unsqueeze(2) + self.transitions).logsumexp(dim=1) + step
            total = torch.where(real, after, total)
        return (total + self.end).logsumexp(dim=1).masked_fill(~mask[:, 0], 0)

    @torch.no_grad()
    def decode(self, said: Float[Tensor, "B T S"], mask: Bool[Tensor, "B T"]) -> Int[Tensor, "B T"]:
        """The best sequence that is allowed (Viterbi), of equals one of them; 0 behind the end of a row."""
        moves = self.transitions + self.barred[:-1, :-1]
        best = self.start + self.barred[-1, :-1] + said[:, 0]
        came_from = []
        for step, real in zip(said[:, 1:].unbind(1), mask[:, 1:].unsqueeze(2).unbind(1), strict=True):
            found, before = (best.unsqueeze(2) + moves).max(dim=1)
            best = torch.where(real, found + step, best)
            came_from.append(torch.where(real, before, torch.arange(before.shape[1], device=before.device)))
        tag = (best + self.end + self.barred[:-1, -1]).argmax(dim=1, keepdim=True)
        path = [tag]
        for before in reversed(came_from):
            tag = before.gather(1, tag)
            path.append(tag)
        return torch.cat(path[::-1], dim=1).masked_fill(~mask, 0)


def _find_last(mask: Bool[Tensor, "B T"]) -> Int[Tensor, "B 1"]:
    """The last real step of every row; 0 where there is none."""
    return (mask.sum(dim=1, keepdim=True) - 1).clamp(min=0)
