"""The network of ELMo (Peters et al., arXiv 1802.05365), for its own file and for encoders that read its layers.

Letters: B examples, T words, E width of one direction, H = 2 E.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from bertkit.batch import Batch, EncoderOutput
from bertkit.contracts import Context, Encoder
from bertkit.errors import usage_error
from bertkit.nn.character_cnn import CharacterCnn
from bertkit.nn.dropout import Dropout
from bertkit.nn.highway import Highway
from bertkit.nn.packing import PackedRows
from bertkit.nn.pooler import pool_directions
from bertkit.nn.projected_lstm import LstmState, ProjectedLstm, reverse_rows
from bertkit.ranges import ExtraLayers, Layers, PositiveFloat, ShareBelowOne, Width, WordLength, check_ranges
from bertkit.text.characters import NO_WORD, NUM_CHARACTERS, WORD_LENGTH

FORWARD, BACKWARD = 0, 1

_ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh}


@dataclass(frozen=True, kw_only=True)
class ElmoConfig:
    """The hyper-parameters of the network; defaults are those of the published one.

    ``filters`` are pairs (width in characters, number of filters). An LSTM has ``cell_size`` cells, projected to
    ``projection_size`` outputs; both are clipped, None for no clipping. With ``skip_connections`` every layer but the
    first adds its input to its output. ``dropout`` acts on the input of every layer and on the output of the last
    (allenai/bilm-tf ``training.py``).
    """

    word_length: WordLength = WORD_LENGTH
    character_width: Width = 16
    filters: tuple[tuple[Width, Width], ...] = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
    activation: str = "relu"
    num_highways: ExtraLayers = 2
    num_layers: Layers = 2
    cell_size: Width = 4096
    projection_size: Width = 512
    cell_clip: PositiveFloat | None = 3.0
    projection_clip: PositiveFloat | None = 3.0
    skip_connections: bool = True
    dropout: ShareBelowOne = 0.1

    def __post_init__(self) -> None:
        check_ranges(self)
        for width, count in self.filters:
            if width > self.word_length:
                raise usage_error(f"filters has {width, count}; a width is at most word_length, {self.word_length}.")
        if not self.filters:
            raise usage_error("filters is empty; the network needs at least one.")
        if self.activation not in _ACTIVATIONS:
            raise usage_error(f'activation is "{self.activation}"; there are {", ".join(_ACTIVATIONS)}.')

    @property
    def context(self) -> Context:
        """Forward and backward states, each of its own direction."""
        return "two_directions"


class Elmo(Encoder):
    """Words from characters, and a stack of LSTMs in each direction; neither direction reads the states of the other.

    ``layers`` are the word vectors concatenated with themselves, then both directions of every layer concatenated.
    ``pooled`` is the final state of each direction: forward at the last word of a row, backward at the first. The words
    that begin and end a sentence have states like all others; the published programs remove them.

    With ``stateful`` a row starts from the final state of the same row of the batch before; gradients do not flow back
    to it, and ``load_state({})`` discards it. allenai/bilm-tf always does so. Without it rows are independent.
    """

    config: ElmoConfig

    def __init__(self, config: ElmoConfig) -> None:
        super().__init__()
        self.config = config
        self.word_length = config.word_length
        self.hidden_size = 2 * config.projection_size
        self.num_layers = config.num_layers
        width = sum(count for _, count in config.filters)
        self.words = CharacterCnn(
            embedding=nn.Embedding(NUM_CHARACTERS, config.character_width, padding_idx=NO_WORD),
            filters=config.filters,
            activation=_ACTIVATIONS[config.activation](),
        )
        self.highways = nn.Sequential(
            *(
                Highway(carry=nn.Linear(width, width), transform=nn.Linear(width, width))
                for _ in range(config.num_highways)
            )
        )
        same = width == config.projection_size
        self.projection = nn.Identity() if same else nn.Linear(width, config.projection_size)
        self.directions = nn.ModuleList(
            nn.ModuleList(_build_layer(config) for _ in range(config.num_layers)) for _ in (FORWARD, BACKWARD)
        )
        self.dropout = Dropout(config.dropout)
        self.stateful = False
        self._final_states: dict[tuple[int, int], LstmState] = {}
        _initialize(self)

    def state(self) -> dict[str, Tensor]:
        """The final state of every LSTM, row by row."""
        parts = {place: each._asdict() for place, each in self._final_states.items()}
        return {f"{side}.{layer}.{name}": each for (side, layer), part in parts.items() for name, each in part.items()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Start the next batch from this state; from zeros if it is empty."""
        self._final_states.clear()
        for side in (FORWARD, BACKWARD):
            for layer in range(self.num_layers) if state else ():
                parts = {name: state[f"{side}.{layer}.{name}"] for name in LstmState._fields}
                self._final_states[side, layer] = LstmState(**parts)

    def forward(
        self, batch: Batch, positions: Bool[Tensor, "B T"] | None = None, *, output_hidden_states: bool = False
    ) -> EncoderOutput:
        """The states of all words; ``positions`` is ignored, because an LSTM computes every word of a row anyway.

        If a word has one number more than ``word_length``, the first is the id of the word and is ignored. Raises a
        usage error if words have another number of characters.
        """
        words = self._read_words(batch)
        real = batch.attention_mask
        sides = [self._run(direction, words, real) for direction in (FORWARD, BACKWARD)]
        layers = [torch.cat(outputs, dim=2) for outputs in zip(*sides, strict=True)]
        hidden = self.dropout(layers[-1])
        kept = (torch.cat([words, words], dim=2), *layers[:-1], hidden) if output_hidden_states else ()
        pooled = pool_directions(hidden, batch.on_host.attention_mask)
        return EncoderOutput(hidden_states=hidden, pooled=pooled, layers=kept)

    def count_macs(self, batch: Batch, positions: Bool[Tensor, "B T"], *, pooled: bool) -> int:
        """The multiply-accumulates for all words: filters, highways, projection and LSTMs; ``positions`` is ignored."""
        config = self.config
        width = sum(count for _, count in config.filters)
        projection = 0 if isinstance(self.projection, nn.Identity) else width * config.projection_size
        per_word = self.words.count_macs(config.word_length) + config.num_highways * 2 * width * width + projection
        per_layer = 2 * config.projection_size * 4 * config.cell_size + config.cell_size * config.projection_size
        return batch.num_tokens * (per_word + 2 * config.num_layers * per_layer)

    def _read_words(self, batch: Batch) -> Float[Tensor, "B T E"]:
        """A vector for every real word; values at padding are undefined."""
        length = self.config.word_length
        _, _, *characters = batch.input_ids.shape
        if characters not in ([length], [1 + length]):
            found = f"words of {characters[0]} characters" if characters else "no characters"
            raise usage_error(f"a batch has {found}; this model reads words of {length}.")
        layout = PackedRows.of(batch.on_host.attention_mask).to(batch.input_ids.device)
        words = layout.unpad(batch.input_ids)[:, -length:]
        return layout.pad(self.projection(self.highways(self.words(words))))

    def _run(
        self, direction: int, words: Float[Tensor, "B T E"], real: Bool[Tensor, "B T"]
    ) -> list[Float[Tensor, "B T E"]]:
        """The outputs of all layers of one direction.

        The skip connection adds the input after dropout, as in allenai/bilm-tf.
        """
        states = words if direction == FORWARD else reverse_rows(words, real)
        layers = self.directions[direction]
        assert isinstance(layers, nn.ModuleList)
        outputs = []
        for number, layer in enumerate(layers):
            inputs = self.dropout(states)
            states, final = self._run_layer(layer, inputs, real, self._initial_state(direction, number, len(words)))
            if number and self.config.skip_connections:
                states = states + inputs
            if self.stateful:
                self._store(direction, number, final)
            outputs.append(states if direction == FORWARD else reverse_rows(states, real))
        return outputs

    def _run_layer(
        self, layer: nn.Module, states: Float[Tensor, "B T E"], real: Bool[Tensor, "B T"], start: LstmState | None
    ) -> tuple[Float[Tensor, "B T E"], LstmState]:
        """The output of a layer and the final state of every row."""
        if self.gradient_checkpointing and states.requires_grad:
            output: tuple[Tensor, LstmState] = checkpoint(layer, states, real, start, use_reentrant=False)
        else:
            output = layer(states, real, start)
        return output

    def _initial_state(self, direction: int, layer: int, rows: int) -> LstmState | None:
        """The initial state of ``rows`` rows; zeros for rows that the batch before did not have."""
        stored = self._final_states.get((direction, layer))
        if stored is None or not self.stateful:
            return None
        return LstmState(*(F.pad(part, (0, 0, 0, max(0, rows - len(part))))[:rows] for part in stored))

    def _store(self, direction: int, layer: int, final: LstmState) -> None:
        """Store the final states; the stored states of further rows, which this batch does not have, remain."""
        before = self._final_states.get((direction, layer), final)
        rows = len(final.output)
        parts = (torch.cat([new.detach(), old[rows:].detach()]) for new, old in zip(final, before, strict=True))
        self._final_states[direction, layer] = LstmState(*parts)


def _build_layer(config: ElmoConfig) -> ProjectedLstm:
    return ProjectedLstm(
        gates=nn.Linear(2 * config.projection_size, 4 * config.cell_size),
        projection=nn.Linear(config.cell_size, config.projection_size, bias=False),
        cell_clip=config.cell_clip or math.inf,
        output_clip=config.projection_clip or math.inf,
    )


def _initialize(elmo: Elmo) -> None:
    """Initialise as allenai/bilm-tf does (``training.py``).

    | part                        | weight                                            | bias               |
    |-----------------------------|---------------------------------------------------|--------------------|
    | characters                  | uniform from -1 to 1; 0 for "no word"             |                    |
    | filters                     | relu: uniform to 0.05; tanh: normal by fan-in     | 0                  |
    | highways, their projection  | normal by fan-in: sigma = 1 / sqrt(inputs)        | 0; of the gates -2 |
    | LSTMs                       | uniform (Glorot and Bengio 2010)                  | 0                  |
    """
    embedding = elmo.words.embedding
    nn.init.uniform_(embedding.weight, -1, 1)
    nn.init.zeros_(embedding.weight[NO_WORD])
    for part in elmo.modules():
        if isinstance(part, nn.Conv1d | nn.Linear):
            nn.init.normal_(part.weight, std=part.weight[0].numel() ** -0.5)
        if isinstance(part, nn.Conv1d) and elmo.config.activation == "relu":
            nn.init.uniform_(part.weight, -0.05, 0.05)
        if isinstance(part, nn.Conv1d | nn.Linear) and part.bias is not None:
            nn.init.zeros_(part.bias)
    for part in elmo.modules():
        if isinstance(part, Highway):
            nn.init.constant_(part.carry.bias, -2)
        if isinstance(part, ProjectedLstm):
            nn.init.xavier_uniform_(part.gates.weight)
            nn.init.xavier_uniform_(part.projection.weight)
