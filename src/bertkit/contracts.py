"""The contracts of bertkit on one page: tokenizer, encoder, objective and task.

    text --Tokenizer--> ids --Task.encode--> Feature --collate--> Batch --Encoder--> EncoderOutput
         --Objective--> outputs, LossTerms --fit--> model --Task.decode--> predictions --Task.score--> metrics

Letters: B rows, T tokens, H hidden width.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import Field, dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
from jaxtyping import Bool
from numpy.typing import NDArray
from torch import Tensor, nn
from typing_extensions import TypeIs, TypeVar

from bertkit.batch import IGNORE, Batch, EncoderOutput, Feature, LossTerms, Outputs, Token
from bertkit.objective_settings import ObjectiveSettings
from bertkit.rng import CounterRng


class Tokens(NamedTuple):
    """The tokens of one text: their ``ids``, and the (start, end) characters of each in the text."""

    ids: list[Any]  # of Token: all int, or all tuples; a union of both lists could not be concatenated
    offsets: list[tuple[int, int]]


@runtime_checkable
class Tokenizer(Protocol):
    """Text to token ids and back. It adds no special tokens: a task does so when it builds a feature.

    A row is ``start_id``, a text, ``end_id``, with ``between_ids`` between the texts of a pair. For BERT these are
    [CLS] and [SEP]. If tokens are words with characters, special tokens have characters too.
    """

    vocab_size: int
    pad_id: int
    unk_id: int
    mask_id: int

    @property
    def cls_id(self) -> Token:
        """The token whose state represents the row."""

    @property
    def sep_id(self) -> Token:
        """The token that separates texts."""

    @property
    def start_id(self) -> Token:
        """The first token of a row."""

    @property
    def between_ids(self) -> Sequence[Token]:
        """The tokens between two texts."""

    @property
    def end_id(self) -> Token:
        """The last token of a row."""

    def encode(self, text: str) -> Tokens:
        """Tokenize one text."""

    def encode_batch(self, texts: Sequence[str]) -> list[Tokens]:
        """Tokenize many texts, in parallel if the library can."""

    def decode(self, ids: Sequence[int]) -> str:
        """Text from token ids."""


@runtime_checkable
class SubwordTokenizer(Tokenizer, Protocol):
    """A tokenizer with a vocabulary of subwords or words, which a model folder can store."""

    special_tokens: tuple[str, ...]  # which no text becomes

    @property
    def fingerprint(self) -> str:
        """A hash of the rules and the vocabulary: equal fingerprints mean the same ids for every text."""

    def encode(self, text: str, *, specials: bool = False) -> Tokens:
        """Tokenize one text; with ``specials`` a special token in the text, such as [MASK], is kept as that token."""

    def id_to_token(self, id: int) -> str:
        """The vocabulary entry with this id."""

    @property
    def continues_word(self) -> NDArray[np.bool_]:
        """(V,) True for subwords that continue a word; whole-word masking masks them together with its beginning."""

    def surface_form(self, id: int) -> tuple[str, bool]:
        """The characters of a subword without the marks of the vocabulary, and whether it continues a word."""

    def save(self, folder: Path) -> None:
        """Write the files of the tokenizer into ``folder``."""


@runtime_checkable
class BatchSource(Protocol):
    """The examples of a split, as batches on demand; ``batch`` is a pure function of its arguments."""

    def __len__(self) -> int: ...

    def batch(self, epoch: int, indices: NDArray[np.int64]) -> Batch:
        """These examples as they are in this epoch."""


@runtime_checkable
class ScheduledSource(BatchSource, Protocol):
    """A source whose examples change over a run, such as by a masking rate that falls."""

    def at(self, progress: float) -> BatchSource:
        """The examples when the share ``progress`` of the schedule is done, a pure function of it."""


@runtime_checkable
class OrderedSource(BatchSource, Protocol):
    """A source that decides the order of its examples, because each row continues a row of the batch before."""

    def num_batches(self, batch_size: int) -> int:
        """Number of batches in an epoch."""

    def order(self, batch_size: int, step: int) -> NDArray[np.int64]:
        """(B,) the indices of the examples in batch ``step``, row by row."""


@runtime_checkable
class EncoderConfig(Protocol):
    """The frozen dataclass that an encoder is built from, and nothing else.

    Fields with a common meaning have these names: ``vocab_size``, ``hidden_size``, ``num_layers``, ``num_heads``,
    ``max_positions``, ``pad_id``, ``dropout``, ``initializer_range``, and ``context`` if it is not "bidirectional".
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


RowKind = Literal["any", "pairs", "passages", "streams"]
"""The examples that an objective needs: pairs of segments in one row, the two halves of a text in two rows, streams in
which each row continues the row of the batch before, or any."""

Context = Literal["bidirectional", "causal", "two_directions"]
"""Which tokens the state of a token depends on: all of its row; itself and those before it; or, in one half of the
state, itself and those before it and in the other half itself and those after it (ELMo)."""


class Encoder(nn.Module, ABC):
    """A network from a batch to hidden states, built from its own frozen ``config`` alone.

    With a ``word_length`` a token is a word of that many characters and ``input_ids`` is (B, T, word_length), or in
    pre-training (B, T, 1 + word_length) with the id of the word before them. In a ``causal`` encoder no state depends
    on a later token. With ``gradient_checkpointing`` only the inputs of the blocks are stored for the backward pass,
    which computes each block again (Chen et al., arXiv 1604.06174): the same bits in less memory, a quarter slower.
    """

    config: EncoderConfig
    hidden_size: int
    num_layers: int
    word_length: int | None = None
    causal: bool = False
    gradient_checkpointing: bool = False

    @abstractmethod
    def forward(
        self, batch: Batch, positions: Bool[Tensor, "B T"] | None = None, *, output_hidden_states: bool = False
    ) -> EncoderOutput:
        """Hidden states of these ``positions``, or of all; states at other positions are undefined.

        ``positions`` is on the host and never includes padding. The pooled state is always computed. With
        ``output_hidden_states`` the output has the states of every layer.
        """

    def count_macs(self, batch: Batch, positions: Bool[Tensor, "B T"], *, pooled: bool) -> int | None:
        """The multiply-accumulates that ``forward`` needs for these states, and for the ``pooled`` state if asked.

        None means that this encoder does not count them.
        """
        return None


class TokenEmbedding(Protocol):
    """An encoder whose token embeddings an objective can share as its output layer."""

    @property
    def token_embedding(self) -> nn.Embedding:
        """The table of token embeddings, (vocabulary, E). Objectives but ``mlm`` need E to be H."""


def has_token_embedding(encoder: object) -> TypeIs[TokenEmbedding]:
    """Whether it is a ``TokenEmbedding``. From Python 3.12 on isinstance does not find the submodules of a module."""
    return hasattr(encoder, "token_embedding")


class PredictionLayer(Protocol):
    """An encoder with a layer of its own between its hidden states and the output layer of every objective.

    The objectives of pre-training and of fine-tuning share it, and a masked-LM head has no transform of its own.
    """

    @property
    def prediction_head(self) -> nn.Module:
        """From hidden states (..., H) to what an output layer reads, (..., H)."""


def has_prediction_head(encoder: object) -> TypeIs[PredictionLayer]:
    """Whether it is a ``PredictionLayer``."""
    return hasattr(encoder, "prediction_head")


@runtime_checkable
class LayerStack(Protocol):
    """An encoder that is a stack of similar layers, the children of its submodule ``layers``.

    ``layer_decay``, ``reinit_layers``, the defaults of fine-tuning, and sharding need one.
    """

    def depth(self, name: str) -> int:
        """The layer of a parameter: 0 for embeddings, 1 for the first layer, ``num_layers + 1`` above the last."""

    def reinitialize_top(self, layers: int) -> None:
        """Initialise the last ``layers`` layers again, and everything above them."""


@runtime_checkable
class Stateful(Protocol):
    """An encoder that continues each row from the end of the same row of the batch before, while it is ``stateful``."""

    stateful: bool

    def state(self) -> dict[str, Tensor]:
        """What the next batch starts from."""

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Start the next batch from ``state``; from zeros if it is empty."""


@runtime_checkable
class Penalized(Protocol):
    """An encoder with an L2 penalty on some of its parameters."""

    def l2_penalties(self) -> Mapping[str, float]:
        """Parameter -> factor: the sum of its squares times this factor is added to the loss."""


class Objective(nn.Module, ABC):
    """A training objective: a head on the hidden states and its loss.

    ``label`` names the entry of ``Batch.labels`` that the loss reads; its loss term has the same name. A head that
    ``reads_pooled``, the pooled state, cannot be loaded from a folder without a pooler. With ``reads_layers`` the head
    takes the states of all layers, and with ``freezes_encoder`` as features of an encoder that is not trained.
    ``weight`` multiplies the loss. With ``predicts_vocabulary`` the loss is the negative log-likelihood of tokens,
    whose exponential is a perplexity. ``in_huggingface`` says that a class of Hugging Face computes the same head, and
    ``HF_NAMES`` maps the parameters to the names of that class; other heads keep their own names in the file.
    """

    label: str
    weight: float = 1.0
    reads_pooled: bool = True
    in_huggingface: bool = True
    reads_layers: ClassVar[bool] = False
    freezes_encoder: ClassVar[bool] = False
    predicts_vocabulary: ClassVar[bool] = False
    HF_NAMES: ClassVar[Mapping[str, tuple[str, ...]] | None] = None

    def reads(self, batch: Batch) -> Bool[Tensor, "B T"] | None:
        """Where ``forward`` reads hidden states, besides the pooled one; None for all. ``batch`` is on the host."""
        return None

    @abstractmethod
    def forward(self, states: EncoderOutput, batch: Batch) -> Outputs:
        """The outputs of the head, by name."""

    @abstractmethod
    def loss(self, outputs: Outputs, batch: Batch) -> LossTerms:
        """The loss, summed over the labels."""

    def metrics(self, outputs: Outputs, batch: Batch) -> LossTerms:
        """Counts of a held-out evaluation in pre-training, such as correct predictions out of ``count``."""
        return {}

    def count_macs(self, batch: Batch) -> int:
        """The multiply-accumulates of ``forward`` on ``batch``; 0 means that this objective does not count them."""
        return 0

    def counts(self, batch: Batch) -> dict[str, int]:
        """The number of labels of each loss term, from the labels alone."""
        return {self.label: int((batch.on_host.labels[self.label] != IGNORE).sum())}


class PretrainingObjective(Objective):
    """An objective whose labels are made from the text itself; ``task.objectives`` names its file.

    ``context`` is what the encoder must be, None for any. ``rows`` are the examples it needs; those of "pairs" come
    with ``labels["nsp"]``, 0 where the second segment follows the first and 1 where it is random, and those of
    "passages" with ``labels["passages"]``. With ``compares_examples`` the loss of an example depends on the others of
    its micro-batch. One that ``reads_masking`` reads ``settings.masking``, which are refused where none does.
    ``pipeline_tag`` is Hugging Face's name for what such a model is for.

    Labels are built in the order of ``task.objectives``; each objective sees the changes that those before it made. One
    that replaces tokens comes last where the others are to predict the original; one that moves tokens comes first.
    """

    context: ClassVar[Context | None] = None
    rows: ClassVar[RowKind] = "any"
    compares_examples: ClassVar[bool] = False
    reads_masking: ClassVar[bool] = False
    pipeline_tag: ClassVar[str] = "feature-extraction"

    @classmethod
    @abstractmethod
    def build(cls, encoder: Encoder, settings: ObjectiveSettings) -> Self:
        """A new head for ``encoder``."""

    @classmethod
    def add_labels(
        cls, batch: Batch, rng: CounterRng, tokenizer: SubwordTokenizer, settings: ObjectiveSettings
    ) -> Batch:
        """``batch`` with ``labels[label]``, and with changed ``input_ids`` if the objective corrupts its input.

        ``batch`` has B rows, on the host. All randomness comes from ``rng``, whose ``uniform(name, T)`` is (B, T): an
        example depends on (seed, epoch, index) alone. Nothing is added where ``rows`` come with labels.
        """
        return batch

    @classmethod
    def default_settings(cls, vocab_size: int) -> Mapping[str, object]:
        """Settings of a run with this objective, by path, for a ``vocab_size``; the user's settings override them."""
        return {}


OutputArrays = Mapping[str, NDArray[np.floating]]
"""The outputs of the heads for one feature, by name, as NumPy arrays in float32."""


@runtime_checkable
class Example(Protocol):
    """What every example of a task has: an ``id``, and a ``label`` that is None where there is no gold answer."""

    @property
    def id(self) -> str:
        """The name of the example in a file of predictions."""

    @property
    def label(self) -> object:
        """The gold answer, or None."""


E = TypeVar("E", bound=Example, default=Any)
"""The type of a task's examples."""

P = TypeVar("P", default=Any)
"""The type of a task's predictions."""


@dataclass(frozen=True, kw_only=True)
class Task(ABC, Generic[E, P]):
    """A task of the user: how its examples are read, encoded, decoded and scored. Tasks are *values* of this type.

    ``metric`` is the score that picks the best epoch. ``labels`` are the class names, empty where the answer is not a
    class.
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
    def decode(self, example: E, features: Sequence[Feature], outputs: Sequence[OutputArrays]) -> P:
        """The prediction for one example from the outputs of its features."""

    @abstractmethod
    def score(self, examples: Iterable[E], predictions: Iterable[P]) -> dict[str, float]:
        """The official metrics of the task, by name; every example needs its gold answer."""
