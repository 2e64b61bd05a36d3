"""The attention of every head of an encoder on one text.

Letters: L layers, N heads, T tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bertkit.batch import id_of
from bertkit.contracts import Encoder
from bertkit.data.features import assemble, collate
from bertkit.errors import UnsupportedError, usage_error
from bertkit.inference.encoder_pipeline import only_model
from bertkit.inference.pipeline import Pipeline
from bertkit.inference.texts import check_content, check_text
from bertkit.nn.attention import SelfAttention
from bertkit.results import Result


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AttentionMaps(Result):
    """``weights[l, n, i, j]`` (L, N, T, T): how much token i attends to token j in head n of layer l; rows sum to 1.

    ``tokens`` (T) are spelled as in the vocabulary. ``num_truncated`` tokens at the end of the text are left out.
    """

    tokens: tuple[str, ...]
    weights: NDArray[np.float32]
    num_truncated: int = 0


def read_attention(
    pipeline: Pipeline, text: str, pair: str | None = None, *, most_tokens: int | None = None
) -> AttentionMaps:
    """The attention on a text, or on a pair of texts.

    UnsupportedError for an encoder without attention; a usage error for more than ``most_tokens`` tokens.
    """
    tokenizer = pipeline.tokenizer
    second = None if pair is None else check_text(pair, "pair")
    feature = assemble(tokenizer, check_content(text, "text"), second, max_length=pipeline.max_length)
    tokens = tuple(tokenizer.id_to_token(id_of(id)) for id in feature.input_ids.tolist())
    if most_tokens is not None and len(tokens) > most_tokens:
        found = len(tokens) + feature.num_truncated
        raise usage_error(f"the text has {found:,} tokens; a page shows up to {most_tokens}: shorten it.")
    # Not pipeline.encoder, which would stay in memory beside the encoder that a server computes with.
    encoder = only_model(pipeline.models).load_encoder(mapped=True).to(pipeline.device).eval()
    batch = collate([feature], pad_id=tokenizer.pad_id).to(pipeline.device)
    weights = _record(encoder, lambda: encoder(batch, output_hidden_states=True))
    return AttentionMaps(tokens, weights, feature.num_truncated)


def _record(encoder: Encoder, run: Callable[[], object]) -> NDArray[np.float32]:
    """(L, N, T, T) of the layers that ``run`` computes; ``encoder``, in evaluation mode, is used for nothing else."""
    layers = [module for module in encoder.modules() if isinstance(module, SelfAttention)]
    if not layers:
        raise UnsupportedError(f"{type(encoder).__name__} has no attention: only transformers have it.")
    found: list[Tensor] = []

    def record(module: nn.Module, arguments: tuple[Any, ...]) -> None:
        assert isinstance(module, SelfAttention)
        found.append(module.probabilities(arguments[0], arguments[1])[0])

    for layer in layers:
        layer.register_forward_pre_hook(record)
    with torch.inference_mode():
        run()
    return torch.stack(found).float().cpu().numpy()
