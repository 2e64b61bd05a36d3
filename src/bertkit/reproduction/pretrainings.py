"""The pre-trainings of a scale. Each network differs from BERT only in what the paper says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from bertkit.config.settings import Setting, apply
from bertkit.contracts import EncoderConfig
from bertkit.data.shards import read_manifest
from bertkit.encoders import bert, elmo, gpt, modernbert, roberta
from bertkit.options.finetuning import FinetuneProfile
from bertkit.pretraining.cost import read_cost
from bertkit.pretraining.defaults import default_pretraining_task, initial_weights_settings, quick_training_settings
from bertkit.pretraining.model_size import sketch_model
from bertkit.pretraining.record import PretrainRun
from bertkit.reproduction.paper import MASKINGS, SIZE_NAMES, Match, System
from bertkit.reproduction.scales import LONGEST, Scale
from bertkit.text.characters import WORD_LENGTH

Settings = Mapping[str, object]
"""Values by the path of their field."""

_WIDTH, _RATE = 256, 1e-3
"""The highest learning rate, that of a width of 256. Wider networks get less, by the line through the rates that were
measured for 128 (3e-3) and 256. Narrower ones do not get more: at 2.8e-3 four layers of 128 learnt nothing (perplexity
438 of 1,500 subwords after 600 steps, where two layers reached 277).
"""

_WIDEST, _WIDTH_STEP = 1024, 8
"""The widths of ELMo that are tried for the same number of parameters."""

_MIN_STEPS_BETWEEN_EVALUATIONS = 100
"""Between two measurements on held-out text."""

_WITHOUT_NSP = {"task.objectives": ("mlm",)}


@dataclass(frozen=True, kw_only=True)
class Pretraining:
    """A network of a ``size``, from which ``make_config`` makes its configuration, and its ``tokenizer``.

    ``settings`` are those of its pre-training that differ from BERT's, ``profile`` names those of its fine-tuning.
    ``match`` says what is made equal to BERT-Base's.
    """

    network: str
    scale: Scale
    size: str
    make_config: Callable[..., EncoderConfig]
    tokenizer: str
    settings: Settings = field(default_factory=dict)
    profile: FinetuneProfile = "bert"
    cased: bool = False
    match: Match | None = None

    @property
    def name(self) -> str:
        """For messages and folders, such as ``bert-base-cased`` or ``gpt=flop``."""
        return System(self.network, cased=self.cased, match=self.match).name

    def build(self, data: Path, output: Path) -> PretrainRun:
        """The run on prepared ``data``; without regard to ``match``."""
        return self._build(read_manifest(data).vocab_size, data, output)

    def sketch(self) -> PretrainRun:
        """The run before its data is prepared, to be measured, with the vocabulary size of the scale."""
        vocab_size = self.scale.word_vocab_size if self.tokenizer == "words" else self.scale.vocab_size
        return self._build(vocab_size, Path(), Path())

    def _build(self, vocab_size: int, data: Path, output: Path) -> PretrainRun:
        encoder = self.make_config(self.size, vocab_size=vocab_size)
        task = default_pretraining_task(encoder, vocab_size=min(vocab_size, self.scale.targets))
        run = PretrainRun(data=data, output=output, encoder=encoder, task=task)
        settings = {**_common_settings(self.scale), **self.settings}
        if self.scale.profile == "fast":
            settings = {**_fast_settings(encoder), **settings}
        return apply(run, [Setting(path, value, f"--scale {self.scale.name}") for path, value in settings.items()])


def list_pretrainings(scale: Scale) -> dict[str, Pretraining]:
    """All pre-trainings by name: BERT in six sizes, its ablations and maskings, and the other networks."""
    make_config = partial(bert.size, max_positions=LONGEST)
    base = Pretraining(
        network="bert-base", scale=scale, size=scale.base, make_config=make_config, tokenizer="wordpiece"
    )
    left_to_right = {"encoder.causal": True, "task.objectives": ("clm",)}
    found = [replace(base, network=network, size=size) for network, size in zip(SIZE_NAMES, scale.sizes, strict=True)]
    found += [
        replace(base, settings={"snapshots": scale.snapshots}),
        replace(base, network="no-nsp", settings=_WITHOUT_NSP),
        replace(base, network="ltr", settings={**left_to_right, "snapshots": scale.snapshots}),
    ]
    for network, (mask, keep, random) in MASKINGS.items():
        shares = {"mask": mask / 100, "keep": keep / 100, "random": random / 100}
        settings = {f"task.masking.{name}": share for name, share in shares.items()}
        found.append(replace(base, network=network, settings=settings))
    return {each.network: each for each in [*found, *_list_other_networks(scale)]}


def _list_other_networks(scale: Scale) -> list[Pretraining]:
    return [
        Pretraining(
            network="gpt",
            scale=scale,
            size=scale.base,
            make_config=partial(gpt.size, max_positions=LONGEST),
            tokenizer="bpe",
            profile="gpt",
        ),
        Pretraining(
            network="roberta",
            scale=scale,
            size=scale.base,
            make_config=partial(roberta.size, num_positions=LONGEST + 2),
            tokenizer="byte-bpe",
            profile="roberta",
        ),
        Pretraining(
            network="modernbert",
            scale=scale,
            size=scale.base,
            make_config=partial(modernbert.size, max_positions=LONGEST),
            tokenizer="wordpiece",
        ),
        Pretraining(
            network="elmo",
            scale=scale,
            size=scale.elmo,
            make_config=partial(elmo.size, word_length=scale.word_length),
            tokenizer="words",
            settings={"long_seq_length": None},  # its text continues from batch to batch
        ),
    ]


def match_flop(run: PretrainRun, unmatched: Path, bert: Path) -> PretrainRun:
    """``run`` with as many steps as take the floating-point operations of the run in ``bert``.

    ``unmatched`` is the finished run of the same network, from which the operations per step are read.
    """
    assert run.steps is not None
    return replace(run, steps=max(1, round(run.steps * read_cost(bert).flop / read_cost(unmatched).flop)))


def match_parameters(run: PretrainRun, bert: PretrainRun) -> PretrainRun:
    """``run`` with the ELMo whose LSTMs have the number of parameters closest to that of the layers of ``bert``."""
    wanted = _count_parameters(bert, "layers")
    length = getattr(run.encoder, "word_length", WORD_LENGTH)
    widths = range(_WIDTH_STEP, _WIDEST, _WIDTH_STEP)
    configs = (elmo.size(f"2/{width}/{4 * width}", word_length=length) for width in widths)
    runs = (replace(run, encoder=config) for config in configs)
    return min(runs, key=lambda each: abs(_count_parameters(each, "directions") - wanted))


def _count_parameters(run: PretrainRun, part: str) -> int:
    """The parameters of a part of the encoder."""
    return sum(each.numel() for each in sketch_model(run).encoder.get_submodule(part).parameters())


def _common_settings(scale: Scale) -> Settings:
    """Settings of every pre-training at a scale."""
    every = max(_MIN_STEPS_BETWEEN_EVALUATIONS, scale.steps // 10)
    settings: dict[str, object] = {
        "steps": scale.steps,
        "batch_size": scale.batch_size,
        "seq_length": scale.seq_length,
        "evaluate_every": every,
        "save_every": every,
        "keep_checkpoints": 1,
        "task.masking.rate": scale.masking_rate,
    }
    if scale.long_seq_length is not None:
        settings |= {"long_seq_length": scale.long_seq_length, "long_share": scale.long_share}
    return settings


def _fast_settings(encoder: EncoderConfig) -> Settings:
    """The settings of short trainings, for any width, and initial weights from the corpus for every Transformer.

    The learning rate falls at the very end only, so that the snapshots on the way there, which Figure 5 needs, are as
    good as a run that ends there.
    """
    width = getattr(encoder, "hidden_size", _WIDTH)
    quick = quick_training_settings(encoder, lr=_RATE * min(1.0, (_WIDTH / width) ** 1.5), decay="late")
    return {**quick, **initial_weights_settings(encoder)}
