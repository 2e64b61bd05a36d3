"""The vocabulary of bertkit on one page: the types that travel along the line, and the three contracts.

    text --Tokenizer--> ids --Task.encode--> Feature --collate--> Batch --Encoder--> EncoderOutput
         --Objective--> outputs, LossTerms --fit--> model --Task.decode--> predictions --Task.score--> metrics

Letters: B examples, T tokens, C characters of a word, H hidden width.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from bertkit.errors import usage_error

IGNORE = -100
"""Label of a position that has no label; every loss and every count passes over it."""

Token = int | tuple[int, ...]
"""A piece by its number, or a word that is also read as characters: its number and then theirs, always equally many."""


def number_of(token: Token) -> int:
    """The number of a piece, or of a word that also has characters."""
    return token if isinstance(token, int) else token[0]


Label = int | float | NDArray[Any]
Outputs = dict[str, Tensor]


class Tokens(NamedTuple):
    """One text cut into pieces: ``ids``, each a ``Token``, and its (start, end) characters in the original text."""

    ids: list[Any]
    offsets: list[tuple[int, int]]


@runtime_checkable
class Tokenizer(Protocol):
    """What the line needs of a tokenizer; special tokens are added by whoever assembles a feature.

    A row is ``start_id``, a text, ``end_id``; ``between_ids`` part the two of a pair. BERT has [CLS] and [SEP]. Where
    tokens are words with their characters, these are too, and ``pad_id`` fills all of a token.
    """

    vocab_size: int
    pad_id: int
    unk_id: int
    mask_id: int

    @property
    def cls_id(self) -> Token:
        """The piece whose state stands for a row."""
        ...

    @property
    def sep_id(self) -> Token:
        """The piece that parts texts."""
        ...

    @property
    def start_id(self) -> Token:
        """What begins a row."""
        ...

    @property
    def between_ids(self) -> Sequence[Token]:
        """What stands between two texts."""
        ...

    @property
    def end_id(self) -> Token:
        """What ends a row."""
        ...

    def encode(self, text: str) -> Tokens:
        """Cut one text."""
        ...

    def encode_batch(self, texts: Sequence[str]) -> list[Tokens]:
        """Cut many texts, in parallel where the library can."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Readable text from pieces."""
        ...


@runtime_checkable
class PieceTokenizer(Tokenizer, Protocol):
    """A tokenizer whose ids are pieces of words, as a model folder holds it."""

    @property
    def fingerprint(self) -> str:
        """Equal if and only if texts become the same ids."""
        ...

    def encode(self, text: str, *, specials: bool = False) -> Tokens:
        """Cut one text; with ``specials`` special pieces typed in it are what they stand for."""
        ...

    def piece(self, number: int) -> str:
        """The piece with this id."""
        ...

    @property
    def continues_word(self) -> NDArray[np.bool_]:
        """(V,) True for the pieces that continue a word, which whole-word masking takes together."""
        ...

    def word(self, number: int) -> tuple[str, bool]:
        """The letters of a piece without the marks of the vocabulary, and whether they continue the word before."""
        ...

    def save(self, folder: Path) -> None:
        """Write its files into ``folder``."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Feature:
    """One model input: ``[CLS] A [SEP]`` or ``[CLS] A [SEP] B [SEP]``, all arrays of length T.

    ``labels`` holds numbers, or arrays of length T or of one length for all. ``offsets`` (T, 2) are the characters of
    each token in its own text, (0, 0) for special tokens; they serve decoding and are never collated. ``cut`` counts
    the tokens of the text that found no room.

    With ``lengths`` it has K rows: choices, one of which is to be told, or a pair in both orders. Its arrays are K x T,
    and so many tokens of each row are real. Where tokens are words that are read as characters, ``input_ids`` has them
    in one more axis.
    """

    input_ids: NDArray[np.integer[Any]]
    segment_ids: NDArray[np.integer[Any]]
    labels: Mapping[str, Label] = field(default_factory=dict)
    offsets: NDArray[np.integer[Any]] | None = None
    cut: int = 0
    lengths: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return int(self.segment_ids.shape[-1])


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Collated features. ``attention_mask`` is True on real tokens; padding comes last in a row.

    Tokens are numbers, or words of C characters each for an encoder that reads those.

    Choices, and the orders of a pair, lie below each other, so that an encoder sees rows like any others: ``choices``
    says how many rows each of the E features has, and labels are those of features. Without it every row is a feature.

    ``host`` is what it was before it went to another device. Whoever needs a number of it to go on, a count or a
    shape, reads ``on_host``: to read it from the device is to wait until all that was asked of it is done.
    """

    input_ids: Int[Tensor, "B T *C"]
    segment_ids: Int[Tensor, "B T"]
    attention_mask: Bool[Tensor, "B T"]
    labels: Mapping[str, Tensor]
    choices: Int[Tensor, E] | None = None
    host: Batch | None = None

    def __len__(self) -> int:
        return len(self.input_ids)

    @property
    def on_host(self) -> Batch:
        """The same batch where its numbers are at hand."""
        return self if self.host is None else self.host

    @property
    def num_tokens(self) -> int:
        """Real tokens, padding not counted."""
        return int(self.on_host.attention_mask.sum())

    def to(self, device: torch.device) -> Batch:
        """The same batch on ``device``."""
        if device == self.input_ids.device:
            return self
        return replace(self._map(lambda tensor: tensor.to(device, non_blocking=True)), host=self.on_host)

    def pinned(self) -> Batch:
        """The same batch in memory that a GPU copies from by itself, while the processor goes on."""
        return self._map(Tensor.pin_memory)

    def with_labels(self, **labels: Tensor) -> Batch:
        """The same batch with more labels, while it is on the host."""
        assert self.host is None
        return replace(self, labels={**self.labels, **labels})

    def _map(self, change: Callable[[Tensor], Tensor]) -> Batch:
        return replace(
            self,
            input_ids=change(self.input_ids),
            segment_ids=change(self.segment_ids),
            attention_mask=change(self.attention_mask),
            labels={name: change(label) for name, label in self.labels.items()},
            choices=None if self.choices is None else change(self.choices),
        )


@runtime_checkable
class BatchSource(Protocol):
    """Every example of a split, as batches on demand; ``batch`` is a pure function of its arguments."""

    def __len__(self) -> int: ...

    def batch(self, epoch: int, indices: NDArray[np.int64]) -> Batch:
        """The batch of these examples as they are in this epoch."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class EncoderOutput:
    """``layers`` are the embeddings and then every block's output, the last being ``hidden_states``."""

    hidden_states: Float[Tensor, "B T H"]
    pooled: Float[Tensor, "B H"]
    layers: tuple[Float[Tensor, "B T H"], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class LossTerm:
    """A loss as a sum over ``count`` labels; beside other terms its mean counts ``weight`` times.

    Means are taken once a step, over everything in that step: a mean of micro-batch means weights
    masked tokens wrongly.
    """

    sum: Tensor
    count: int
    weight: float = 1.0


LossTerms = dict[str, LossTerm]


class Encoder(nn.Module, ABC):
    """A network from a batch to hidden states, built from its own frozen ``Config`` alone.

    With ``keep_layers`` its output has the states of every layer. With ``gradient_checkpointing`` a pass that has a
    gradient keeps the input of every block and no more, and computes the block again on the way back (Chen et al.,
    arXiv 1604.06174): the same bits in less memory and a third more time. With a ``word_length`` it reads words of so
    many characters, and not tokens. In a ``causal`` one no state depends on a later token. Where it is ``stateful`` a
    row goes on from what the row in its place left in the batch before; who cannot do that passes over it.
    """

    hidden_size: int
    num_layers: int
    word_length: int | None = None
    causal: bool = False
    keep_layers: bool = False
    gradient_checkpointing: bool = False
    stateful: bool = False

    @abstractmethod
    def forward(self, batch: Batch, wanted: Bool[Tensor, "B T"] | None = None) -> EncoderOutput:
        """Hidden states of the ``wanted`` positions, or of every one; the others hold what nobody reads.

        Padding is never wanted, and ``wanted`` is on the host. The pooled state is always there.
        """

    def depth(self, name: str) -> int:
        """The layer that a parameter belongs to: 0 below the first, above the last ``num_layers + 1``."""
        raise usage_error(f"{type(self).__name__} is no stack of like layers: leave out layer_decay.")

    def redraw(self, blocks: int) -> None:
        """Draw the last ``blocks`` layers anew, and whatever stands on them."""
        raise usage_error(f"{type(self).__name__} is no stack of like layers: leave out reinit_layers.")

    def draw_untrained(self) -> None:
        """Draw anew what no training and no file has given values to, so that each seed begins elsewhere."""

    def penalties(self) -> Mapping[str, float]:
        """Parameter -> what its squares are multiplied with, summed, and added to the loss."""
        return {}

    def carried(self) -> dict[str, Tensor]:
        """What a ``stateful`` encoder takes along to the next batch."""
        return {}

    def carry(self, carried: Mapping[str, Tensor]) -> None:
        """Go on from this; from nothing where it is empty."""

    def count_products(self, batch: Batch, wanted: Bool[Tensor, "B T"], *, pooled: bool) -> int:
        """The multiplications of ``forward`` that the ``wanted`` states, and the ``pooled`` ones, cannot do without.

        0 where nobody has counted them.
        """
        return 0


class Objective(nn.Module, ABC):
    """A question put to the hidden states, and its marking: a head and a loss.

    ``label`` names the entry of ``Batch.labels`` that it reads; it is also the name of its loss term. Without
    ``reads_pooled`` its head works on an encoder whose pooler was never trained. With ``reads_layers`` it takes the
    states of all layers as features: the encoder is not trained. Beside others its loss counts ``weight`` times.
    """

    label: str
    weight: float = 1.0
    reads_pooled: ClassVar[bool] = True
    reads_layers: ClassVar[bool] = False

    def reads(self, batch: Batch) -> Bool[Tensor, "B T"] | None:
        """The positions whose hidden states it will read; None for all. The pooled state is free.

        Asked of the batch on the host.
        """
        return None

    @abstractmethod
    def forward(self, states: EncoderOutput, batch: Batch) -> Outputs:
        """The head's answers, by name."""

    @abstractmethod
    def loss(self, outputs: Outputs, batch: Batch) -> LossTerms:
        """How wrong they are, summed over the labels."""

    @abstractmethod
    def hits(self, outputs: Outputs, batch: Batch) -> LossTerms:
        """Counts that are watched and not trained on, such as the right answers among ``count``."""

    def count_products(self, batch: Batch) -> int:
        """The multiplications of ``forward`` that the answers to ``batch`` need; 0 where nobody has counted them."""
        return 0

    def counts(self, batch: Batch) -> dict[str, int]:
        """How many labels each loss term will count, from the labels alone."""
        return {self.label: int((batch.on_host.labels[self.label] != IGNORE).sum())}


@dataclass(frozen=True, kw_only=True)
class Task(ABC):
    """Labelled (or label-free) text and how it is asked and marked; users name *values* of this type.

    ``metric`` is the score that picks the best epoch; higher is better. ``labels`` are the class names, empty
    where the answer is no class. Every example has a ``label``; None means that it has no gold answer, which
    is legal everywhere but in ``score``.
    """

    name: str
    metric: str
    labels: tuple[str, ...] = ()

    @abstractmethod
    def record(self) -> dict[str, Any]:
        """The task as plain JSON, enough to read and answer input again."""

    @abstractmethod
    def examples(self, split: str) -> Sequence[Any]:
        """The examples of ``train``, ``dev`` or ``test``, in the order of the file."""

    @abstractmethod
    def encode(self, example: Any, tokenizer: Tokenizer) -> list[Feature]:
        """One feature, or several windows of one example."""

    def encode_all(self, examples: Iterable[Any], tokenizer: Tokenizer) -> Iterator[tuple[Any, list[Feature]]]:
        """Every example with its features, in order; a task may look ahead to cut many texts at once."""
        return ((example, self.encode(example, tokenizer)) for example in examples)

    @abstractmethod
    def objectives(self, encoder: Encoder) -> dict[str, Objective]:
        """Fresh heads for this encoder, by name."""

    @abstractmethod
    def decode(self, example: Any, features: Sequence[Feature], outputs: Sequence[Mapping[str, NDArray[Any]]]) -> Any:
        """The answer to one example from the outputs of its features."""

    @abstractmethod
    def score(self, examples: Iterable[Any], predictions: Iterable[Any]) -> dict[str, float]:
        """The official metrics of the task."""
