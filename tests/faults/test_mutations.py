"""Each protection is removed once, and the test of it must fail.

The mutation is made in a forked child process, which then runs that one test; so nothing has to be restored.
"""

from __future__ import annotations

import contextlib
import faulthandler
import html
import json
import math
import os
import re
import resource
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from bertkit import escaping, ranges
from bertkit import runs as run
from bertkit.checkpoint import huggingface, weights
from bertkit.checkpoint import training_state as store
from bertkit.data import shards
from bertkit.evaluation import squad
from bertkit.formats import compression
from bertkit.inference import partial_records, prediction_files, prediction_formats
from bertkit.machine import interrupts
from bertkit.machine.interrupts import Interrupts
from bertkit.metrics import regression
from bertkit.pretraining import run as pretraining
from bertkit.runs import RunFolder
from bertkit.storage import atomic as storage
from bertkit.storage import checksums, json_log, locks, outputs
from bertkit.text import backend, loading
from bertkit.training import fit

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

TESTS = Path(__file__).parents[1]
FLUSH = storage.flush_to_disk


def nothing(*arguments: object, **named: object) -> None: ...


def flush_only(wanted: Callable[[Path], bool]) -> Callable[[Path], None]:
    return lambda path: FLUSH(path) if wanted(path) else None


@contextlib.contextmanager
def in_place(path: Path) -> Iterator[Path]:
    """No temporary name."""
    storage._delete(path)
    yield path


def read_unchecked(path: Path, advice: str = "") -> dict[str, Any]:
    return {name: value for name, value in storage.read_json(path).items() if name != "sha256"}


@contextlib.contextmanager
def without_lock(path: Path) -> Iterator[None]:
    path.touch()
    yield


UNTRUSTED = "faults/test_untrusted_input.py"
PREDICTIONS = "inference/test_prediction_files.py"

MUTATIONS: dict[str, tuple[list[tuple[Any, str, Any]], str]] = {
    "files are not flushed": (
        [(module, "flush_to_disk", flush_only(Path.is_dir)) for module in (storage, store)],
        "faults/test_checkpoint_faults.py::test_files_are_flushed_to_disk_before_they_are_renamed",
    ),
    "folders are not flushed": (
        [(module, "flush_to_disk", flush_only(Path.is_file)) for module in (storage, store)],
        "faults/test_checkpoint_faults.py::test_files_are_flushed_to_disk_before_they_are_renamed",
    ),
    "the manifest is written before the files that it lists": (
        [(store, "flush_to_disk", nothing)],
        "faults/test_checkpoint_faults.py::test_files_are_flushed_to_disk_before_they_are_renamed",
    ),
    "a new folder is not flushed": (
        [(run, "make_folder", lambda path: path.mkdir(parents=True, exist_ok=True))],
        "faults/test_resume_faults.py::test_the_log_is_flushed_to_disk_before_the_checkpoint",
    ),
    "the log is not flushed": (
        [(RunFolder, "flush_log", nothing)],
        "faults/test_resume_faults.py::test_the_log_is_flushed_to_disk_before_the_checkpoint",
    ),
    "no temporary name": (
        [(storage, "_temporary_sibling", in_place)],
        "faults/test_checkpoint_faults.py::test_a_crash_at_any_instruction_loses_nothing",
    ),
    "no checksum of a checkpoint": (
        [(checksums, "_check_file", nothing)],
        "faults/test_checkpoint_corruption.py::test_a_flipped_bit_in_a_checkpoint_is_found",
    ),
    "no checksum of a record": (
        [(checksums, "read_checked", read_unchecked)],
        "faults/test_damage.py::test_damage_changes_no_answer_silently",
    ),
    "no checksum of a tokenizer": (
        [(loading, "check_tokenizer", nothing)],
        "faults/test_damage.py::test_damage_changes_no_answer_silently",
    ),
    "no checksum of a shard": (
        [(shards, "verify_shard", nothing)],
        "faults/test_corpus_faults.py::test_a_flipped_bit_is_never_trained_on",
    ),
    "changes of shards are not checked": (
        [(shards.Corpus, "check_untouched", nothing)],
        "faults/test_resume_faults.py::test_shards_that_change_during_a_run_are_found",
    ),
    "steps with a loss that is not finite are taken": (
        [(fit, "math", SimpleNamespace(isfinite=lambda value: True))],
        "training/test_fit.py::test_a_loss_that_is_not_finite_changes_no_weight",
    ),
    "no lock": (
        [(locks, "fcntl", SimpleNamespace(flock=nothing, LOCK_EX=0, LOCK_NB=0))],
        "faults/test_training_faults.py::test_a_second_run_is_refused_until_the_first_has_ended_or_died",
    ),
    "no signal handler": (
        [(Interrupts, "__enter__", lambda self: self)],
        "faults/test_training_faults.py::test_a_signal_during_a_save_or_an_evaluation_loses_nothing",
    ),
    "the random state is not restored": (
        [(torch, "set_rng_state", nothing)],
        "training/test_fit.py::test_a_resume_is_bit_exact_with_dropout_on",
    ),
    "the optimizer is not restored": (
        [(fit, "load_named_state", nothing)],
        "training/test_fit.py::test_a_resume_is_bit_exact_with_dropout_on",
    ),
    "records of repeated steps stay in the log": (
        [(RunFolder, "delete_records", nothing)],
        "faults/test_training_faults.py::test_a_run_that_is_killed_at_any_time_resumes_to_the_same_result",
    ),
    "a resume does not compare the settings": (
        [(pretraining, "check_unchanged", nothing)],
        "faults/test_resume_faults.py::test_other_settings_are_refused_by_name",
    ),
    "the free disk space is not checked": (
        [(pretraining, "require_space", nothing)],
        "faults/test_resume_faults.py::test_too_little_disk_space_is_an_error_before_the_first_step",
    ),
    "the input is not recognized as the output": (
        [(Path, "samefile", lambda path, other: False)],
        f"{PREDICTIONS}::test_an_existing_output_needs_overwrite_and_the_input_is_never_replaced",
    ),
    "an output that exists is replaced": (
        [(prediction_files, "check_output", nothing)],
        f"{PREDICTIONS}::test_an_existing_output_needs_overwrite_and_the_input_is_never_replaced",
    ),
    "a lock file may be a link": (
        [(os, "O_NOFOLLOW", 0)],
        "storage/test_locks.py::test_a_link_is_neither_followed_nor_completed",
    ),
    "a log may be a link": (
        [(json_log, "_require_plain_file", nothing)],
        "storage/test_json_log.py::test_a_link_is_not_opened",
    ),
    "hidden files of others are deleted": (
        [(storage, "_TEMPORARY_NAME", re.compile(".*"))],
        "storage/test_atomic.py::test_only_temporary_files_and_obsolete_backups_are_deleted",
    ),
    "two predictions write one output": (
        [(outputs, "exclusive_lock", without_lock)],
        f"{PREDICTIONS}::test_a_second_process_is_refused_while_the_first_writes",
    ),
    "no checksum of a line of a log": (
        [(json_log, "zlib", SimpleNamespace(crc32=lambda data: 0))],
        "storage/test_json_log.py::test_every_flipped_bit_costs_its_line_or_two_and_is_noticed",
    ),
    "no checksum of predictions that are continued": (
        [(partial_records, "parse_record", json.loads)],
        f"{PREDICTIONS}::test_damage_in_the_partial_file_costs_only_the_rows_after_it",
    ),
    "every number is in its range": (
        [(ranges, "_compare", lambda name, value, kind, range: iter(()))],
        "checkpoint/test_huggingface_config.py::test_an_unsupported_config_is_an_error",
    ),
    "tensors may be larger than their file": (
        [(weights, "_check_tensors", nothing)],
        f"{UNTRUSTED}::test_tensors_larger_than_their_file_are_refused",
    ),
    "a file of torch may be a zip bomb": (
        [(weights, "_check_archive", lambda path, size: None)],
        "faults/test_checkpoint_corruption.py::test_a_zip_bomb_is_not_unpacked",
    ),
    "a corpus may unpack to any size": (
        [(compression, "most_unpacked", lambda path: math.inf)],
        f"{UNTRUSTED}::test_a_corpus_that_unpacks_to_far_more_than_its_length_is_refused",
    ),
    "weights may be NaN": (
        [(huggingface, "is_finite", lambda tensor: True)],
        f"{UNTRUSTED}::test_weights_that_are_not_finite_are_refused",
    ),
    "null odds may be NaN": (
        [(squad, "_is_number", lambda value: True)],
        f"{UNTRUSTED}::test_null_odds_that_are_no_numbers_are_refused",
    ),
    "rules of a tokenizer need no bounds": (
        [(backend, "_problems", lambda description: iter(()))],
        "text/test_backend.py::test_rules_without_bounds_are_refused",
    ),
    "control characters reach the terminal": (
        [(escaping, "_is_unsafe", lambda character: False)],
        f"{UNTRUSTED}::test_a_vocabulary_from_elsewhere_does_not_control_the_terminal",
    ),
    "text is markup in Markdown": (
        [(escaping, "_MARKDOWN", re.compile("(?!)"))],
        f"{UNTRUSTED}::test_titles_and_cells_of_a_model_card_are_no_markup",
    ),
    "text is markup in HTML": (
        [(html, "escape", lambda text: text)],
        "test_escaping.py::test_text_is_no_markup",
    ),
    "a spreadsheet runs a cell": (
        [(prediction_formats, "_without_formula", lambda cell: cell)],
        "inference/test_prediction_formats.py::test_every_start_of_a_formula_gets_an_apostrophe",
    ),
    "a closed terminal ends a training at once": (
        [(interrupts, "_SIGNALS", (signal.SIGINT, signal.SIGTERM))],
        "machine/test_interrupts.py::test_the_first_signal_is_a_request",
    ),
    "the correlation of a constant is 0": (
        [(regression, "UNDEFINED", 0.0)],
        "metrics/test_regression.py::test_a_correlation_with_a_constant_is_undefined",
    ),
}


def test_mutations_name_protections_and_tests_that_exist() -> None:
    for patches, test in MUTATIONS.values():
        for owner, attribute, _ in patches:
            assert hasattr(owner, attribute), f"{attribute} was renamed"
        file, _, name = test.partition("::")
        assert f"def {name}(" in (TESTS / file).read_text(), f"{test} was renamed"


def bound_memory() -> None:
    """Let this process have 4 GiB more: without a protection it may take all that there is, and others are killed."""
    now = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + 4 * 2**30,) * 2)


@pytest.mark.faults
@pytest.mark.parametrize("name", MUTATIONS)
def test_a_missing_protection_is_detected(name: str, tmp_path: Path) -> None:
    patches, test = MUTATIONS[name]
    # The watchdog is a thread, which a forked child does not have: to cancel it there would never return.
    faulthandler.cancel_dump_traceback_later()
    child = os.fork()
    if child == 0:
        code = 99
        try:
            bound_memory()
            for owner, attribute, replacement in patches:
                setattr(owner, attribute, replacement)
            options = ["-x", "-q", "-p", "no:cacheprovider", "--basetemp", str(tmp_path / "of-child")]
            code = int(pytest.main([*options, str(TESTS / test)]))
        finally:
            os._exit(code)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert ended in (pytest.ExitCode.TESTS_FAILED, -signal.SIGHUP, -signal.SIGABRT)  # the last without memory
