"""ESIM (Chen et al., arXiv 1609.06038): configuration and network, as the baseline of SWAG (Table 4) has them.

Source: rowanz/swagaf ``swag_baselines/esim``. It is trained with Adam, learning rate 4e-4, batches of 32 examples and
gradients clipped at norm 10, for up to 75 epochs: an epoch without improvement on dev halves the rate, and five of them
stop training. Words are frozen GloVe 840B vectors of 300 numbers, or only ELMo's 1,024.

Letters: B examples, T tokens, S tokens of one text, H hidden width, W = 2 H, V = 4 H.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from bertkit.batch import Batch, EncoderOutput
from bertkit.encoder_types.spec import EncoderSpec
from bertkit.encoder_types.words import WordEncoder, WordReaderConfig
from bertkit.nn.alignment import align
from bertkit.nn.dropout import Dropout, RowDropout
from bertkit.nn.lstm import BiLstm
from bertkit.nn.pooler import max_pool, mean_pool
from bertkit.nn.segments import Part, split_segments
from bertkit.ranges import ShareBelowOne, Width, check_ranges
from bertkit.text.words import WordLevel


@dataclass(frozen=True, kw_only=True)
class EsimConfig:
    """The hyper-parameters of ESIM; defaults are those of SWAG's baseline.

    ``hidden_size`` is the width of one direction of both LSTMs and of the linear layers. ``dropout`` acts on the input
    of the LSTMs, with one mask for all words of a text, and before and after the last layer.
    """

    words: WordReaderConfig
    hidden_size: Width = 300
    dropout: ShareBelowOne = 0.5

    def __post_init__(self) -> None:
        check_ranges(self)


class Esim(WordEncoder):
    """Two texts are read, aligned word by word, compared and read again; ``pooled`` is the result for the pair.

    ``hidden_states`` are the states of words after the comparison. The texts are the segments of a row, with the words
    that begin and end them. If there is one text only, the second is empty and adds nothing.

    The last layer has the ReLU of SWAG's baseline, and not the tanh of the paper. A head's dropout on ``pooled`` is in
    addition to the dropout here.
    """

    config: EsimConfig
    reader_defaults: ClassVar[Mapping[str, object]] = {"vector_size": 300, "elmo_dropout": 0.0}

    def __init__(self, config: EsimConfig) -> None:
        super().__init__(config)
        self.hidden_size = width = config.hidden_size
        self.num_layers = 2
        self.encoding = BiLstm(self.words.width, 2 * width, num_layers=1, dropout=0)
        self.projection = nn.Linear(4 * 2 * width, width)
        self.composition = BiLstm(width, 2 * width, num_layers=1, dropout=0)
        self.output = nn.Linear(4 * 2 * width, width)
        self.row_dropout = RowDropout(config.dropout)
        self.dropout = Dropout(config.dropout)
        self.reset_untrained_parameters()

    def reset_untrained_parameters(self) -> None:
        """Initialise: linear layers uniform (Glorot and Bengio 2010) with biases of 0, LSTMs with torch's defaults."""
        self.words.reset_untrained_parameters()
        for lstm in (self.encoding, self.composition):
            lstm.reset_parameters()
        for layer in (self.projection, self.output):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(
        self, batch: Batch, positions: Bool[Tensor, "B T"] | None = None, *, output_hidden_states: bool = False
    ) -> EncoderOutput:
        """The states of all words; ``positions`` is ignored."""
        host, device = batch.on_host, batch.input_ids.device
        first, second = (part.to(device) for part in split_segments(host.segment_ids, host.attention_mask))
        words = self.words(batch)
        a, b = (self.encoding(self.row_dropout(part.take(words)), part.real) for part in (first, second))
        aligned_to_a, aligned_to_b = align(a, b, first.mask, second.mask)
        a, b = self._compare(a, aligned_to_a), self._compare(b, aligned_to_b)
        pooled = torch.cat([self._compose(a, first), self._compose(b, second)], dim=1)
        pooled = self.dropout(F.relu(self.output(self.dropout(pooled))))
        return EncoderOutput(hidden_states=first.put(a) + second.put(b), pooled=pooled)

    def _compare(self, own: Float[Tensor, "B S W"], aligned: Float[Tensor, "B S W"]) -> Float[Tensor, "B S H"]:
        """A word, what it is aligned with in the other text, their difference and their product."""
        return F.relu(self.projection(torch.cat([own, aligned, own - aligned, own * aligned], dim=2)))

    def _compose(self, compared: Float[Tensor, "B S H"], part: Part) -> Float[Tensor, "B V"]:
        """The mean and the maximum of a text's states."""
        states = self.composition(self.row_dropout(compared), part.real)
        return torch.cat([mean_pool(states, part.mask), max_pool(states, part.mask)], dim=1)


SPEC = EncoderSpec(
    title="ESIM",
    encoder=Esim,
    config=EsimConfig,
    load_tokenizer=WordLevel.load,
    embeddings=("words.",),
)


def tiny() -> Esim:
    """A small network with sizes that differ from one another, for tests."""
    reader = WordReaderConfig(vocab_size=101, word_length=7, vector_size=5, train_vectors=True)
    return Esim(EsimConfig(words=reader, hidden_size=7))
