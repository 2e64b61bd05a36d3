"""The vocabulary of bertkit on one page: the types that travel along the line, and the three contracts.

    text --Tokenizer--> ids --Task.encode--> Feature --collate--> Batch --Encoder--> EncoderOutput
         --Objective--> outputs, LossTerms --fit--> model --Task.decode--> predictions --Task.score--> metrics

Letters: B examples, T tokens, C characters of a word, H hidden width.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool
from numpy.typing import NDArray
from torch import Tensor, nn
from typing_extensions import TypeVar

from bertkit.batch import IGNORE, Batch, EncoderOutput, Feature, LossTerms, Outputs, Token
from bertkit.errors import usage_error


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
class SubwordTokenizer(Tokenizer, Protocol):
    """A tokenizer whose ids are pieces of words, as a model folder holds it."""

    @property
    def fingerprint(self) -> str:
        """Equal if and only if texts become the same ids."""
        ...

    def encode(self, text: str, *, specials: bool = False) -> Tokens:
        """Cut one text; with ``specials`` special pieces typed in it are what they stand for."""
        ...

    def id_to_token(self, id: int) -> str:
        """The piece with this id."""
        ...

    @property
    def continues_word(self) -> NDArray[np.bool_]:
        """(V,) True for the pieces that continue a word, which whole-word masking takes together."""
        ...

    def surface_form(self, id: int) -> tuple[str, bool]:
        """The letters of a piece without the marks of the vocabulary, and whether they continue the word before."""
        ...

    def save(self, folder: Path) -> None:
        """Write its files into ``folder``."""
        ...


@runtime_checkable
class BatchSource(Protocol):
    """Every example of a split, as batches on demand; ``batch`` is a pure function of its arguments."""

    def __len__(self) -> int: ...

    def batch(self, epoch: int, indices: NDArray[np.int64]) -> Batch:
        """The batch of these examples as they are in this epoch."""
        ...


class Encoder(nn.Module, ABC):
    """A network from a batch to hidden states, built from its own frozen ``Config`` alone.

    With ``output_hidden_states`` its output has the states of every layer. With ``gradient_checkpointing`` a pass that
    has a gradient keeps the input of every block only, and computes the block again in the backward pass (Chen et al.,
    arXiv 1604.06174): the same bits in less memory and a third more time. With a ``word_length`` it reads words of so
    many characters, and not tokens. In a ``causal`` one no state depends on a later token. Where it is ``stateful`` a
    row goes on from what the row in its place left in the batch before; who cannot do that passes over it.
    """

    hidden_size: int
    num_layers: int
    word_length: int | None = None
    causal: bool = False
    output_hidden_states: bool = False
    gradient_checkpointing: bool = False
    stateful: bool = False

    @abstractmethod
    def forward(self, batch: Batch, positions: Bool[Tensor, "B T"] | None = None) -> EncoderOutput:
        """Hidden states where ``positions`` is True, or everywhere without it; the other entries are arbitrary.

        ``positions`` is on the host and never True on padding. The pooled state is always there.
        """

    def depth(self, name: str) -> int:
        """The layer that a parameter belongs to: 0 below the first, above the last ``num_layers + 1``."""
        raise usage_error(f"{type(self).__name__} is no stack of like layers: leave out layer_decay.")

    def reinitialize_top(self, blocks: int) -> None:
        """Draw the last ``blocks`` layers anew, and whatever stands on them."""
        raise usage_error(f"{type(self).__name__} is no stack of like layers: leave out reinit_layers.")

    def reset_untrained_parameters(self) -> None:
        """Draw anew what no training and no file has given values to, so that each seed begins elsewhere."""

    def penalties(self) -> Mapping[str, float]:
        """Parameter -> what its squares are multiplied with, summed, and added to the loss."""
        return {}

    def state(self) -> dict[str, Tensor]:
        """What a ``stateful`` encoder takes along to the next batch."""
        return {}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Go on from this; from nothing where it is empty."""

    def count_macs(self, batch: Batch, positions: Bool[Tensor, "B T"], *, pooled: bool) -> int:
        """The multiplications of ``forward`` needed for the states at ``positions``, and for the ``pooled`` ones.

        0 where nobody has counted them.
        """
        return 0


class Objective(nn.Module, ABC):
    """A question put to the hidden states, and its marking: a head and a loss.

    ``label`` names the entry of ``Batch.labels`` that it reads; it is also the name of its loss term. Without
    ``reads_pooled`` its head works on an encoder whose pooler was never trained. With ``reads_layers`` it takes the
    states of all layers as features: the encoder is not trained. Beside others its loss counts ``weight`` times. With
    ``predicts_vocabulary`` its loss is the negative log-likelihood of tokens, whose exponential is a perplexity.
    """

    label: str
    weight: float = 1.0
    reads_pooled: ClassVar[bool] = True
    reads_layers: ClassVar[bool] = False
    predicts_vocabulary: ClassVar[bool] = False

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
    def metrics(self, outputs: Outputs, batch: Batch) -> LossTerms:
        """Counts that are watched and not trained on, such as the right answers among ``count``."""

    def count_macs(self, batch: Batch) -> int:
        """The multiplications of ``forward`` that the answers to ``batch`` need; 0 where nobody has counted them."""
        return 0

    def counts(self, batch: Batch) -> dict[str, int]:
        """How many labels each loss term will count, from the labels alone."""
        return {self.label: int((batch.on_host.labels[self.label] != IGNORE).sum())}


class Example(Protocol):
    """What every example of a task has: an ``id``, and a ``label`` that is None where there is no gold answer."""

    @property
    def id(self) -> str:
        """The name of the example in a file of predictions."""
        ...

    @property
    def label(self) -> object:
        """The gold answer, or None."""
        ...


E = TypeVar("E", bound=Example, default=Any)
"""The type of a task's examples."""

P = TypeVar("P", default=Any)
"""The type of a task's predictions."""


@dataclass(frozen=True, kw_only=True)
class Task(ABC, Generic[E, P]):
    """A task of the user: how its examples are read, encoded, decoded and scored. Tasks are *values* of this type.

    ``metric`` is the score that picks the best epoch; higher is better. ``labels`` are the class names, empty where
    the answer is not a class.
    """

    name: str
    metric: str
    labels: tuple[str, ...] = ()

    @abstractmethod
    def record(self) -> dict[str, Any]:
        """The task as JSON, from which it can be loaded again."""

    @abstractmethod
    def examples(self, split: str) -> Sequence[E]:
        """The examples of ``train``, ``dev`` or ``test``, in the order of the file."""

    @abstractmethod
    def encode(self, example: E, tokenizer: Tokenizer) -> list[Feature]:
        """One feature, or several windows of one example."""

    def encode_all(self, examples: Iterable[E], tokenizer: Tokenizer) -> Iterator[tuple[E, list[Feature]]]:
        """Every example with its features, in order; a task may tokenize many texts at once."""
        return ((example, self.encode(example, tokenizer)) for example in examples)

    @abstractmethod
    def objectives(self, encoder: Encoder) -> dict[str, Objective]:
        """Untrained heads for this encoder, by name."""

    @abstractmethod
    def decode(self, example: E, features: Sequence[Feature], outputs: Sequence[Mapping[str, NDArray[Any]]]) -> P:
        """The prediction for one example from the outputs of its features."""

    @abstractmethod
    def score(self, examples: Iterable[E], predictions: Iterable[P]) -> dict[str, float]:
        """The official metrics of the task, by name; every example needs its gold answer."""
