"""Multi-head self-attention (Vaswani et al. 2017, section 3.2), bidirectional.

Letters: B examples, T tokens, H hidden width, N heads, D width of a head (H / N).
"""

from __future__ import annotations

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F


class SelfAttention(nn.Module):
    """Every token reads every real token of its row.

    ``qkv`` maps H to 3H, queries, keys and values in one product; ``output`` maps H to H. ``dropout`` is
    the rate on the attention probabilities, in training only.
    """

    def __init__(self, *, qkv: nn.Linear, output: nn.Linear, num_heads: int, dropout: float) -> None:
        super().__init__()
        self.qkv = qkv
        self.output = output
        self.num_heads = num_heads
        self.dropout = dropout

    def forward(self, states: Float[Tensor, "B T H"], mask: Bool[Tensor, "B T"] | None) -> Float[Tensor, "B T H"]:
        """New states from old ones. ``mask`` is True on real tokens, or None where all are real.

        Padding is never read, but it reads like any other token, as in the reference code.
        """
        rows, tokens, hidden = states.shape
        parts = self.qkv(states).view(rows, tokens, 3, self.num_heads, hidden // self.num_heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        readable = None if mask is None else mask[:, None, None, :]
        rate = self.dropout if self.training else 0.0
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=readable, dropout_p=rate)
        new_states: Tensor = self.output(mixed.transpose(1, 2).reshape(rows, tokens, hidden))
        return new_states
