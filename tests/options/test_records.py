"""The options of track and config show."""

from __future__ import annotations

from bertkit.options.description import list_options
from bertkit.options.records import ConfigShowOptions, TrackOptions


def test_a_run_folder_is_all_that_is_needed() -> None:
    for record in (TrackOptions, ConfigShowOptions):
        assert [option.name for option in list_options(record) if option.required] == ["run"]


def test_track_ends_with_what_was_logged_so_far_by_default() -> None:
    assert not TrackOptions("run").follow
