"""BiLSTM+ELMo+Attn, GLUE's own baseline (Wang et al., arXiv 1804.07461; BERT's Table 1): configuration and network.

Source: nyu-mll/GLUE-baselines ``src/models.py`` with the settings of ``src/final_exps.sh``, ``elmo-attn``: words are
ELMo's layers alone, and the classifier has a hidden layer of 512. It is trained with Adam, learning rate 1e-4, batches
of 128 and texts truncated to 40 words, on one task or on all; the rate falls to a fifth if dev does not improve, and
five such falls stop training. That program has no hidden layer for STS-B; here all tasks have one.

Letters: B examples, T tokens, S tokens of one text, R tokens of the other, W width of both
directions, V = 4 W.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from bertkit.batch import Batch, EncoderOutput
from bertkit.encoder_types.elmo_network import ElmoConfig
from bertkit.encoder_types.spec import EncoderSpec
from bertkit.encoder_types.words import WordEncoder, WordReaderConfig
from bertkit.nn.alignment import align
from bertkit.nn.dropout import Dropout
from bertkit.nn.lstm import BiLstm
from bertkit.nn.pooler import max_pool
from bertkit.nn.segments import Part, split_segments
from bertkit.ranges import Layers, ShareBelowOne, Width, check_ranges
from bertkit.text.words import WordLevel


@dataclass(frozen=True, kw_only=True)
class BilstmAttentionConfig:
    """The hyper-parameters of the network; defaults are those of the published baseline.

    ``width`` is that of one direction of every LSTM. ``dropout`` acts on the input of the first and of the last LSTM
    and on states before pooling, not between layers. ``hidden_size`` is that of the classifier's hidden layer.
    """

    words: WordReaderConfig
    width: Width = 1500
    num_layers: Layers = 2
    hidden_size: Width = 512
    dropout: ShareBelowOne = 0.2

    def __post_init__(self) -> None:
        check_ranges(self)


class BilstmAttention(WordEncoder):
    """A BiLSTM reads every text; in a pair a second one reads each word with what it attends to in the other text.

    ``pooled`` is the hidden layer of the classifier, which is one layer for single texts and another for pairs. It
    reads the maximum over the words of a text; for a pair u, v those of both, |u - v| and u * v. ``hidden_states`` are
    the layer for single texts, applied to every word; no published task uses them.
    """

    config: BilstmAttentionConfig

    def __init__(self, config: BilstmAttentionConfig) -> None:
        super().__init__(config)
        self.hidden_size = config.hidden_size
        self.num_layers = config.num_layers
        both = 2 * config.width
        self.reading = BiLstm(self.words.width, both, config.num_layers, dropout=0)
        self.comparing = BiLstm(2 * both, both, num_layers=1, dropout=0)
        self.of_text = nn.Linear(both, config.hidden_size)
        self.of_pair = nn.Linear(4 * both, config.hidden_size)
        self.dropout = Dropout(config.dropout)

    def forward(
        self, batch: Batch, positions: Bool[Tensor, "B T"] | None = None, *, output_hidden_states: bool = False
    ) -> EncoderOutput:
        """The states of all words; ``positions`` is ignored."""
        host, device = batch.on_host, batch.input_ids.device
        first, second = (part.to(device) for part in split_segments(host.segment_ids, host.attention_mask))
        words = self.dropout(self.words(batch))
        a, b = (self.reading(part.take(words), part.real) for part in (first, second))
        states = self.dropout(first.put(a) + second.put(b))
        pooled = self.of_text(max_pool(states, batch.attention_mask))
        paired = second.real.any(dim=1, keepdim=True)
        if paired.any():
            pooled = torch.where(paired.to(device), self.of_pair(self._compare(a, b, first, second)), pooled)
        hidden = torch.tanh(self.of_text(states)).masked_fill(~batch.attention_mask.unsqueeze(2), 0)
        return EncoderOutput(hidden_states=hidden, pooled=torch.tanh(pooled))

    def _compare(
        self, a: Float[Tensor, "B S W"], b: Float[Tensor, "B R W"], first: Part, second: Part
    ) -> Float[Tensor, "B V"]:
        """[u; v; |u - v|; u * v] of two texts after attention."""
        aligned_to_a, aligned_to_b = align(a, b, first.mask, second.mask)
        u = self._compose(torch.cat([a, aligned_to_a], dim=2), first)
        v = self._compose(torch.cat([b, aligned_to_b], dim=2), second)
        return torch.cat([u, v, (u - v).abs(), u * v], dim=1)

    def _compose(self, states: Float[Tensor, "B S V"], part: Part) -> Float[Tensor, "B W"]:
        """The maximum of a text after the second LSTM, which reads ``states`` with the aligned states of the other."""
        return max_pool(self.dropout(self.comparing(self.dropout(states), part.real)), part.mask)


SPEC = EncoderSpec(
    title="BiLSTM with attention",
    encoder=BilstmAttention,
    config=BilstmAttentionConfig,
    load_tokenizer=WordLevel.load,
    embeddings=("words.",),
    model_type="bilstm-attention",
)


def tiny() -> BilstmAttention:
    """A small network with sizes that differ from one another, for tests."""
    elmo = ElmoConfig(word_length=7, character_width=3, filters=((1, 4), (3, 2)), cell_size=11, projection_size=5)
    reader = WordReaderConfig(vocab_size=101, word_length=7, elmo=elmo)
    return BilstmAttention(BilstmAttentionConfig(words=reader, width=5, hidden_size=9))
