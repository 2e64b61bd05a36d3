"""The verbs that measure the speed of this machine, beside other libraries."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from bertkit.api.paths import text_files
from bertkit.api.task_choice import choose_task
from bertkit.api.text import load_tokenizer
from bertkit.api.verb import verb
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.errors import data_error
from bertkit.inference.text_column import open_text_column
from bertkit.options.finetuning import TaskTrainingOptions
from bertkit.options.speed import (
    BenchFinetuneOptions,
    BenchInferenceOptions,
    BenchPrepareOptions,
    BenchPretrainOptions,
)
from bertkit.report.progress import Progress
from bertkit.speed.finetuning import compare_finetuning
from bertkit.speed.inference import InferenceSpeed, compare_systems
from bertkit.speed.preparation import compare_preparation
from bertkit.speed.pretraining import compare_pretraining
from bertkit.speed.rounds import SpeedComparison


@verb(BenchPrepareOptions)
def bench_prepare(options: BenchPrepareOptions) -> SpeedComparison:
    """Megabytes per second of each of ``.systems``, and why others are ``.left_out``."""
    files, tokenizer = text_files(options.files).files, load_tokenizer(options.tokenizer)
    with Progress(options.progress) as bar:
        return compare_preparation(files, tokenizer, options.against, rounds=options.rounds, say=bar.say)


@verb(BenchPretrainOptions)
def bench_pretrain(options: BenchPretrainOptions) -> SpeedComparison:
    """Tokens per second of each of ``.systems``, and why others are ``.left_out``."""
    with Progress(options.progress) as bar:
        return compare_pretraining(options, bar.say)


@verb(BenchFinetuneOptions)
def bench_finetune(options: BenchFinetuneOptions) -> SpeedComparison:
    """Examples per second of each of ``.systems``, and why others are ``.left_out``."""
    with Progress(options.progress) as bar:
        chosen = TaskTrainingOptions(options.task, model=options.model, output="", data=options.data)
        return compare_finetuning(options, choose_task(chosen, bar), bar.say)


@verb(BenchInferenceOptions)
def bench_inference(options: BenchInferenceOptions) -> InferenceSpeed:
    """The speed of each of ``.systems``, and why others are ``.left_out``."""
    chosen = list(islice(filter(str.strip, open_text_column(Path(options.texts)).texts()), options.limit))
    if not chosen:
        raise data_error(f"there is no text in {options.texts}.")
    folder = ModelFolder.open(options.model).path
    with Progress(options.progress) as bar:
        return compare_systems(folder, chosen, options.against, rounds=options.rounds, say=bar.say)
