"""A pre-training that is ready to begin: the corpus opened, the model and its optimizer built, all settings checked."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from bertkit.checkpoint.huggingface import tensors_to_hf
from bertkit.contracts import Encoder, LayerStack, OrderedSource, Stateful, SubwordTokenizer
from bertkit.data.cooccurrence import LEAST_TOKENS
from bertkit.data.mixture import Mixture
from bertkit.encoder_types.architectures import spec_of_config
from bertkit.encoder_types.settings import context_of
from bertkit.errors import count_of, usage_error
from bertkit.machine.device import default_device
from bertkit.machine.energy import EnergyMeter
from bertkit.model import Model
from bertkit.pretraining.data import LEAST_DOCUMENTS, PretrainingData
from bertkit.pretraining.data_report import DataReport, report_data
from bertkit.pretraining.defaults import fits_neighbour_heads
from bertkit.pretraining.from_model import load_initial_weights
from bertkit.pretraining.initial_weights import check_token_table, initialize_from_statistics, token_statistics
from bertkit.pretraining.phases import Phase, build_phases
from bertkit.pretraining.record import PretrainRun
from bertkit.pretraining.resuming import RunIdentity, run_identity
from bertkit.text.bpe import BPE
from bertkit.text.byte_bpe import ByteLevelBPE
from bertkit.text.wordpiece import WordPiece
from bertkit.text.words import WordLevel
from bertkit.training import sharding
from bertkit.training.averaging import WeightAverage
from bertkit.training.distributed import SINGLE_PROCESS, ProcessGroup
from bertkit.training.fit import TrainingState
from bertkit.training.optimizer import build_optimizer

_KINDS: Mapping[type[WordPiece | BPE | ByteLevelBPE | WordLevel], str] = {
    WordPiece: "wordpiece",
    BPE: "bpe",
    ByteLevelBPE: "byte-bpe",
    WordLevel: "words",
}
"""The ``--kind`` of a tokenizer."""


@dataclass(slots=True)
class Stopwatch:
    """The seconds that a run takes, evaluations and checkpoints included, without those between a stop and a resume.

    ``before`` are those up to the checkpoint that a resume continues from, ``begin`` is when this part began.
    """

    before: float = 0.0
    begin: float = field(init=False)

    def __post_init__(self) -> None:
        self.begin = time.monotonic()

    @property
    def seconds(self) -> float:
        """The seconds of all parts so far."""
        return self.before + time.monotonic() - self.begin


@dataclass(frozen=True, kw_only=True)
class PretrainingJob:
    """All that one process of a run needs.

    ``identity`` is what checkpoints and the record keep of the run; ``notes`` are lines about its first
    weights and its held-out text. ``watch`` and ``meter`` run from the time when the job is built.
    """

    run: PretrainRun
    data: PretrainingData
    phases: list[Phase]
    state: TrainingState
    report: DataReport
    group: ProcessGroup
    identity: RunIdentity
    notes: list[str]
    watch: Stopwatch = field(default_factory=Stopwatch)
    meter: EnergyMeter = field(default_factory=EnergyMeter)

    @property
    def total(self) -> float:
        """The steps of all phases, or the seconds of a timed run."""
        return self.phases[-1].until

    @property
    def done(self) -> float:
        """How far training is, in the unit of ``total``."""
        return self.state.elapsed if self.run.is_timed else self.state.step


def build_job(
    run: PretrainRun,
    group: ProcessGroup = SINGLE_PROCESS,
    data: PretrainingData | None = None,
    *,
    initial_weights: bool = True,
) -> PretrainingJob:
    """Everything that the steps of ``run`` need; ``data`` are its corpora, if they are open already.

    Without ``initial_weights`` the model gets random ones, because a checkpoint will be loaded.
    Raises a usage error for settings that do not fit together.
    """
    data = data or PretrainingData.open(run)
    check_encoder(run, data.tokenizer)
    check_division(run, group.size)
    torch.manual_seed(run.seed)
    model = build_pretraining_model(run).to(default_device())
    tensors_to_hf(model)  # a weight that cannot be named is found now and not when the trained model is saved
    notes = load_initial_weights(model, run, data) if run.from_model is not None and initial_weights else []
    counts = starts_from_counts(run, data.train)
    if counts:
        check_token_table(model.encoder)  # before a large corpus is counted, and with --plan too
    if initial_weights and counts:
        statistics = group.from_first(lambda: token_statistics(data.train, run.encoder))
        initialize_from_statistics(model, statistics)
    model.encoder.gradient_checkpointing = run.gradient_checkpointing
    if run.shard and not isinstance(model.encoder, LayerStack):
        raise usage_error("shard needs an encoder that is a stack of equal layers; leave it out.")
    if run.shard and group.size > 1:
        sharding.shard(model, model.encoder.get_submodule("layers").children())
    phases = build_phases(run, data)
    continues_rows = isinstance(phases[0].source, OrderedSource)
    if isinstance(model.encoder, Stateful):
        model.encoder.stateful = continues_rows
    largest = max(phase.plan.batch_size for phase in phases)
    if continues_rows and (run.micro_batch_size or largest) * group.size < largest:
        raise usage_error(
            f"micro_batch_size is {run.micro_batch_size}, and a batch has {largest} rows; rows that continue from "
            "batch to batch cannot be divided into micro-batches: leave it out, or lower batch_size and "
            "long_batch_size."
        )
    return PretrainingJob(
        run=run,
        data=data,
        phases=phases,
        state=_build_state(run, model),
        report=report_data(phases[0].source),
        group=group,
        identity=run_identity(run),
        notes=[
            *notes,
            *_note_missing_long_rows(run, phases[-1]),
            *_note_missing_heldout(data.heldout),
            *_note_smaller_comparisons(run, group.size),
            *_note_random_values(run, data.train),
        ],
    )


def _note_missing_long_rows(run: PretrainRun, last: Phase) -> list[str]:
    """What to tell the user if the share of the long rows is less than one step."""
    if run.long_seq_length is None or last.first < last.until:
        return []
    share = f"long_share {run.long_share:g} of {count_of(int(run.length), 'step')}"
    return [f"no step has rows of {run.long_seq_length} tokens: {share} is less than one"]


def _note_missing_heldout(heldout: Mixture) -> list[str]:
    """What to tell the user about the corpora that have no held-out text."""
    missing = [corpus.folder for corpus in heldout.corpora if corpus.num_documents < LEAST_DOCUMENTS]
    if not missing:
        return []
    if len(missing) == len(heldout.corpora):
        return ["no held-out text: nothing is evaluated during or after the training"]
    return [f"no held-out text in {' and '.join(map(str, missing))}: only that of the other corpora is evaluated"]


def _list_comparing(run: PretrainRun) -> list[str]:
    """The labels of the objectives that compare the examples of a micro-batch."""
    return [each.label for each in run.task.objective_classes() if each.compares_examples]


def _note_smaller_comparisons(run: PretrainRun, processes: int) -> list[str]:
    """What to tell the user if examples are compared with those of their micro-batch, which is a part of the batch."""
    names = _list_comparing(run)
    batches = dict.fromkeys(rows for rows, _ in run.batch_shapes) if names else {}
    compared = {rows: run.rows_at_once(rows, processes) for rows in batches}
    return [
        f"{', '.join(names)} compares the {some} examples of a micro-batch, not the {rows} of a batch"
        for rows, some in compared.items()
        if some < rows
    ]


def _note_random_values(run: PretrainRun, train: Mixture) -> list[str]:
    """What does not start from counts of the text, although the run asks for that."""
    if run.token_init != "cooccurrence":
        return []
    lines = []
    if not starts_from_counts(run, train):
        lines.append(f"token embeddings start at random: {train.num_tokens:,} tokens are too few to count neighbours")
    if context_of(run.encoder) == "bidirectional" and not fits_neighbour_heads(run.encoder):
        lines.append(
            f"no head starts by looking at neighbouring tokens: {getattr(run.encoder, 'num_heads', 0)} heads in a "
            f"width of {getattr(run.encoder, 'hidden_size', 0)} do not fit"
        )
    return lines


def _build_state(run: PretrainRun, model: Model) -> TrainingState:
    optimizer = build_optimizer(model, run.optimizer, precision=run.chosen_precision)
    average = None if run.averaging.kind == "none" else WeightAverage(model, run.averaging)
    return TrainingState(model, optimizer, average=average)


def starts_from_counts(run: PretrainRun, corpus: Mixture) -> bool:
    """Whether the token embeddings start from co-occurrence counts; too small a corpus has too few of them."""
    return run.token_init == "cooccurrence" and corpus.num_tokens >= LEAST_TOKENS


def check_division(run: PretrainRun, processes: int) -> None:
    """Check that the batches and the optimizer can be divided among the processes."""
    for name, rows in {"batch_size": run.batch_size, "long_batch_size": run.long_batch_size or 0}.items():
        if rows % processes:
            raise usage_error(f"{name} is {rows}; {processes} processes need a multiple of their number.")
        together = run.rows_at_once(rows, processes)
        if together == 1 and (names := _list_comparing(run)):
            raise usage_error(
                f"{names[0]} compares the examples of a micro-batch, and there is one in each: {name} must be at least "
                f"{2 * processes}, and micro_batch_size at least 2."
            )
    if run.shard and run.averaging.kind != "none":
        raise usage_error("shard and averaging.kind cannot be combined: leave one of them out.")
    if run.shard and run.head_share:
        raise usage_error("shard and head_share cannot be combined: train the new head first, without shard.")
    if run.shard and run.optimizer.kind in ("lamb", "muon"):
        raise usage_error(
            f"shard divides tensors, and {run.optimizer.kind} needs whole ones: give optimizer.kind=adam, or no shard."
        )


def check_encoder(run: PretrainRun, tokenizer: SubwordTokenizer) -> None:
    """Check that the encoder fits the tokenizer and has enough positions; ELMo has neither vocabulary nor positions."""
    _check_kind(run, tokenizer)
    vocab_size = getattr(run.encoder, "vocab_size", tokenizer.vocab_size)
    if vocab_size != tokenizer.vocab_size and not (run.from_model and vocab_size > tokenizer.vocab_size):
        raise usage_error(
            f"encoder.vocab_size is {vocab_size}; {run.data} has {tokenizer.vocab_size} subwords: leave it out."
        )
    pad_id = getattr(run.encoder, "pad_id", tokenizer.pad_id)
    if pad_id != tokenizer.pad_id:
        raise usage_error(
            f"encoder.pad_id is {pad_id}; the rows of {run.data} are padded with {tokenizer.pad_id}: leave it out."
        )
    characters = getattr(tokenizer, "word_length", None)
    read = getattr(run.encoder, "word_length", characters)
    if characters is not None and read != characters:
        raise usage_error(
            f"encoder.word_length is {read}; {run.data} has words of {characters} characters: leave it out."
        )
    specials = run.task.count_specials(tokenizer)
    if min(run.seq_length, run.long_seq_length or run.seq_length) < specials + 2:
        raise usage_error(
            f"seq_length is {run.seq_length}; it must be {specials + 2} or more: {specials} special tokens and two "
            "others."
        )
    longest = max(run.seq_length, run.long_seq_length or 0)
    if run.task.cuts_texts:
        longest = -(-longest // 2)  # each half of a text has positions of its own
    positions = getattr(run.encoder, "max_positions", longest)
    if longest > positions:
        raise usage_error(f"encoder.max_positions is {positions}; sequences of {longest} need more.")


def _check_kind(run: PretrainRun, tokenizer: SubwordTokenizer) -> None:
    """Check that the architecture, which may have tokenizers of one kind only, reads the one in its model folder."""
    spec = spec_of_config(run.encoder)
    for kind, name in _KINDS.items():
        if spec.load_tokenizer == kind.load and not isinstance(tokenizer, kind):
            raise usage_error(
                f"{run.data} was prepared with another kind of vocabulary than {spec.title} has. Choose the "
                "--architecture that has this kind, or prepare the texts with a tokenizer from bertkit tokenizer train "
                f"FILE... --kind {name}."
            )


def build_pretraining_model(run: PretrainRun) -> Model:
    """The model of a run, initialised from the global random state."""
    encoder: Encoder = spec_of_config(run.encoder).encoder(run.encoder)
    return Model(encoder, run.task.build_objectives(encoder))
