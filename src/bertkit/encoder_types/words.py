"""Word representations for networks that read words: vectors, characters, and the layers of a frozen ELMo.

Letters: B examples, T tokens, E width of a word as it is read, H width of ELMo.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bertkit.batch import Batch
from bertkit.contracts import Encoder
from bertkit.encoder_types.elmo_network import Elmo, ElmoConfig
from bertkit.errors import usage_error
from bertkit.nn.character_cnn import CharacterCnn
from bertkit.nn.dropout import Dropout
from bertkit.nn.lstm import BiLstm
from bertkit.nn.mixture import ScalarMixture
from bertkit.nn.packing import PackedRows
from bertkit.ranges import (
    NonNegativeFloat,
    NonNegativeInt,
    ShareBelowOne,
    VocabularySize,
    Width,
    WordLength,
    check_ranges,
)
from bertkit.text.characters import NO_WORD, NUM_CHARACTERS, WORD_LENGTH


@dataclass(frozen=True, kw_only=True)
class WordReaderConfig:
    """The parts of a word representation, at least one of which is present.

    * A vector of ``vector_size`` numbers (0: no vectors) for each of ``vocab_size`` words; it is trained only with
      ``train_vectors``.
    * A CNN over the ``word_length`` characters of a word; its ``filters`` are pairs (width, number of filters).
    * A weighted mean of the layers of ``elmo``, with ``elmo_dropout``. The squares of its weights times ``mixture_l2``
      are added to the loss.
    """

    vocab_size: VocabularySize
    word_length: WordLength = WORD_LENGTH
    vector_size: NonNegativeInt = 0
    train_vectors: bool = False
    character_width: Width = 16
    filters: tuple[tuple[Width, Width], ...] = ()
    elmo: ElmoConfig | None = None
    elmo_dropout: ShareBelowOne = 0.5
    mixture_l2: NonNegativeFloat = 0.0

    def __post_init__(self) -> None:
        check_ranges(self)
        if not (self.vector_size or self.filters or self.elmo):
            raise usage_error("words have neither vectors nor filters nor ELMo; configure at least one of them.")
        if self.elmo is not None and self.elmo.word_length != self.word_length:
            raise usage_error(
                f"word_length is {self.word_length}, but that of elmo is {self.elmo.word_length}; they must be equal."
            )


class WordReader(nn.Module):
    """The concatenation [vector; characters; mean of ELMo's layers] of every word, of those parts that are configured.

    ELMo reads every text of a row separately, without dropout, and is not trained; the weights of the mean are trained.
    """

    def __init__(self, config: WordReaderConfig) -> None:
        super().__init__()
        self.word_length = 1 + config.word_length  # the id of the word, then its characters
        self.mixture_l2 = config.mixture_l2
        self.vectors = (
            nn.Embedding(config.vocab_size, config.vector_size, padding_idx=0) if config.vector_size else None
        )
        self.characters = _build_characters(config) if config.filters else None
        self.elmo = Elmo(config.elmo).requires_grad_(False).eval() if config.elmo else None
        self.mixture = ScalarMixture(config.elmo.num_layers) if config.elmo else None
        self.dropout = Dropout(config.elmo_dropout)
        self.width = config.vector_size + sum(count for _, count in config.filters)
        if self.vectors is not None:
            self.vectors.requires_grad_(config.train_vectors)
        if self.elmo is not None:
            self.width += self.elmo.hidden_size

    def train(self, mode: bool = True) -> WordReader:
        """Switch dropout on or off; ELMo never has any."""
        super().train(mode)
        if self.elmo is not None:
            self.elmo.eval()
        return self

    def forward(self, batch: Batch) -> Float[Tensor, "B T E"]:
        """A vector for every word; values at padding are undefined.

        Raises a usage error if words have another length.
        """
        _, _, *length = batch.input_ids.shape
        if length != [self.word_length]:
            found = f"tokens of {length[0]} numbers" if length else "tokens without characters"
            raise usage_error(
                f"a batch has {found}; this model reads a word as {self.word_length}. Give it a `WordLevel` tokenizer."
            )
        parts = []
        if self.vectors is not None or self.characters is not None:
            layout = PackedRows.of(batch.on_host.attention_mask).to(batch.input_ids.device)
            words = layout.unpad(batch.input_ids)
            packed = [self.vectors(words[:, 0])] if self.vectors is not None else []
            packed += [self.characters(words[:, 1:])] if self.characters is not None else []
            parts.append(layout.pad(torch.cat(packed, dim=1)))
        if self.elmo is not None:
            parts.append(self._read_elmo(self.elmo, batch))
        return torch.cat(parts, dim=2)

    def reset_untrained_parameters(self) -> None:
        """Initialise everything but ELMo and the vectors with torch's defaults; the mixture as a plain mean."""
        if self.characters is not None:
            self.characters.reset_parameters()
        if self.mixture is not None:
            self.mixture.reset_parameters()

    def l2_penalties(self) -> Mapping[str, float]:
        """Parameter -> factor of the sum of its squares in the loss: the weights of the layers, and not their common
        factor (``scalar_parameters`` of allennlp's ``ScalarMix``)."""
        if self.mixture is None or not self.mixture_l2:
            return {}
        return {"mixture.weights": self.mixture_l2}

    def _read_elmo(self, elmo: Elmo, batch: Batch) -> Float[Tensor, "B T H"]:
        """The mixture of ELMo's layers; each text of a row is read separately."""
        assert self.mixture is not None
        device = batch.input_ids.device
        texts, text_layout, row_layout = _split_texts(batch.on_host)
        texts = texts.to(device)
        # In float32 whatever the precision of the training, as in predictions.
        with torch.no_grad(), torch.autocast(device.type, enabled=False):
            layers = elmo(texts, output_hidden_states=True).layers
        mixed = self.mixture(layers)
        return row_layout.to(device).pad(self.dropout(text_layout.to(device).unpad(mixed)))


class WordEncoder(Encoder):
    """An encoder that reads words through ``words``, as ``config.words`` says: a baseline for BERT.

    ``reader_defaults`` are the fields of ``WordReaderConfig`` in which the published network differs from the defaults.
    """

    reader_defaults: ClassVar[Mapping[str, object]] = {}

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config
        self.words = WordReader(config.words)
        self.word_length = self.words.word_length

    def reset_untrained_parameters(self) -> None:
        """Initialise again what is neither pre-trained nor read from a file, so that it differs between seeds.

        That is everything but ELMo and the vectors, here with torch's defaults.
        """
        self.words.reset_untrained_parameters()
        for part in self.children():
            if isinstance(part, BiLstm | nn.Linear):
                part.reset_parameters()

    def l2_penalties(self) -> Mapping[str, float]:
        """The penalties of the reader."""
        return {f"words.{name}": factor for name, factor in self.words.l2_penalties().items()}


def _build_characters(config: WordReaderConfig) -> CharacterCnn:
    embedding = nn.Embedding(NUM_CHARACTERS, config.character_width, padding_idx=NO_WORD)
    return CharacterCnn(embedding=embedding, filters=config.filters, activation=nn.ReLU())


def _split_texts(batch: Batch) -> tuple[Batch, PackedRows, PackedRows]:
    """Every text of a batch on the host as a row of its own, and the layouts of the tokens in the new and the old rows.

    The first text of a row comes before the second, so that both layouts have the tokens in the same order.
    """
    real = batch.attention_mask
    both = torch.stack([real & (batch.segment_ids == 0), real & (batch.segment_ids != 0)], dim=1)
    lengths = both.sum(dim=2).flatten()
    lengths = lengths[lengths > 0]
    mask = torch.arange(int(lengths.max())) < lengths[:, None]
    input_ids = batch.input_ids.new_zeros(*mask.shape, batch.input_ids.shape[2])
    input_ids[mask] = batch.input_ids[real]
    texts = Batch(
        input_ids=input_ids, segment_ids=torch.zeros_like(mask, dtype=torch.long), attention_mask=mask, labels={}
    )
    return texts, PackedRows.of(mask, rounded=False), PackedRows.of(real, rounded=False)
