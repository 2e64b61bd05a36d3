"""Files from elsewhere: what they declare is checked before it costs memory or time, and their text is shown safely."""

from __future__ import annotations

import gzip
import io
import json
import re
import resource
import shutil
import signal
import time
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow
import pytest
import torch
import zstandard
from pyarrow import parquet
from safetensors.torch import load_file, save_file
from tests.peak_memory import peak_memory, reset_peak

from bertkit.checkpoint.save_model import save_model
from bertkit.cli import app
from bertkit.cli.errors import explain
from bertkit.encoders.bert import Bert, size
from bertkit.errors import BAD_DATA, WRONG_USAGE
from bertkit.formats.arrow import parquet_rows
from bertkit.formats.compression import ALWAYS_UNPACKED, ByteStream
from bertkit.formats.decoding import DecodingLog
from bertkit.formats.records import read_parquet
from bertkit.model import Model
from bertkit.pretraining.task import PretrainingTask
from bertkit.report.card import Card, write_card
from bertkit.report.tables import markdown_table, print_table
from bertkit.text.wordpiece import train

pytestmark = pytest.mark.usefixtures("without_shape_checks")

WORDS = "river stone early garden music letter winter seven market silver bridge"
SECONDS = 20
"""Of the processor. What is refused needs a fraction of one; what is not refused needed minutes."""
MEGABYTES = 300
"""How much a refused file may add to the memory of the process."""


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small BERT with its masked-LM head, as another library would save it: without checksums."""
    folder = tmp_path_factory.mktemp("model") / "tiny"
    tokenizer = train([WORDS] * 7, vocab_size=67)
    torch.manual_seed(7)
    encoder = Bert(size("3/12/2", vocab_size=tokenizer.vocab_size, max_positions=37, intermediate_size=13))
    heads = PretrainingTask(objectives=("mlm",)).build_objectives(encoder)
    save_model(folder, Model(encoder, heads), tokenizer, metadata={})
    (folder / "bertkit.json").unlink()
    return folder


@pytest.fixture
def model(original: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return Path(shutil.copytree(original, tmp_path / "model"))


@pytest.fixture
def refuse(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run a command that must end with one line on stderr within the limits, and return the line."""

    def run(*words: object, exit_code: int = BAD_DATA) -> str:
        with limits():
            code = app.run([str(word) for word in words])
        captured = capsys.readouterr()
        assert code == exit_code, captured
        *progress, line = captured.err.splitlines()
        assert line.startswith("error: "), captured
        assert not any(each.startswith(("error", "Traceback")) for each in progress)
        assert "bug in bertkit" not in line
        assert captured.out == ""
        return line

    return run


@contextmanager
def limits() -> Iterator[None]:
    """Fail if the block needs more seconds or memory than something that is refused may."""
    begin, before = time.process_time(), reset_peak()
    yield
    assert time.process_time() - begin < SECONDS
    assert peak_memory() - before < MEGABYTES


def change_json(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


# Weights


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_weights_that_are_not_finite_are_refused(
    model: Path, refuse: Callable[..., str], value: str, dtype: torch.dtype
) -> None:
    weights = {name: tensor.to(dtype) for name, tensor in load_file(model / "model.safetensors").items()}
    name = "bert.encoder.layer.1.output.dense.weight"
    weights[name][3, 5] = float(value)
    save_file(weights, model / "model.safetensors")
    line = refuse("fill", model, "the [MASK]")
    assert "model.safetensors has NaN or infinite weights in encoder.layer.1.output.dense.weight" in line


def test_weights_whose_sum_overflows_are_not_taken_for_infinite(model: Path) -> None:
    weights = load_file(model / "model.safetensors")
    weights["bert.embeddings.LayerNorm.bias"].fill_(3e38)
    save_file(weights, model / "model.safetensors")
    assert app.run(["fill", str(model), "the [MASK]"]) == 0


@pytest.mark.parametrize("key", ["num_hidden_layers", "lstm_layers"])
def test_layers_that_the_weights_do_not_have_are_refused(model: Path, refuse: Callable[..., str], key: str) -> None:
    change_json(model / "config.json", **{key: 900})
    assert "config.json" in refuse("fill", model, "the [MASK]")
    change_json(model / "config.json", **{key: 1_000_000})
    assert "config.json" in refuse("fill", model, "the [MASK]")


@pytest.mark.parametrize("key", ["vocab_size", "hidden_size", "intermediate_size", "max_position_embeddings"])
def test_sizes_that_the_weights_do_not_have_are_refused(model: Path, refuse: Callable[..., str], key: str) -> None:
    change_json(model / "config.json", **{key: 12 * 10**6})
    refuse("fill", model, "the [MASK]")


def test_a_header_of_many_names_is_refused(model: Path, refuse: Callable[..., str]) -> None:
    names = {f"t{number}": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]} for number in range(100_000)}
    header = json.dumps(names).encode()
    (model / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    assert "its header has" in refuse("fill", model, "the [MASK]")


@pytest.mark.parametrize("length", [10**6, 10**12, 2**63, 2**64 - 1])
def test_a_header_longer_than_its_file_is_refused(model: Path, refuse: Callable[..., str], length: int) -> None:
    (model / "model.safetensors").write_bytes(length.to_bytes(8, "little") + b"{}" + bytes(99))
    assert f"its header would be {length:,} bytes of 109" in refuse("fill", model, "the [MASK]")


PICKLED: dict[str, Callable[[], torch.Tensor]] = {
    "stride 0": lambda: torch.zeros(1).expand(30_000, 30_000),
    "overlapping rows": lambda: torch.zeros(2_000).as_strided((1_000, 1_000, 1_000), (1, 1, 0)),
    "sparse": lambda: torch.sparse_coo_tensor(torch.zeros(2, 1, dtype=torch.long), [1.0], (10**6, 10**6)),
    "without data": lambda: torch.zeros(10**6, 10**6, device="meta"),
    "quantized": lambda: torch.quantize_per_tensor(torch.zeros(3, 3), 0.1, 0, torch.qint8),
}


@pytest.mark.parametrize("kind", PICKLED)
@pytest.mark.filterwarnings("ignore")
def test_tensors_larger_than_their_file_are_refused(model: Path, refuse: Callable[..., str], kind: str) -> None:
    weights = load_file(model / "model.safetensors")
    (model / "model.safetensors").unlink()
    weights["bert.embeddings.word_embeddings.weight"] = PICKLED[kind]()
    torch.save(weights, model / "pytorch_model.bin")
    line = refuse("fill", model, "the [MASK]")
    assert "pytorch_model.bin" in line
    assert "its tensors would need" in line or "is not a plain tensor" in line


def test_tied_weights_in_a_file_of_torch_are_read(model: Path) -> None:
    weights = load_file(model / "model.safetensors")
    (model / "model.safetensors").unlink()
    weights["cls.predictions.decoder.weight"] = weights["bert.embeddings.word_embeddings.weight"]
    torch.save(weights, model / "pytorch_model.bin")
    assert app.run(["fill", str(model), "the [MASK]"]) == 0


# Compressed files


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """Three questions, of which one has no answer."""
    rows: list[dict[str, object]] = [
        {"id": "a", "question": "?", "answers": [{"text": "the mill", "answer_start": 0}], "is_impossible": False},
        {"id": "b", "question": "?", "answers": [], "is_impossible": True},
        {"id": "c", "question": "?", "answers": [{"text": "river", "answer_start": 9}], "is_impossible": False},
    ]
    path = tmp_path / "dev.json"
    path.write_text(json.dumps({"data": [{"paragraphs": [{"context": "the mill river", "qas": rows}]}]}))
    return path


BOMB = b"a line of text \n" * (5 * ALWAYS_UNPACKED // 16)


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_a_corpus_that_unpacks_to_far_more_than_its_length_is_refused(
    tmp_path: Path, refuse: Callable[..., str], suffix: str
) -> None:
    path = tmp_path / f"a.txt.{suffix}"
    path.write_bytes(gzip.compress(BOMB) if suffix == "gz" else zstandard.compress(BOMB))
    line = refuse("tokenizer", "train", path, "--vocab-size", 99, "-o", tmp_path / "tokenizer")
    assert f"a.txt.{suffix} has" in line
    assert "unpacks to more than 16,777,216" in line


def test_a_table_that_unpacks_to_far_more_than_its_length_is_refused(
    tmp_path: Path, model: Path, refuse: Callable[..., str]
) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(
        gzip.compress(b"text,label\n" + b"%s,good\nfilm,bad\n" % (b"film " * 9999) * (ALWAYS_UNPACKED // 49_000))
    )
    assert "unpacks to more than" in refuse("finetune", path, "--model", model, "-o", tmp_path / "run")


def test_answers_that_unpack_to_far_more_than_their_length_are_refused(
    tmp_path: Path, questions: Path, refuse: Callable[..., str]
) -> None:
    path = tmp_path / "answers.json.gz"
    path.write_bytes(gzip.compress(b"[" + b"[]," * (ALWAYS_UNPACKED // 2) + b"[]]"))
    assert "unpacks to more than" in refuse("squad", "score", questions, path)


def test_damage_inside_a_compressed_file_names_it(
    tmp_path: Path, model: Path, questions: Path, refuse: Callable[..., str]
) -> None:
    for name, text in {"a.csv.gz": b"text,label\n" + b"film,good\nfilm,bad\n" * 99, "a.json.gz": b'{"a": "x"}'}.items():
        content = bytearray(gzip.compress(text))
        for place in range(10, len(content) - 8):
            content[place] ^= 0xFF
            (tmp_path / name).write_bytes(content)
            content[place] ^= 0xFF
            command = ("squad", "score", questions) if "json" in name else ("finetune", "--model", model, "-o", "run")
            assert name in refuse(*command, tmp_path / name)
            if place > 40:
                break


def write_parquet(path: Path, texts: list[str], rows: int, **options: Any) -> None:
    """A file whose ``rows`` share a few ``texts``: it has each of them once."""
    places = pyarrow.array([row % len(texts) for row in range(rows)], pyarrow.int32())
    column = pyarrow.DictionaryArray.from_arrays(places, pyarrow.array(texts))
    labels = pyarrow.array([("good", "bad")[row % 2] for row in range(rows)])
    table = pyarrow.table({"text": column, "label": labels})
    parquet.write_table(table, path, store_schema=False, dictionary_pagesize_limit=1 << 30, **options)


def test_a_parquet_file_that_unpacks_to_far_more_than_its_length_is_refused(
    tmp_path: Path, model: Path, refuse: Callable[..., str]
) -> None:
    path = tmp_path / "a.parquet"
    write_parquet(path, ["x" * ALWAYS_UNPACKED, "y" * 9], 2000, compression="zstd")
    for words in (
        ("tokenizer", "train", path, "--vocab-size", 99, "-o", tmp_path / "tokenizer"),
        ("finetune", path, "--model", model, "-o", tmp_path / "run"),
    ):
        assert "unpacks to more than 16,777,216" in refuse(*words)


def test_rows_of_parquet_that_share_a_text_need_its_memory_once(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    long = "".join(chr(97 + number * number % 23) for number in range(1_000_000))
    write_parquet(path, [f"{number}{long}" for number in range(4)], 600, compression="none")
    with limits():
        assert sum(len(str(text)) for (text,) in parquet_rows(path, ["text"])) == 600 * 1_000_001
        texts = read_parquet(ByteStream(path), "text", "error", DecodingLog())
        assert sum(map(len, texts)) == 600 * 1_000_001


# Numbers and texts in JSON


@pytest.mark.parametrize(
    "odds", ["NaN", "Infinity", "-Infinity", "1e999", "true", '"1"', "null", "9" * 400, "9" * 5000]
)
def test_null_odds_that_are_no_numbers_are_refused(
    tmp_path: Path, questions: Path, refuse: Callable[..., str], odds: str
) -> None:
    (tmp_path / "p.json").write_text('{"a": "mill", "b": "mill", "c": "river"}')
    (tmp_path / "o.json").write_text(f'{{"a": -1, "b": {odds}, "c": 0}}')
    assert "o.json" in refuse("squad", "score", questions, tmp_path / "p.json", "--null-odds", tmp_path / "o.json")


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
def test_answers_with_constants_that_are_not_json_are_refused(
    tmp_path: Path, questions: Path, refuse: Callable[..., str], value: str
) -> None:
    (tmp_path / "p.json").write_text(f'{{"a": "mill", "b": {value}}}')
    assert f"p.json is not JSON that can be read: {value}" in refuse("squad", "score", questions, tmp_path / "p.json")


def test_missing_null_odds_are_reported_and_taken_as_zero(
    tmp_path: Path, questions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.json").write_text('{"a": "mill", "b": "mill", "c": "river"}')
    (tmp_path / "o.json").write_text('{"b": 2}')
    command = ["squad", "score", str(questions), str(tmp_path / "p.json"), "--null-odds", str(tmp_path / "o.json")]
    assert app.run([*command, "--json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["best_f1"] == pytest.approx(100)
    assert "2 questions without null odds, which are taken as 0: a, c" in shown.err


NO_RECORDS = [
    *("[]", "3", "null", '"run"', "[" * 9999, "{}", '{"format": 3}'),
    *('{"format": 3, "kind": 7, "run": {}}', '{"format": 3, "kind": "x", "run": {}, "origins": 3}'),
    '{"format": 3, "kind": "x", "run": {}, "data": []}',
]


@pytest.mark.parametrize("content", NO_RECORDS)
@pytest.mark.parametrize("words", [("config", "show"), ("evaluate",), ("pretrain", "--resume")])
def test_a_record_that_is_no_record_is_refused(
    tmp_path: Path, refuse: Callable[..., str], content: str, words: tuple[str, ...]
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text(content)
    exit_code = WRONG_USAGE if words == ("evaluate",) else BAD_DATA  # which needs a model first
    refuse(*words, tmp_path / "run", exit_code=exit_code)


# Memory


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("could not create a primitive"),
        RuntimeError("could not create a primitive descriptor for a matmul primitive"),
        RuntimeError("could not execute a primitive"),
        RuntimeError("can't start new thread"),
        OSError(12, "Cannot allocate memory"),
    ],
)
def test_memory_that_a_library_lacks_is_reported_as_memory(error: Exception) -> None:
    message, _ = explain(error)
    assert message.startswith("error: out of memory")


def test_rules_of_a_tokenizer_without_bounds_are_refused(model: Path, refuse: Callable[..., str]) -> None:
    steps = [{"type": "Replace", "pattern": {"String": "e"}, "content": "ee"}] * 40
    change_json(model / "tokenizer.json", normalizer={"type": "Sequence", "normalizers": steps})
    assert "tokenizer.json: the replacements of the normalizer" in refuse("fill", model, "the [MASK]")
    assert "tokenizer.json: the replacements of the normalizer" in refuse("tokenizer", "show", model, "the")


# What is shown

HOSTILE = "\x1b]0;title\x07 \x1b[2J \x9b31m \u202e \u2066 \x08\x7f"


def assert_harmless(text: str) -> None:
    found = {each for each in text if unicodedata.category(each) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
    assert found <= {"\n"}, found


def test_a_vocabulary_from_elsewhere_does_not_control_the_terminal(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = model / "tokenizer.json"
    content = json.loads(path.read_text())
    vocabulary = content["model"]["vocab"]
    specials = {token["content"] for token in content["added_tokens"]}
    content["model"]["vocab"] = {
        word if word in specials else HOSTILE.replace(" ", "") + word: number for word, number in vocabulary.items()
    }
    path.write_text(json.dumps(content))
    for switches in ([], ["--json"]):
        assert app.run(["fill", str(model), "the [MASK]", *switches]) == 0
        shown = capsys.readouterr().out
        assert_harmless(shown)
        assert "\\u202e" in shown and ("\\x9b31m" in shown or "\\u009b31m" in shown)
    assert app.run(["tokenizer", "show", str(model), f"a {HOSTILE} b"]) == 0
    assert_harmless(capsys.readouterr().out)


def test_ids_labels_and_texts_of_a_table_do_not_control_the_terminal(
    tmp_path: Path, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = ["x", f"{HOSTILE}x"]
    rows = [{"id": f"{HOSTILE}{row}", "text": f"{row} {HOSTILE}", "label": labels[row % 2]} for row in range(60)]
    table = tmp_path / "t.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ["finetune", str(table), "--model", str(model), "-o", str(tmp_path / "run"), "--epochs", "1"]
    assert app.run([*command, "--seeds", "1"]) == 0
    for words in (["evaluate", "run"], ["evaluate", "run", "--json"], ["predict", "run", "t.jsonl", "-o", "-"]):
        assert app.run([word if word not in ("run", "t.jsonl") else str(tmp_path / word) for word in words]) == 0
    shown = capsys.readouterr()
    assert_harmless(shown.out)
    assert_harmless(shown.err)
    pages = [*tmp_path.rglob("*.html"), *tmp_path.rglob("*.md")]
    assert len(pages) >= 2
    for page in pages:
        assert_harmless(page.read_text())


def test_titles_and_cells_of_a_model_card_are_no_markup() -> None:
    hostile = f"<script>x</script> [a](javascript:b)\n# {HOSTILE}"
    card = Card(
        title=hostile,
        about=hostile,
        pipeline_tag="",
        score_columns=("dev", hostile),
        scores=[(hostile, 0.5)],
        values={"f1": 0.5},
        data=[(hostile, 1, hostile)],
        command=["bertkit", hostile],
        settings=[(hostile, hostile)],
        environment={"python": hostile},
        limits=[hostile],
        base=hostile,
    )
    text = write_card(card)
    assert_harmless(text)
    body = text.partition("---\n")[2].partition("---\n")[2].partition("```")
    page = body[0] + body[2].partition("```")[2]
    assert "<script>" not in page and "](javascript" not in page.replace("\\](javascript", "")
    assert len([line for line in page.splitlines() if line.startswith("# ")]) == 1


def test_a_cell_of_markdown_is_one_cell() -> None:
    table = markdown_table([HOSTILE, "b|c"], [[f"{HOSTILE}\n| x | y |", "`|`"]])
    assert_harmless(table)
    assert len(table.splitlines()) == 3


# Names and surroundings


NAMES = [("fill", "m\udce9", "[MASK]"), ("prepare", "a\udcff.txt", "-o", "d"), ("predict", "r", "a", "-o", "\udc80")]


@pytest.mark.parametrize("words", NAMES)
def test_names_that_are_not_utf8_are_one_line(refuse: Callable[..., str], words: tuple[str, ...]) -> None:
    line = refuse(*words, exit_code=WRONG_USAGE)
    assert "is not UTF-8. Rename the file or folder" in line
    assert line.isascii()


def test_labels_with_half_a_character_are_one_line(tmp_path: Path, model: Path, refuse: Callable[..., str]) -> None:
    rows = [{"text": f"stone {row}", "label": ("bad\ud800", "good")[row % 2]} for row in range(60)]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    line = refuse("finetune", tmp_path / "t.jsonl", "--model", model, "-o", tmp_path / "run", "--quiet")
    assert "an unpaired surrogate" in line


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="reading its beginning is an input/output error")
@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.jsonl", "a.parquet"])
def test_a_disk_that_cannot_be_read_is_named(tmp_path: Path, refuse: Callable[..., str], name: str) -> None:
    (tmp_path / name).symlink_to("/proc/self/mem")
    line = refuse("tokenizer", "train", tmp_path / name, "--vocab-size", 99, "-o", tmp_path / "tokenizer")
    assert name in line


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="reading its beginning is an input/output error")
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.jsonl", "a.parquet"])
def test_a_table_on_a_disk_that_cannot_be_read_is_named(
    tmp_path: Path, model: Path, refuse: Callable[..., str], name: str
) -> None:
    (tmp_path / name).symlink_to("/proc/self/mem")
    assert name in refuse("finetune", tmp_path / name, "--model", model, "-o", tmp_path / "run")


@pytest.mark.parametrize("width", [1, 7, 20])
def test_a_table_fits_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    print_table(("guess", "probability", "text"), [("river", 0.5, "the early river is long")] * 3, terminal)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue()).splitlines()
    assert lines and all(len(line) <= max(width, 9) for line in lines)


class Terminal(io.StringIO):
    """Text in memory that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_output_larger_than_a_file_may_be_is_one_line(tmp_path: Path, refuse: Callable[..., str], model: Path) -> None:
    corpus = tmp_path / "a.txt"
    corpus.write_text("the river is early. the stone is seven.\n\n" * 2000)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        line = refuse("prepare", corpus, "--tokenizer", model, "-o", tmp_path / "data", "--workers", 1, exit_code=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert "cannot write" in line and "File too large" in line
