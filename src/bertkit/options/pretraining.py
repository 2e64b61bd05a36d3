"""Options of pretrain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from bertkit.options.inputs import DataFolder, InputFile, ModelPath, RunPath
from bertkit.options.job import AnyPath, TrainingOptions
from bertkit.ranges import BatchSize, LearningRate, Length, Minutes, PositiveInt, Seed

PretrainProfile = Literal["paper", "fast"]


@dataclass(frozen=True, kw_only=True)
class PretrainOptions(TrainingOptions):
    """Pre-train an encoder on prepared text, from new weights or from those of a model, or continue a run.

    ``bertkit pretrain DATA -o RUN`` starts a run, ``bertkit pretrain --resume RUN`` continues it from its newest
    checkpoint; on a CPU and with --steps the result is the same bit for bit. Settings without an option of their own
    are changed with --set or --config.
    """

    data: DataFolder | None = field(default=None, kw_only=False)
    """Folder that bertkit prepare has written."""
    output: AnyPath | None = None
    """Run folder: record, metrics, checkpoints, loss curve, model."""
    resume: RunPath | None = None
    """Continue this run from its newest valid checkpoint, possibly with changes such as --set save_every=N."""
    from_: ModelPath | None = None
    """Start from the weights of this model: a run folder, or a Hugging Face folder. DATA has its tokenizer, possibly
    with added words. Size and architecture are those of the model; the defaults are for continued training."""
    mix: Sequence[str] = ()
    """More folders that bertkit prepare has written, each with its share of the rows: FOLDER=SHARE, such as books=0.25.
    The rest of the rows is from DATA. All have the same tokenizer."""
    also_evaluate: DataFolder | None = None
    """A second folder that bertkit prepare has written: its held-out text is evaluated too, to measure with --from what
    the model forgets."""
    architecture: str | None = None
    """bert, roberta, modernbert, gpt, elmo, or your own module, such as my_lab.encoder. [default: bert]"""
    size: str | None = None
    """tiny, mini, small, medium, base, large, or LAYERS/WIDTH/HEADS. [default: mini]"""
    profile: PretrainProfile | None = None
    """paper: the published settings of the architecture, for very many steps. fast: for minutes or hours, sizes tiny to
    medium. [default: the settings of BERT's paper]"""
    steps: PositiveInt | None = None
    """Number of optimizer steps."""
    minutes: Minutes | None = None
    """Training time. Learning rate, masking and length of the rows follow the clock, so that the schedule completes
    on time. [default: 60, unless --steps is given]"""
    seq_length: Length | None = None
    """Tokens per row. [default: 128]"""
    batch_size: BatchSize | None = None
    """Rows per optimizer step. [default: 256, or 32 with --from]"""
    lr: LearningRate | None = None
    """Peak learning rate. [default: 1e-4, or 5e-5 with --from]"""
    seed: Seed | None = None
    """The number that decides all random choices. [default: 0]"""
    shard: bool | None = None
    """Shard weights and optimizer state over the processes of torchrun (FSDP2), for models that do not fit on one."""
    config: InputFile | None = None
    """TOML or JSON file with any settings of the run; options take precedence over it."""
    set: Sequence[str] | Mapping[str, object] = ()
    """Any settings, such as optimizer.beta2=0.98 task.masking.whole_word=true. In Python also a dictionary."""
    plan: bool = False
    """Show parameters, memory, tokens and time without training."""
