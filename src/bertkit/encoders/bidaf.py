"""BiDAF (Seo et al., arXiv 1611.01603), alone and with ELMo (Table 2): configuration and network.

Sizes and settings are those of allenai/allennlp-models ``training_config/rc/bidaf_elmo.jsonnet``: words are frozen
lower-cased GloVe 6B vectors of 100 numbers, 100 filters over 5 characters each, and ELMo's 1,024. It is trained with
Adam, beta (0.9, 0.9), learning rate 1e-3, batches of 40 and gradients clipped at norm 5, for up to 20 epochs: three
epochs without improvement on dev halve the rate, and ten stop training.

Letters: B examples, T tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool
from torch import Tensor, nn

from bertkit.batch import Batch, EncoderOutput
from bertkit.encoder_types.spec import EncoderSpec
from bertkit.encoder_types.words import WordEncoder, WordReaderConfig
from bertkit.nn.attention_flow import AttentionFlow
from bertkit.nn.dropout import Dropout
from bertkit.nn.highway import Highway
from bertkit.nn.lstm import BiLstm
from bertkit.nn.segments import Part
from bertkit.ranges import ExtraLayers, Layers, ShareBelowOne, Width, check_ranges
from bertkit.text.words import WordLevel

_CARRY_BIAS = -1.0


@dataclass(frozen=True, kw_only=True)
class BidafConfig:
    """The hyper-parameters of BiDAF; defaults are the published ones.

    ``width`` is that of one direction of every LSTM. ``dropout`` acts on the input of every LSTM and of the heads, as
    in the paper.
    """

    words: WordReaderConfig
    width: Width = 100
    num_highways: ExtraLayers = 2
    num_modelling_layers: Layers = 2
    dropout: ShareBelowOne = 0.2

    def __post_init__(self) -> None:
        check_ranges(self)


class Bidaf(WordEncoder):
    """A context that attends to a query: ``hidden_states`` are [G; M; M2] of every word of the context.

    G is the attention flow, M the modelling layers over it, and M2 one more LSTM over M. In the paper starts are read
    from [G; M] and ends from [G; M2]; here a head reads all three for both. In allenai/allennlp-models M2 also reads
    the predicted start; in the paper and here it does not.

    The context is the first word ``<S>`` of a row, then the second segment. The score of ``<S>`` is that of "no
    answer", and its state is ``pooled``. The query is the first segment. The states of its words are 0, so a head gives
    all of them the same score, which training makes small.
    """

    config: BidafConfig
    reader_defaults: ClassVar[Mapping[str, object]] = {"vector_size": 100, "filters": ((5, 100),), "elmo_dropout": 0.0}

    def __init__(self, config: BidafConfig) -> None:
        super().__init__(config)
        both = 2 * config.width
        flowed = 4 * both
        self.hidden_size = flowed + both + both
        self.num_layers = config.num_modelling_layers + 2
        word = self.words.width
        self.highways = nn.Sequential(
            *(Highway(carry=nn.Linear(word, word), transform=nn.Linear(word, word)) for _ in range(config.num_highways))
        )
        self.contextual = BiLstm(word, both, num_layers=1, dropout=config.dropout)
        self.flow = AttentionFlow(both)
        self.modelling = BiLstm(flowed, both, config.num_modelling_layers, dropout=config.dropout)
        self.ending = BiLstm(both, both, num_layers=1, dropout=config.dropout)
        self.dropout = Dropout(config.dropout)
        self.reset_untrained_parameters()

    def reset_untrained_parameters(self) -> None:
        """Initialise with torch's defaults, and highways that carry most of their input."""
        self.words.reset_untrained_parameters()
        for lstm in (self.contextual, self.modelling, self.ending):
            lstm.reset_parameters()
        self.flow.similarity.reset_parameters()
        for highway in self.highways:
            assert isinstance(highway, Highway)
            highway.transform.reset_parameters()
            highway.carry.reset_parameters()
            nn.init.constant_(highway.carry.bias, _CARRY_BIAS)

    def forward(
        self, batch: Batch, positions: Bool[Tensor, "B T"] | None = None, *, output_hidden_states: bool = False
    ) -> EncoderOutput:
        """The states of all words of the context; ``positions`` is ignored."""
        context, query = (part.to(batch.input_ids.device) for part in _find_texts(batch.on_host))
        words = self.highways(self.words(batch))
        h, u = (self.contextual(part.take(words), part.real) for part in (context, query))
        flowed = self.flow(h, u, context.mask, query.mask)
        modelled = self.modelling(flowed, context.real)
        ended = self.ending(modelled, context.real)
        hidden = context.put(self.dropout(torch.cat([flowed, modelled, ended], dim=2)))
        return EncoderOutput(hidden_states=hidden, pooled=hidden[:, 0])


def _find_texts(host: Batch) -> tuple[Part, Part]:
    """The context, with the first word of the row before it, and the query."""
    in_query = host.attention_mask & (host.segment_ids == 0)
    in_context = host.attention_mask & (host.segment_ids == 1)
    in_context[:, 0] = True
    return Part.of(in_context), Part.of(in_query)


SPEC = EncoderSpec(
    title="BiDAF",
    encoder=Bidaf,
    config=BidafConfig,
    load_tokenizer=WordLevel.load,
    embeddings=("words.",),
)


def tiny() -> Bidaf:
    """A small network with sizes that differ from one another, for tests."""
    reader = WordReaderConfig(
        vocab_size=101, word_length=7, vector_size=7, train_vectors=True, character_width=3, filters=((3, 4),)
    )
    return Bidaf(BidafConfig(words=reader, width=3))
