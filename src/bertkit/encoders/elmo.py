"""ELMo (Peters et al., arXiv 1802.05365): its sizes, its folder, and its names in the published files.

The network is in ``encoder_types/elmo_network.py``, because word encoders read its layers too.
"""

from __future__ import annotations

from collections.abc import Mapping

from bertkit.encoder_types.elmo_network import Elmo, ElmoConfig
from bertkit.encoder_types.settings import configure
from bertkit.encoder_types.spec import EncoderSpec, PretrainingDefaults
from bertkit.errors import did_you_mean, usage_error
from bertkit.text.words import WordLevel

__all__ = ["HDF5_NAMES", "SIZES", "SPEC", "Elmo", "ElmoConfig", "size", "tiny"]

SIZES: Mapping[str, Mapping[str, int]] = {
    "small": {"cell_size": 1024, "projection_size": 128, "num_highways": 1},
    "medium": {"cell_size": 2048, "projection_size": 256, "num_highways": 1},
    "original": {"cell_size": 4096, "projection_size": 512, "num_highways": 2},
}
"""The fields in which the published models differ, all with two layers and 2,048 filters (allennlp's ELMo page)."""

_MINIATURES: Mapping[str, str] = {"tiny": "2/64/256", "mini": "2/128/512"}
"""layers/width/cells; both directions together are as wide as the small BERT of the same name."""


def size(name: str, *, vocab_size: int = 0, **changes: object) -> ElmoConfig:
    """The configuration of a published size, or of any layers/width/cells such as ``"2/64/256"``.

    The width is that of one direction; the number of filters is scaled with it. ELMo reads characters, so
    ``vocab_size`` is ignored. ``changes`` are fields of ElmoConfig.
    """
    parts = _MINIATURES.get(name, name).split("/")
    if name in SIZES:
        fields: dict[str, object] = dict(SIZES[name])
    elif len(parts) == 3 and all(part.isdecimal() for part in parts):
        layers, width, cells = map(int, parts)
        filters = tuple((letters, max(1, count * width // 512)) for letters, count in ElmoConfig.filters)
        fields = {"num_layers": layers, "projection_size": width, "cell_size": cells, "filters": filters}
    else:
        known = [*_MINIATURES, *SIZES]
        raise usage_error(
            f'no size named "{name}".{did_you_mean(name, known)} There are: {", ".join(known)}, '
            f"or layers/width/cells such as 2/64/256."
        )
    return configure(ElmoConfig, "ELMo", {**fields, **changes})


_CELL = "RNN_{}/RNN/MultiRNNCell/Cell{}/LSTMCell/"

HDF5_NAMES: Mapping[str, str] = {
    "words.embedding.weight": "char_embed",
    "words.convolutions.{}.weight": "CNN/W_cnn_{}",
    "words.convolutions.{}.bias": "CNN/b_cnn_{}",
    "highways.{}.carry.weight": "CNN_high_{}/W_carry",
    "highways.{}.carry.bias": "CNN_high_{}/b_carry",
    "highways.{}.transform.weight": "CNN_high_{}/W_transform",
    "highways.{}.transform.bias": "CNN_high_{}/b_transform",
    "projection.weight": "CNN_proj/W_proj",
    "projection.bias": "CNN_proj/b_proj",
    "directions.{}.{}.gates.weight": f"{_CELL}W_0",
    "directions.{}.{}.gates.bias": f"{_CELL}B",
    "directions.{}.{}.projection.weight": f"{_CELL}W_P_0",
}
"""Our name of a weight -> its name in the published ``weights.hdf5``, with the numbers in the same order.

Matrices are transposed there, and the character embeddings lack the row of "no word" (``checkpoint/elmo.py``).
"""

SPEC = EncoderSpec(
    title="ELMo",
    encoder=Elmo,
    config=ElmoConfig,
    load_tokenizer=WordLevel.load,
    model_type="elmo",
    size=size,
    embeddings=("words.", "highways.", "projection."),
    pretraining=PretrainingDefaults(
        objectives=("bilm",),
        settings={"seq_length": 20},
        # allenai/bilm-tf bin/train_elmo.py and training.py; its 10 epochs are for its own corpus.
        paper={
            "batch_size": 384,
            "optimizer.kind": "adagrad",
            "optimizer.lr": 0.2,
            "optimizer.weight_decay": 0.0,
            # There the loss is multiplied by the 20 tokens of a row, clipped at 10, and Adagrad starts from 1.
            "optimizer.clip_norm": 10.0 / 20,
            "optimizer.initial_accumulator": 1.0 / 20**2,
            "schedule.warmup": 0.0,
            "schedule.decay": "constant",
        },
        not_fast=("seq_length", "long_seq_length", "long_share"),
    ),
)


def tiny() -> Elmo:
    """A small network with sizes that differ from one another, for tests."""
    return Elmo(
        ElmoConfig(word_length=7, character_width=3, filters=((1, 4), (2, 5), (3, 8)), cell_size=11, projection_size=6)
    )
