"""Files of vectors: complete, in order, continued after an interruption, and never half of one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.tiny_bert import SENTENCES

from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.checkpoint.save_model import save_model
from bertkit.errors import BertkitError
from bertkit.inference.embedding import CHUNK, EmbeddingSettings, Vectors
from bertkit.inference.embedding_files import Report, embed_file
from bertkit.inference.embedding_store import StoredVectors
from bertkit.inference.encoder_pipeline import EncoderPipeline
from bertkit.inference.text_column import open_text_column
from bertkit.machine.interrupts import Interrupted
from bertkit.model import Model
from bertkit.text.wordpiece import WordPiece

pytestmark = pytest.mark.usefixtures("without_shape_checks")

ROWS = 2 * CHUNK + 276
"""Three chunks."""


class Stopping(EncoderPipeline):
    """Sends a signal to this process, or fails as a killed process does, after a number of chunks."""

    stop_after = 99
    fail_after = 99
    chunks = 0

    def stream_vectors(self, texts: Iterable[str], settings: EmbeddingSettings) -> Iterator[Vectors]:
        for vectors in super().stream_vectors(texts, settings):
            if self.chunks == self.fail_after:
                raise MemoryError
            self.chunks += 1
            if self.chunks == self.stop_after:
                os.kill(os.getpid(), signal.SIGTERM)
            yield vectors


@pytest.fixture
def folder(tmp_path: Path, model: Model, tokenizer: WordPiece) -> Path:
    """A model, and texts.txt with 1,300 lines of different lengths."""
    save_model(tmp_path / "model", Model(model.encoder, {}), tokenizer, metadata={})
    lines = [" ".join(SENTENCES[row % 4].split()[row % 7 :]) + f" {row}" for row in range(ROWS)]
    (tmp_path / "texts.txt").write_text("\n".join(lines) + "\n")
    return tmp_path


def pipeline(folder: Path) -> Stopping:
    return Stopping(ModelFolder.open(folder / "model"))


def write(folder: Path, output: str, model: EncoderPipeline | None = None, *, overwrite: bool = False) -> list[int]:
    """Embed texts.txt; the reported numbers of rows, of which the first is the total."""
    reported: list[int] = []

    def start(rows: int, empty: int) -> Report:
        reported.append(rows)
        return reported.append

    source = open_text_column(folder / "texts.txt")
    settings = EmbeddingSettings(pool="max", layers=(-1, -2))
    embed_file(model or pipeline(folder), source, folder / output, settings, start=start, overwrite=overwrite)
    return reported


def test_the_array_has_the_vectors_of_the_rows_in_order(folder: Path) -> None:
    assert write(folder, "v.npy") == [ROWS, 0, CHUNK, 2 * CHUNK, ROWS]
    vectors = np.load(folder / "v.npy", mmap_mode="r")
    lines = (folder / "texts.txt").read_text().splitlines()
    expected = pipeline(folder).embed([lines[0], lines[CHUNK - 1], lines[-1]], "max", layers=(-1, -2))
    np.testing.assert_allclose(vectors[[0, CHUNK - 1, ROWS - 1]], expected, atol=1e-5)
    assert sorted(path.name for path in folder.iterdir()) == ["model", "texts.txt", "v.npy", "v.npy.json"]
    record = json.loads((folder / "v.npy.json").read_text())
    assert record["settings"] == {"pool": "max", "layers": [-1, -2], "normalize": False}
    assert (record["rows"], record["dimension"]) == (ROWS, 14)


def test_parquet_has_the_texts_beside_the_same_vectors(folder: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    write(folder, "v.npy")
    write(folder, "v.parquet")
    table = parquet.read_table(folder / "v.parquet")
    assert table["text"].to_pylist() == (folder / "texts.txt").read_text().splitlines()
    vectors = np.array(table["embedding"].to_pylist(), dtype=np.float32)
    np.testing.assert_array_equal(vectors, np.load(folder / "v.npy"))
    stored = [StoredVectors(folder / name).record for name in ("v.npy", "v.parquet")]
    assert stored[0] == stored[1]


@pytest.mark.parametrize("output", ["v.npy", "v.parquet"])
def test_a_signal_stops_after_a_chunk_and_the_same_command_continues(folder: Path, output: str) -> None:
    write(folder, f"whole-{output}")
    stopping = pipeline(folder)
    stopping.stop_after = 2
    message = rf"stopped after {2 * CHUNK:,} rows. Continue with the same command."
    with pytest.raises(Interrupted, match=message) as stopped:
        write(folder, output, stopping)
    assert stopped.value.exit_code == 143
    assert not (folder / output).exists()
    assert write(folder, output) == [ROWS, 2 * CHUNK, ROWS]
    assert (folder / output).read_bytes() == (folder / f"whole-{output}").read_bytes()
    assert not list(folder.glob(".bertkit-*"))


def test_torn_and_damaged_ends_cost_the_chunks_after_them(folder: Path) -> None:
    write(folder, "whole.npy")
    whole = (folder / "whole.npy").read_bytes()
    data, records = folder / ".bertkit-vectors-v.npy", folder / ".bertkit-partial-v.npy"
    failing = pipeline(folder)
    failing.fail_after = 2
    with pytest.raises(MemoryError):
        write(folder, "v.npy", failing)
    parts = data.read_bytes(), records.read_bytes()
    chunk = CHUNK * 14 * 4
    header = len(whole) - ROWS * 14 * 4
    assert len(parts[0]) == header + 2 * chunk
    damages = {
        "vectors without their record": (parts[0] + b"x" * 99, parts[1], 2 * CHUNK),
        "a torn record": (parts[0], parts[1][:-7], CHUNK),
        "vectors that are cut off": (parts[0][: header + chunk + 55], parts[1], CHUNK),
        "a changed number": (parts[0][: header + 8] + b"\1" + parts[0][header + 9 :], parts[1], 0),
        "a changed header": (b"\0" + parts[0][1:], parts[1], 0),
        "other vectors": (parts[0], b"", 0),
    }
    for name, (vectors, lines, kept) in damages.items():
        data.write_bytes(vectors)
        records.write_bytes(lines)
        assert write(folder, "v.npy", overwrite=True)[1] == kept, name
        assert (folder / "v.npy").read_bytes() == whole, name


@pytest.mark.parametrize("kills", [1, pytest.param(8, marks=pytest.mark.faults)])
def test_processes_that_are_killed_leave_the_same_bytes(folder: Path, kills: int) -> None:
    # Each kill waits for one more chunk, and must find a chunk to write after it.
    lines = [f"the {SENTENCES[row % 4]} {row}" for row in range((kills + 3) * CHUNK)]
    (folder / "texts.txt").write_text("\n".join(lines) + "\n")
    command = [sys.executable, "-m", "bertkit", "embed", "model", "texts.txt", "--quiet", "-o"]
    subprocess.run([*command, "whole.npy"], cwd=folder, check=True)
    records = folder / ".bertkit-partial-v.npy"
    for kill in range(kills):
        process = subprocess.Popen([*command, "v.npy"], cwd=folder)
        while process.poll() is None and (not records.exists() or records.read_bytes().count(b"\n") < 2 + kill):
            time.sleep(0.01)
        process.kill()
        process.wait()
    assert not (folder / "v.npy").exists()
    subprocess.run([*command, "v.npy"], cwd=folder, check=True)
    assert (folder / "v.npy").read_bytes() == (folder / "whole.npy").read_bytes()
    assert not list(folder.glob(".bertkit-*"))


def test_other_settings_other_weights_and_another_input_start_again(folder: Path) -> None:
    for change in ("nothing", "weights", "input"):
        stopping = pipeline(folder)
        stopping.stop_after = 1
        with pytest.raises(Interrupted):
            write(folder, "v.npy", stopping)
        if change == "weights":
            model = ModelFolder.open(folder / "model")
            save_model(folder / "model", Model(model.build_encoder(), {}), model.tokenizer, metadata={})
        elif change == "input":
            texts = (folder / "texts.txt").read_text()
            (folder / "texts.txt").write_text(texts.replace(str(ROWS - 1), str(ROWS)))
        assert write(folder, "v.npy")[1] == (CHUNK if change == "nothing" else 0)
        (folder / "v.npy").unlink()
        (folder / "v.npy.json").unlink()


def test_nothing_is_written_for_input_that_cannot_be_embedded(folder: Path) -> None:
    before = sorted(folder.iterdir())
    texts = (folder / "texts.txt").read_text()
    (folder / "texts.txt").write_text("")
    with pytest.raises(BertkitError, match="has no texts"):
        write(folder, "v.npy")
    assert sorted(folder.iterdir()) == before
    (folder / "texts.txt").write_text(texts)
    with pytest.raises(BertkitError, match=r'no format named "\.csv"'):
        write(folder, "v.csv")
    with pytest.raises(BertkitError, match="is the input"):
        embed_file(
            pipeline(folder),
            open_text_column(_copy(folder, "texts.parquet")),
            folder / "texts.parquet",
            EmbeddingSettings(),
            start=lambda rows, empty: lambda done: None,
            overwrite=True,
        )


def _copy(folder: Path, name: str) -> Path:
    """The texts as a Parquet file."""
    pandas = pytest.importorskip("pandas")
    pandas.DataFrame({"text": SENTENCES}).to_parquet(folder / name)
    return folder / name


@pytest.mark.parametrize("taken", ["v.npy", "v.npy.json"])
def test_an_existing_file_is_replaced_only_with_overwrite(folder: Path, taken: str) -> None:
    (folder / taken).write_text("precious")
    with pytest.raises(BertkitError, match=rf"{taken} exists\. .*--overwrite"):
        write(folder, "v.npy")
    assert (folder / taken).read_text() == "precious"
    write(folder, "v.npy", overwrite=True)
    assert StoredVectors(folder / "v.npy").record.rows == ROWS
