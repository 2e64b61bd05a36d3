"""The attention flow of BiDAF (Seo et al., arXiv 1611.01603, section 2.4): a context that has read the query.

Letters: B pairs, T tokens of the longest context, J of the longest query, W width of a token, V = 4 W.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from bertkit.nn.alignment import masked_softmax


class AttentionFlow(nn.Module):
    """The score of a token h of the context with a token u of the query is that of [h; u; h * u] by one vector.

    ``similarity`` has no bias, which both softmaxes would take out again.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.similarity = nn.Linear(3 * width, 1, bias=False)

    def forward(
        self,
        context: Float[Tensor, "B T W"],
        query: Float[Tensor, "B J W"],
        context_mask: Bool[Tensor, "B T"],
        query_mask: Bool[Tensor, "B J"],
    ) -> Float[Tensor, "B T V"]:
        """[h; u~; h * u~; h * h~] for every token h of the context.

        u~ is what it finds in the query, and h~, the same for all of a row, what the query finds in the context: the
        tokens that any word of the query is like. Masks are true on real tokens.
        """
        scores = self._score(context, query)
        found = masked_softmax(scores, query_mask.unsqueeze(1)) @ query
        best = scores.masked_fill(~query_mask.unsqueeze(1), torch.finfo(scores.dtype).min).amax(dim=2)
        sought = masked_softmax(best, context_mask).unsqueeze(1) @ context
        return torch.cat([context, found, context * found, context * sought], dim=2)

    def _score(self, context: Float[Tensor, "B T W"], query: Float[Tensor, "B J W"]) -> Float[Tensor, "B T J"]:
        """The products of all pairs without the pairs themselves, which would be T x J x W numbers."""
        of_context, of_query, of_both = self.similarity.weight.squeeze(0).chunk(3)
        alone = (context @ of_context).unsqueeze(2) + (query @ of_query).unsqueeze(1)
        return alone + (context * of_both) @ query.transpose(1, 2)
