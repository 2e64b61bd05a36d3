"""The networks that are pre-trained at a scale, as runs that differ from BERT's in what the paper says and no more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bertkit.config import Setting, apply
from bertkit.contracts import EncoderConfig
from bertkit.data.shards import read_manifest
from bertkit.encoders import bert, elmo, gpt, roberta
from bertkit.finetuning.defaults import FinetuneProfile
from bertkit.pretraining.cost import read_cost
from bertkit.pretraining.defaults import default_pretraining_task, initializer_range
from bertkit.pretraining.model_size import sketch_model
from bertkit.pretraining.record import PretrainRun
from bertkit.reproduction.paper import MASKINGS, SIZE_NAMES
from bertkit.reproduction.scales import LONGEST, Scale
from bertkit.text.characters import WORD_LENGTH

Settings = Mapping[str, Any]
"""Values by the path of their field."""

_WIDTH, _RATE = 256, 1e-3
"""The highest rate, that of a width of 256; wider networks have less, by the line through the rates that were measured
for 128 (3e-3) and 256. Narrower ones do not have more: at 2.8e-3 four layers of 128 learnt nothing (perplexity 438 of
1,500 pieces after 600 steps, where two layers came to 277).
"""

_WIDEST, _STEP_OF_WIDTH = 1024, 8
"""The widths of ELMo that are tried."""

_FEWEST_STEPS = 100
"""Between two measurements on held-out text."""

_WITHOUT_NSP = {"task.objectives": ("mlm",)}


@dataclass(frozen=True, kw_only=True)
class Pretraining:
    """A network of a ``size``, which ``shape`` makes a configuration of, with the ``vocabulary`` that it reads.

    ``settings`` are those of its pre-training that differ from BERT's; its fine-tunings have a ``profile``.
    """

    scale: Scale
    size: str
    shape: Callable[[str, int], EncoderConfig]
    vocabulary: str
    settings: Settings = field(default_factory=dict)
    profile: FinetuneProfile = "bert"

    def build(self, data: Path, output: Path) -> PretrainRun:
        """The run on prepared ``data``."""
        return self._build(read_manifest(data).vocab_size, data, output)

    def build_unprepared(self) -> PretrainRun:
        """The run on data that is not there, with as many pieces as are asked for: to be looked at."""
        words = self.scale.words if self.vocabulary == "words" else self.scale.vocab_size
        return self._build(words, Path(), Path())

    def _build(self, vocab_size: int, data: Path, output: Path) -> PretrainRun:
        encoder = self.shape(self.size, vocab_size)
        task = default_pretraining_task(encoder, vocab_size=min(vocab_size, self.scale.targets))
        run = PretrainRun(data=data, output=output, encoder=encoder, task=task)
        settings = {**_common(self.scale), **self.settings}
        if self.scale.profile == "fast":
            settings = {**_learn_sooner(encoder), **settings}
        return apply(run, [Setting(path, value, f"--scale {self.scale.name}") for path, value in settings.items()])


def list_pretrainings(scale: Scale) -> dict[str, Pretraining]:
    """All of them by name: BERT in six sizes, its ablations and maskings, and the networks of others."""
    base = Pretraining(scale=scale, size=scale.base, shape=_shape_bert, vocabulary="wordpiece")
    ltr = {"encoder.causal": True, "task.objectives": ("clm",)}
    found = {name: replace(base, size=size) for name, size in zip(SIZE_NAMES, scale.sizes, strict=True)}
    found |= {
        "bert-base": replace(base, settings={"snapshots": scale.snapshots}),
        "no-nsp": replace(base, settings=_WITHOUT_NSP),
        "ltr": replace(base, settings={**ltr, "snapshots": scale.snapshots}),
    }
    for name, (mask, keep, random) in MASKINGS.items():
        shares = {"mask": mask / 100, "keep": keep / 100, "random": random / 100}
        found[name] = replace(base, settings={f"task.masking.{each}": share for each, share in shares.items()})
    cased = {f"{name}-cased": replace(each, vocabulary="wordpiece-cased") for name, each in found.items()}
    return {**found, **({} if scale.cased else cased), **_list_rivals(scale)}


def _list_rivals(scale: Scale) -> dict[str, Pretraining]:
    return {
        "gpt": Pretraining(
            scale=scale,
            size=scale.base,
            shape=_shape_gpt,
            vocabulary="bpe",
            profile="gpt",
        ),
        "roberta": Pretraining(
            scale=scale,
            size=scale.base,
            shape=_shape_roberta,
            vocabulary="byte-bpe",
            profile="roberta",
        ),
        "elmo": Pretraining(
            scale=scale,
            size=scale.elmo,
            shape=lambda size, words: elmo.size(size, word_length=scale.word_length),
            vocabulary="words",
            settings={"long_seq_length": None},  # its words go on from batch to batch
        ),
    }


def match_flop(run: PretrainRun, rival: Path, bert: Path) -> PretrainRun:
    """``run`` for so many steps that it takes the operations of the run ``bert``; ``rival`` is one of as many steps."""
    assert run.steps is not None
    return replace(run, steps=max(1, round(run.steps * read_cost(bert).flop / read_cost(rival).flop)))


def match_parameters(run: PretrainRun, bert: PretrainRun) -> PretrainRun:
    """``run`` of an ELMo whose LSTMs have about as many numbers as the blocks of ``bert``."""
    wanted = _count_numbers(bert, "layers")
    length = getattr(run.encoder, "word_length", WORD_LENGTH)
    widths = range(_STEP_OF_WIDTH, _WIDEST, _STEP_OF_WIDTH)
    sizes = (elmo.size(f"2/{width}/{4 * width}", word_length=length) for width in widths)
    runs = (replace(run, encoder=encoder) for encoder in sizes)
    return min(runs, key=lambda each: abs(_count_numbers(each, "directions") - wanted))


def _count_numbers(run: PretrainRun, part: str) -> int:
    """The parameters of a part of the encoder."""
    return sum(each.numel() for each in sketch_model(run).encoder.get_submodule(part).parameters())


def _common(scale: Scale) -> dict[str, Any]:
    """What all pre-trainings of a scale have in common."""
    every = max(_FEWEST_STEPS, scale.steps // 10)
    settings: dict[str, Any] = {
        "steps": scale.steps,
        "batch_size": scale.batch_size,
        "seq_length": scale.seq_length,
        "evaluate_every": every,
        "save_every": every,
        "keep_checkpoints": 1,
        "task.masking.rate": scale.masked,
    }
    if scale.long_seq_length is not None:
        settings |= {"long_seq_length": scale.long_seq_length, "long_share": scale.long_share}
    return settings


def _learn_sooner(encoder: EncoderConfig) -> dict[str, Any]:
    """For networks that are trained for minutes or hours: a high rate, no dropout, positions that begin as sinusoids.

    They are those of ``profiles.py`` for any width, but for the rate: it falls at the very end, so that models from the
    way there, which Figure 5 asks for, are no worse off than a run that ends there.
    """
    width = getattr(encoder, "hidden_size", _WIDTH)
    settings = {
        "optimizer.lr": _RATE * min(1.0, (_WIDTH / width) ** 1.5),
        "optimizer.bias_correction": True,
        "schedule.warmup": 0.05,
        "schedule.decay": "late",
        "encoder.dropout": 0.0,
        "encoder.attention_dropout": 0.0,
        "encoder.initializer_range": round(initializer_range(width), 4),
        "encoder.position_init": "sinusoidal",
    }
    known = {f"encoder.{name}" for name in vars(encoder)}
    return {path: value for path, value in settings.items() if not path.startswith("encoder.") or path in known}


def _shape_bert(size: str, vocab_size: int) -> EncoderConfig:
    return bert.size(size, vocab_size=vocab_size, max_positions=LONGEST)


def _shape_gpt(size: str, vocab_size: int) -> EncoderConfig:
    return gpt.size(size, vocab_size=vocab_size, max_positions=LONGEST)


def _shape_roberta(size: str, vocab_size: int) -> EncoderConfig:
    return roberta.size(size, vocab_size=vocab_size, num_positions=LONGEST + 2)
