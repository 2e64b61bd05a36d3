"""The bodies of requests. A field that is not listed is refused, so that a misspelt one is not ignored in silence."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from bertkit.inference.texts import Text

Count = Annotated[int, Meta(ge=1, le=100_000)]
Strategy = Literal["none", "simple", "first", "average", "max"]


class Request(Struct, forbid_unknown_fields=True, kw_only=True):
    """``model`` is the name of a loaded model; without it the first that can do the task."""

    model: str | None = None


class Parameters(Struct, forbid_unknown_fields=True, kw_only=True):
    """Base of the parameters of a task, and those of a task without any."""


class FillParameters(Parameters):
    """``targets`` are the only words to score."""

    targets: list[str] | None = None
    top_k: Count | None = None


class FillRequest(Request):
    """A text with a mask."""

    inputs: str
    parameters: FillParameters = field(default_factory=FillParameters)


class ClassifyParameters(Parameters):
    """``function_to_apply`` replaces the activation of the model."""

    function_to_apply: Literal["softmax", "sigmoid", "none"] | None = None
    top_k: Count | None = None
    truncate: bool | None = None


class PairOfTexts(Struct, forbid_unknown_fields=True):
    """A text, and perhaps a second one, as the pipelines of ``transformers`` take them."""

    text: str
    text_pair: str | None = None

    def plain(self) -> Text:
        """The text, or the pair as a tuple."""
        return self.text if self.text_pair is None else (self.text, self.text_pair)


class ClassifyRequest(Request):
    """A text or a pair, or a list of texts and pairs."""

    inputs: str | PairOfTexts | list[str | tuple[str, str] | PairOfTexts]
    truncate: bool | None = None
    parameters: ClassifyParameters = field(default_factory=ClassifyParameters)

    def texts(self) -> str | list[Text]:
        """The inputs with pairs as tuples."""
        if isinstance(self.inputs, str):
            return self.inputs
        listed = self.inputs if isinstance(self.inputs, list) else [self.inputs]
        return [each.plain() if isinstance(each, PairOfTexts) else each for each in listed]


class TagParameters(Parameters):
    """``stride`` is accepted for the sake of clients: long texts are read in windows anyway."""

    aggregation_strategy: Strategy = "simple"
    ignore_labels: list[str] | None = None
    stride: int | None = None


class TagRequest(Request):
    """A text or several."""

    inputs: str | list[str]
    parameters: TagParameters = field(default_factory=TagParameters)


class Question(Struct, forbid_unknown_fields=True):
    """A question about a text."""

    question: str
    context: str


class QuestionParameters(Parameters):
    """Lengths are in tokens. ``doc_stride`` is the overlap of two windows.

    Answers begin and end where tokens do, whatever ``align_to_words`` says. ``top_k`` and ``max_answer_len`` are
    bounded, because every window has ``top_k`` squared candidates.
    """

    align_to_words: bool | None = None
    doc_stride: Count | None = None
    handle_impossible_answer: bool | None = None
    max_answer_len: Annotated[int, Meta(ge=1, le=1000)] | None = None
    max_question_len: Count | None = None
    max_seq_len: Count | None = None
    top_k: Annotated[int, Meta(ge=1, le=100)] | None = None


class QuestionRequest(Request):
    """A question about a text."""

    inputs: Question
    parameters: QuestionParameters = field(default_factory=QuestionParameters)


class EmbedParameters(Parameters):
    """The fields of the request with these names, where a route or a client has its settings in ``parameters``."""

    normalize: bool | None = None
    truncate: bool | None = None
    dimensions: int | None = None


class EmbedRequest(Request):
    """A text, texts, or the token ids of one or of several; Hugging Face's and TEI's fields."""

    inputs: str | list[int | str | list[int]]
    normalize: bool | None = None
    truncate: bool | None = None
    truncation_direction: Literal["right", "left", "Right", "Left"] = "right"
    prompt_name: str | None = None
    dimensions: int | None = None
    encoding_format: Literal["float"] | None = None
    parameters: EmbedParameters | None = None

    def settings(self) -> EmbedParameters:
        """The fields of the request, and where one is not given that of its ``parameters``."""
        given = self.parameters or EmbedParameters()
        return EmbedParameters(
            normalize=given.normalize if self.normalize is None else self.normalize,
            truncate=asks_to_truncate(self),
            dimensions=given.dimensions if self.dimensions is None else self.dimensions,
        )


class Sentences(Struct, forbid_unknown_fields=True):
    """A sentence and those that it is compared with."""

    source_sentence: str
    sentences: list[str]


class SimilarityParameters(Parameters):
    """TEI's parameters."""

    truncate: bool | None = None
    truncation_direction: Literal["right", "Right"] = "right"
    prompt_name: str | None = None


class SimilarityRequest(Request):
    """Sentences to compare."""

    inputs: Sentences
    truncate: bool | None = None
    parameters: SimilarityParameters | None = None


class ZeroShotParameters(Parameters):
    """``multi_label``: each label is decided alone. ``truncate`` cuts off the end of the text."""

    candidate_labels: list[str]
    hypothesis_template: str | None = None
    multi_label: bool = False
    truncate: bool | None = None


class ZeroShotRequest(Request):
    """A text and candidate labels."""

    inputs: str
    parameters: ZeroShotParameters
    truncate: bool | None = None


class Choices(Struct, forbid_unknown_fields=True):
    """A prompt and the texts that may follow it."""

    prompt: str
    choices: list[str]


class ChooseRequest(Request):
    """A prompt with choices."""

    inputs: Choices
    parameters: Parameters | None = None


def asks_to_truncate(request: ClassifyRequest | EmbedRequest | SimilarityRequest | ZeroShotRequest) -> bool | None:
    """Whether long texts are cut, by the request's own field, as TEI has it, or by its parameters; None if unsaid."""
    if request.truncate is not None or request.parameters is None:
        return request.truncate
    return request.parameters.truncate
