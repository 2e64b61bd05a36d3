"""The attention flow layer of BiDAF (Seo et al., arXiv 1611.01603, section 2.4): query-aware states of a context.

Letters: B pairs, T tokens of the longest context, J of the longest query, W width of a token, V = 4 W.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from bertkit.nn.alignment import masked_softmax


class AttentionFlow(nn.Module):
    """Attention from context to query and from query to context, with trilinear scores ``s(h, u) = w . [h; u; h * u]``.

    ``similarity`` holds w. It has no bias, because a constant does not change either softmax.
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

        u~ is the mean of the query tokens, weighted by the softmax over j of s(h, u_j). h~ is one vector per row: the
        mean of the context tokens, weighted by the softmax over t of max_j s(h_t, u_j). Masks are True on real tokens.
        """
        scores = self._score(context, query)
        attended_query = masked_softmax(scores, query_mask.unsqueeze(1)) @ query
        best = scores.masked_fill(~query_mask.unsqueeze(1), torch.finfo(scores.dtype).min).amax(dim=2)
        attended_context = masked_softmax(best, context_mask).unsqueeze(1) @ context
        return torch.cat([context, attended_query, context * attended_query, context * attended_context], dim=2)

    def _score(self, context: Float[Tensor, "B T W"], query: Float[Tensor, "B J W"]) -> Float[Tensor, "B T J"]:
        """s(h, u) of all pairs. The parts of w are applied separately: [h; u; h * u] would be T x J x 3 W numbers."""
        context_weight, query_weight, product_weight = self.similarity.weight.squeeze(0).chunk(3)
        separate = (context @ context_weight).unsqueeze(2) + (query @ query_weight).unsqueeze(1)
        return separate + (context * product_weight) @ query.transpose(1, 2)
