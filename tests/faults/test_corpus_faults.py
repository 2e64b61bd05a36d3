"""Bad corpora, full disks, killed preparations, damaged shards: never a wrong result without an error."""

from __future__ import annotations

import codecs
import errno
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests import peak_memory

from bertkit.data import shard_writer, work_units
from bertkit.data.prepare import prepare
from bertkit.data.segments import Sampling, StridedSegments
from bertkit.data.shards import MANIFEST, Corpus
from bertkit.data.sources import ReadOptions
from bertkit.errors import BertkitError
from bertkit.storage.atomic import TEMPORARY_PREFIX
from bertkit.storage.checksums import sha256_of
from bertkit.text.wordpiece import WordPiece, train

CRASHED, REFUSED, DONE = 137, 7, 0
TEXTS = [f"Number {number} is a short text. It has {number % 7} parts and ends here." for number in range(90)]
SOME_OR_ALL = pytest.mark.parametrize("points", [13, pytest.param(None, marks=pytest.mark.faults)])

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
    pytest.mark.usefixtures("without_shape_checks"),
]


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_writer, "_SHARD_TOKENS", 400)
    monkeypatch.setattr(work_units, "_UNIT_BYTES", 600)


@pytest.fixture(scope="module")
def tokenizer() -> WordPiece:
    return train(TEXTS, vocab_size=99)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "texts.jsonl"
    path.write_text("\n".join(json.dumps({"text": text}) for text in TEXTS))
    return path


def content(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): sha256_of(path) for path in sorted(folder.rglob("*")) if path.is_file()}


def in_child(action: Callable[[], object]) -> int:
    """The exit code of a child that runs ``action``: DONE, REFUSED (one line of error), or that of its crash."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            action()
            code = DONE
        except BertkitError as error:
            code = REFUSED if "\n" not in str(error) else 98
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def at_call(number: int, folder: Path, then: Callable[[], object]) -> Callable[[], int]:
    """Run ``then`` before the ``number``-th call that changes or flushes ``folder``; returns a counter of these."""
    calls = 0

    def step() -> None:
        nonlocal calls
        calls += 1
        if calls == number:
            then()

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event in ("open", "os.rename", "os.remove", "os.mkdir") and str(arguments[0]).startswith(str(folder)):
            step()

    fsync = os.fsync

    def flush(descriptor: int) -> None:
        step()
        fsync(descriptor)

    sys.addaudithook(watch)
    os.fsync = flush  # type: ignore[assignment]
    return lambda: calls


def count_calls(tmp_path: Path, file: Path, tokenizer: WordPiece) -> int:
    reader, writer = os.pipe()

    def action() -> None:
        count = at_call(0, tmp_path / "counted", lambda: None)
        prepare([file], tokenizer=tokenizer, output=tmp_path / "counted")
        os.write(writer, str(count()).encode())

    assert in_child(action) == DONE
    calls = int(os.read(reader, 99))
    os.close(reader)
    os.close(writer)
    assert calls > 60
    return calls


def spread(points: int | None, calls: int) -> list[int]:
    chosen = range(1, calls + 1)
    return list(chosen) if points is None else random.Random(13).sample(chosen, points)


def full_disk() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def broken_disk() -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


@SOME_OR_ALL
@pytest.mark.parametrize("then", [lambda: os._exit(CRASHED), full_disk, broken_disk], ids=["crash", "full", "broken"])
def test_after_a_fault_at_any_call_the_same_command_finishes(
    tmp_path: Path, file: Path, tokenizer: WordPiece, then: Callable[[], object], points: int | None
) -> None:
    expected = tmp_path / "expected"
    prepare([file], tokenizer=tokenizer, output=expected)
    output = tmp_path / "data"
    for number in spread(points, count_calls(tmp_path, file, tokenizer)):

        def action(number: int = number) -> None:
            at_call(number, output, then)
            prepare([file], tokenizer=tokenizer, output=output)

        # A fault may have no effect, such as a temporary file that cannot be removed.
        assert in_child(action) in (CRASHED, REFUSED, DONE)
        finished = sorted(output.glob("[!.]*.safetensors"))
        if (output / MANIFEST).exists():
            assert Corpus.open(output).num_documents > 0
        elif output.exists():
            with pytest.raises(BertkitError, match="unfinished"):
                Corpus.open(output)
        assert all(sha256_of(path) == sha256_of(expected / path.name) for path in finished)
        prepare([file], tokenizer=tokenizer, output=output)
        assert content(output) == content(expected)
        shutil.rmtree(output)


@pytest.mark.parametrize("limit", [0, 100, 1_000, 2_000, 3_000])
def test_a_full_disk_is_an_error_of_one_line(tmp_path: Path, file: Path, tokenizer: WordPiece, limit: int) -> None:
    output = tmp_path / "data"

    def action() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        prepare([file], tokenizer=tokenizer, output=output)

    assert in_child(action) == REFUSED
    assert not (output / MANIFEST).exists()
    assert not list(output.rglob(f"{TEMPORARY_PREFIX}*"))
    prepare([file], tokenizer=tokenizer, output=output)
    assert Corpus.open(output).num_documents > 80


def test_finished_shards_are_not_made_again(tmp_path: Path, file: Path, tokenizer: WordPiece) -> None:
    output = tmp_path / "data"

    def action() -> None:
        at_call(count_calls(tmp_path, file, tokenizer) - 20, output, lambda: os._exit(CRASHED))
        prepare([file], tokenizer=tokenizer, output=output)

    assert in_child(action) == CRASHED
    finished = {path: path.stat().st_mtime_ns for path in output.glob("train-0000[01].safetensors")}
    assert len(finished) == 2
    prepare([file], tokenizer=tokenizer, output=output)
    assert finished == {path: path.stat().st_mtime_ns for path in finished}


PROGRAM = """
import sys
from pathlib import Path

if __name__ == "__main__":
    from bertkit.data import shard_writer, work_units
    from bertkit.data.prepare import prepare
    from bertkit.text.wordpiece import WordPiece

    shard_writer._SHARD_TOKENS, work_units._UNIT_BYTES = 20_000, 10_000
    file, tokenizer, output = map(Path, sys.argv[1:])
    prepare([file], tokenizer=WordPiece.load(tokenizer), output=output, workers=2)
"""


@pytest.mark.parametrize("kills", [1, pytest.param(50, marks=pytest.mark.faults)])
def test_repeated_kills_do_not_change_the_result(tmp_path: Path, tokenizer: WordPiece, kills: int) -> None:
    """kill -9 with workers, at moments spread over the run; no worker survives its parent."""
    file, program = tmp_path / "texts.jsonl", tmp_path / "program.py"
    file.write_text("\n".join(json.dumps(f"{text} {number}") for number in range(150) for text in TEXTS))
    program.write_text(PROGRAM)
    tokenizer.save(tmp_path / "tokenizer")
    command = [sys.executable, str(program), str(file), str(tmp_path / "tokenizer")]
    begin = time.monotonic()
    subprocess.run([*command, str(tmp_path / "expected")], check=True)
    seconds = time.monotonic() - begin
    output = tmp_path / "data"
    for kill in range(kills):
        process = subprocess.Popen([*command, str(output)], start_new_session=True)
        time.sleep(seconds * (0.3 + 0.7 * random.Random(kill).random()))
        process.kill()
        process.wait()
        wait_for_end_of_group(process.pid)
        if kill % 5 == 4:
            shutil.rmtree(output, ignore_errors=True)
    subprocess.run([*command, str(output)], check=True)
    assert content(output) == content(tmp_path / "expected")


INTERRUPTIBLE = """
import sys
from bertkit.cli.main import main

if __name__ == "__main__":
    from bertkit.data import shard_writer, work_units

    shard_writer._SHARD_TOKENS, work_units._UNIT_BYTES = 5_000, 2_000
    sys.exit(main())
"""


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.faults)]
)
def test_ctrl_c_ends_quietly_and_the_same_command_continues(
    tmp_path: Path, tokenizer: WordPiece, number: signal.Signals, code: int
) -> None:
    file, program, output = tmp_path / "texts.jsonl", tmp_path / "program.py", tmp_path / "data"
    file.write_text("\n".join(json.dumps(f"{text} {number}") for number in range(150) for text in TEXTS))
    program.write_text(INTERRUPTIBLE)
    tokenizer.save(tmp_path / "tokenizer")
    command = [sys.executable, str(program), "prepare", str(file), "--tokenizer", str(tmp_path / "tokenizer")]
    command += ["-o", str(output), "--workers", "2"]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + 120
    while not list(output.glob("journal-*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(process.pid, number)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in stderr
    assert not (output / MANIFEST).exists()
    wait_for_end_of_group(process.pid)
    subprocess.run(command, check=True, capture_output=True)
    assert Corpus.open(output).manifest.sources[0].documents == 150 * len(TEXTS)


def wait_for_end_of_group(group: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    raise AssertionError("workers outlive their parent")


def state(folder: Path) -> object:
    """Everything that training reads from a DATA folder."""
    splits = [Corpus.open(folder, split) for split in ("train", "heldout")]
    arrays = [
        array.tobytes()
        for corpus in splits
        for shard in corpus.shards
        for array in (shard.tokens, shard.sentence_offsets, shard.document_offsets)
    ]
    return arrays, splits[0].manifest, splits[0].load_tokenizer().fingerprint


def flip(path: Path, bit: int) -> None:
    content_before = bytearray(path.read_bytes())
    content_before[bit // 8 % len(content_before)] ^= 1 << bit % 8
    path.write_bytes(content_before)


@pytest.mark.parametrize("flips", [29, pytest.param(200, marks=pytest.mark.faults)])
@pytest.mark.parametrize(
    "name", ["train-00001.safetensors", "heldout-00000.safetensors", MANIFEST, "tokenizer/tokenizer.json"]
)
def test_a_flipped_bit_is_never_trained_on(
    tmp_path: Path, file: Path, tokenizer: WordPiece, name: str, flips: int
) -> None:
    output = tmp_path / "data"
    prepare([file], tokenizer=tokenizer, output=output)
    good, path = state(output), output / name
    content_before = path.read_bytes()
    generator = random.Random(13)
    for bit in [
        0,
        7,
        8 * len(content_before) - 1,
        *(generator.randrange(8 * len(content_before)) for _ in range(flips)),
    ]:
        flip(path, bit)
        try:
            # Without an error, the bit was in a part of the tokenizer file that has no effect.
            assert state(output) == good
            assert name.startswith("tokenizer/")
        except BertkitError as error:
            assert name.partition("/")[0] in str(error)
            assert "\n" not in str(error)
        path.write_bytes(content_before)


@pytest.mark.parametrize(
    "damage", ["empty", "one byte", "half", "one less", "one more", "zeros", "swapped", "missing", "folder", "dangling"]
)
@pytest.mark.parametrize("name", ["train-00001.safetensors", "heldout-00000.safetensors", MANIFEST])
def test_every_kind_of_damage_is_an_error_with_the_file(
    tmp_path: Path, file: Path, tokenizer: WordPiece, name: str, damage: str
) -> None:
    output = tmp_path / "data"
    prepare([file], tokenizer=tokenizer, output=output)
    path = output / name
    content_before = path.read_bytes()
    truncated = {
        "empty": b"",
        "one byte": content_before[:1],
        "half": content_before[: len(content_before) // 2],
        "one less": content_before[:-1],
    }
    changed = {
        **truncated,
        "one more": content_before + b"\0",
        "zeros": bytes(len(content_before)),
        "swapped": (output / "train-00000.safetensors").read_bytes(),
    }
    if damage in changed:
        path.write_bytes(changed[damage])
    else:
        path.unlink()
    if damage == "folder":
        path.mkdir()
    if damage == "dangling":
        path.symlink_to("nowhere")
    with pytest.raises(BertkitError, match=path.stem) as caught:
        state(output)
    assert caught.value.exit_code == 3
    assert "\n" not in str(caught.value)


class TestFolders:
    def refused(self, file: Path, tokenizer: WordPiece, output: Path) -> str:
        with pytest.raises(BertkitError) as caught:
            prepare([file], tokenizer=tokenizer, output=output)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    def test_folders_that_cannot_be_made(self, tmp_path: Path, file: Path, tokenizer: WordPiece) -> None:
        (tmp_path / "loop").symlink_to("loop")
        assert "cannot write to" in self.refused(file, tokenizer, tmp_path / "loop")
        assert "cannot write to" in self.refused(file, tokenizer, tmp_path / "loop" / "data")
        assert "cannot write to" in self.refused(file, tokenizer, file)
        assert "cannot write to" in self.refused(file, tokenizer, file / "data")
        assert "cannot write to" in self.refused(file, tokenizer, tmp_path / ("long" * 99))

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    def test_folders_without_permission(self, tmp_path: Path, file: Path, tokenizer: WordPiece) -> None:
        (tmp_path / "mine").mkdir(mode=0o500)
        assert "cannot write to" in self.refused(file, tokenizer, tmp_path / "mine")
        assert "cannot write to" in self.refused(file, tokenizer, tmp_path / "mine" / "data")
        file.chmod(0)
        assert "cannot be read" in self.refused(file, tokenizer, tmp_path / "data")

    @pytest.mark.parametrize("name", ["with space", "한글", "new\nline", "-o", "'quote\""])
    def test_unusual_file_names_are_accepted(self, tmp_path: Path, file: Path, tokenizer: WordPiece, name: str) -> None:
        renamed = file.rename(tmp_path / f"{name}.jsonl")
        prepare([renamed], tokenizer=tokenizer, output=tmp_path / name)
        assert Corpus.open(tmp_path / name).num_documents > 80

    def test_input_that_changed_after_an_interruption_is_an_error(
        self, tmp_path: Path, file: Path, tokenizer: WordPiece
    ) -> None:
        output = tmp_path / "data"

        def action() -> None:
            at_call(100, output, lambda: os._exit(CRASHED))
            prepare([file], tokenizer=tokenizer, output=output)

        assert in_child(action) == CRASHED
        assert list(output.glob("journal-*"))
        file.write_text(file.read_text().replace("Number 7 ", "Number 8 "))
        assert "holds a corpus with other files" in self.refused(file, tokenizer, output)


class TestNothingToRead:
    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("a.txt", ""),
            ("a.txt", "\n \n\t\r\n\n" * 99),
            ("a.txt", "\ufeff"),
            ("a.txt", "\u200b\x01\ufffd\n"),
            ("a.jsonl", ""),
            ("a.jsonl", '{"text": ""}\n{"text": " \\n"}\n{"text": null}\n'),
        ],
        ids=["empty", "blank", "mark", "no token", "no records", "blank records"],
    )
    def test_input_without_text_is_an_error(self, tmp_path: Path, tokenizer: WordPiece, name: str, text: str) -> None:
        (tmp_path / name).write_text(text, encoding="utf-8")
        with pytest.raises(BertkitError, match=f"there is no text in .*{name}") as caught:
            prepare([tmp_path / name], tokenizer=tokenizer, output=tmp_path / "data")
        assert caught.value.exit_code == 3
        assert not (tmp_path / "data").exists()

    def test_one_document_is_enough_without_pairs(self, tmp_path: Path, tokenizer: WordPiece) -> None:
        # Less than a unit: a document across two shards is a document in each.
        (tmp_path / "a.txt").write_text(" ".join(TEXTS[:9]))
        prepare([tmp_path / "a.txt"], tokenizer=tokenizer, output=tmp_path / "data", heldout=0)
        corpus = Corpus.open(tmp_path / "data")
        with pytest.raises(BertkitError, match="next-sentence pairs need two"):
            StridedSegments(corpus, Sampling(), pairs=True, max_tokens=37, seed=1)
        assert len(StridedSegments(corpus, Sampling(), pairs=False, max_tokens=37, seed=1)) > 1


class TestEncodings:
    TEXT = "Der erste Satz ist schön.\nDas ist der zweite.\n\nUnd ein neuer Text.\nEr endet hier.\n"

    def tokens(
        self, folder: Path, content: bytes, tokenizer: WordPiece, reading: ReadOptions | None = None
    ) -> list[int]:
        folder.mkdir()
        (folder / "a.txt").write_bytes(content)
        prepare([folder / "a.txt"], tokenizer=tokenizer, output=folder / "data", reading=reading, heldout=0)
        return [token for shard in Corpus.open(folder / "data").shards for token in shard.tokens.tolist()]

    @pytest.mark.parametrize(
        "content",
        [
            codecs.BOM_UTF8 + TEXT.encode(),
            TEXT.replace("\n", "\r\n").encode(),
            TEXT.replace("\n", "\r").encode(),
            TEXT.strip().encode(),
        ],
        ids=["mark", "CRLF", "CR", "no end"],
    )
    def test_line_ends_and_byte_order_marks_make_no_difference(
        self, tmp_path: Path, tokenizer: WordPiece, content: bytes
    ) -> None:
        plain = self.tokens(tmp_path / "plain", self.TEXT.encode(), tokenizer)
        assert self.tokens(tmp_path / "other", content, tokenizer) == plain

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (TEXT.encode("latin-1"), "line 1: byte 23 of the file is not UTF-8"),
            ("ok\n한글".encode("cp949"), "line 2: byte 4 of the file is not UTF-8"),
            (TEXT.encode("utf-16"), "is in UTF-16"),
            (TEXT.encode()[:23], "line 1: byte 23 of the file is not UTF-8"),
        ],
        ids=["latin-1", "cp949", "utf-16", "cut off"],
    )
    def test_text_that_is_not_utf8_is_an_error(
        self, tmp_path: Path, tokenizer: WordPiece, content: bytes, message: str
    ) -> None:
        with pytest.raises(BertkitError, match=message) as caught:
            self.tokens(tmp_path / "bad", content, tokenizer)
        assert caught.value.exit_code == 3

    def test_invalid_bytes_can_be_replaced_and_are_counted(self, tmp_path: Path, tokenizer: WordPiece) -> None:
        reading = ReadOptions(on_bad_bytes="replace")
        assert self.tokens(tmp_path / "bad", self.TEXT.encode("latin-1"), tokenizer, reading)
        assert Corpus.open(tmp_path / "bad" / "data").manifest.replaced_characters == 1


MEASURE = """
import resource, sys
from pathlib import Path
from peak_memory import peak_memory

if __name__ == "__main__":
    from bertkit.data.prepare import prepare
    from bertkit.text.wordpiece import WordPiece

    file, tokenizer, output, workers = sys.argv[1:]
    tokenizer = WordPiece.load(Path(tokenizer))
    before = peak_memory()
    prepare([Path(file)], tokenizer=tokenizer, output=Path(output), workers=int(workers))
    print(before, peak_memory(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1000)
"""


def measure(tmp_path: Path, tokenizer: WordPiece, name: str, pattern: str, megabytes: int, workers: int) -> list[float]:
    """Megabytes of memory: before, at the peak, and at the peak of a worker."""
    (tmp_path / "measure.py").write_text(MEASURE)
    shutil.copy(peak_memory.__file__, tmp_path)
    tokenizer.save(tmp_path / "tokenizer")
    quote = '"' if name.endswith("jsonl") else ""
    (tmp_path / name).write_text(quote + pattern * (megabytes * 1_000_000 // len(pattern)) + quote)
    command = [sys.executable, str(tmp_path / "measure.py"), str(tmp_path / name), str(tmp_path / "tokenizer")]
    ran = subprocess.run(
        [*command, str(tmp_path / "data"), str(workers)], capture_output=True, text=True, check=True, timeout=550
    )
    return [float(each) for each in ran.stdout.split()]


@pytest.mark.parametrize(("name", "pattern"), [("a.txt", "some words "), ("a.jsonl", "x")])
def test_one_long_line_needs_little_memory(tmp_path: Path, tokenizer: WordPiece, name: str, pattern: str) -> None:
    """In one chunk, the tokenizer alone would need 600 MB for these four million characters, at 150 bytes each."""
    before, peak, _ = measure(tmp_path, tokenizer, name, pattern, 4, 1)
    assert peak - before < 300


@pytest.mark.faults
@pytest.mark.parametrize("name", ["a.txt", "a.jsonl"])
@pytest.mark.parametrize("pattern", ["x", "some words "], ids=["without spaces", "with spaces"])
def test_a_line_of_100_megabytes(tmp_path: Path, tokenizer: WordPiece, name: str, pattern: str) -> None:
    _, peak, worker = measure(tmp_path, tokenizer, name, pattern, 100, 2)
    assert peak < 1000
    assert worker < 500
