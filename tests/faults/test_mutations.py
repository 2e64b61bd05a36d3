"""Each protection is removed once, and the test of it must fail.

The mutation is made in a forked child process, which then runs that one test; so nothing has to be restored.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from bertkit import runs as run
from bertkit.checkpoint import training_state as store
from bertkit.data import shards
from bertkit.pretraining import run as pretraining
from bertkit.runs import RunFolder
from bertkit.storage import atomic as storage
from bertkit.storage import checksums, locks
from bertkit.text import loading
from bertkit.training import fit
from bertkit.training.interrupts import Interrupts

pytestmark = [pytest.mark.faults, pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")]

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
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_missing_protection_is_detected(name: str, tmp_path: Path) -> None:
    patches, test = MUTATIONS[name]
    # The watchdog is a thread, which a forked child does not have: to cancel it there would never return.
    faulthandler.cancel_dump_traceback_later()
    child = os.fork()
    if child == 0:
        code = 99
        try:
            for owner, attribute, replacement in patches:
                assert hasattr(owner, attribute), "the protection was renamed"
                setattr(owner, attribute, replacement)
            options = ["-x", "-q", "-p", "no:cacheprovider", "--basetemp", str(tmp_path / "of-child")]
            code = int(pytest.main([*options, str(TESTS / test)]))
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == pytest.ExitCode.TESTS_FAILED
