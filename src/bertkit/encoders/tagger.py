"""The tagger of ELMo's paper (Peters et al., arXiv 1802.05365): configuration and network (BERT's Table 7, ELMo's row).

Source: ``training_config/tagging/ner_elmo.jsonnet`` of allennlp-models. Words are GloVe vectors of 50 numbers, which
are trained, 128 filters of three characters, and ELMo with an L2 penalty of 0.1 on the weights of its mixture; the head
is a CRF (``objectives/crf_tagging.py``), which here also scores the first and the last tag of a sentence. It is trained
with Adam, learning rate 1e-3, batches of 64 sentences and gradients clipped at norm 5, for up to 75 epochs; 25 epochs
without improvement stop training.

Letters: B examples, T tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Bool
from torch import Tensor

from bertkit.batch import Batch, EncoderOutput
from bertkit.encoder_types.elmo_network import ElmoConfig
from bertkit.encoder_types.spec import EncoderSpec
from bertkit.encoder_types.words import WordEncoder, WordReaderConfig
from bertkit.nn.dropout import Dropout
from bertkit.nn.lstm import BiLstm
from bertkit.nn.pooler import max_pool
from bertkit.ranges import Layers, ShareBelowOne, Width, check_ranges
from bertkit.text.words import WordLevel


@dataclass(frozen=True, kw_only=True)
class TaggerConfig:
    """The hyper-parameters of the tagger; defaults are the published ones.

    ``hidden_size`` is the width of one direction. ``dropout`` acts on the input of every layer and on the output of the
    last.
    """

    words: WordReaderConfig
    hidden_size: Width = 200
    num_layers: Layers = 2
    dropout: ShareBelowOne = 0.5

    def __post_init__(self) -> None:
        check_ranges(self)


class Tagger(WordEncoder):
    """Words, and a BiLSTM over them. ``pooled`` is the maximum of each dimension over a row."""

    config: TaggerConfig
    reader_defaults: ClassVar[Mapping[str, object]] = {
        "vector_size": 50,
        "train_vectors": True,
        "filters": ((3, 128),),
        "elmo_dropout": 0.0,
        "mixture_l2": 0.1,
    }

    def __init__(self, config: TaggerConfig) -> None:
        super().__init__(config)
        self.hidden_size = 2 * config.hidden_size
        self.num_layers = config.num_layers
        self.lstm = BiLstm(self.words.width, self.hidden_size, config.num_layers, config.dropout)
        self.dropout = Dropout(config.dropout)

    def forward(
        self, batch: Batch, positions: Bool[Tensor, "B T"] | None = None, *, output_hidden_states: bool = False
    ) -> EncoderOutput:
        """The states of all words; ``positions`` is ignored."""
        states = self.dropout(self.lstm(self.words(batch), batch.on_host.attention_mask))
        return EncoderOutput(hidden_states=states, pooled=max_pool(states, batch.attention_mask))


SPEC = EncoderSpec(
    title="ELMo's tagger",
    encoder=Tagger,
    config=TaggerConfig,
    load_tokenizer=WordLevel.load,
    embeddings=("words.",),
    model_type="elmo-tagger",
)


def tiny() -> Tagger:
    """A small network with sizes that differ from one another, for tests."""
    elmo = ElmoConfig(word_length=8, character_width=3, filters=((1, 4), (3, 2)), cell_size=11, projection_size=5)
    words = WordReaderConfig(
        vocab_size=101, word_length=8, vector_size=7, train_vectors=True, filters=((3, 5),), elmo=elmo, mixture_l2=0.1
    )
    return Tagger(TaggerConfig(words=words, hidden_size=9))
