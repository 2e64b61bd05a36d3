"""The verbs from text files to token ids: corpus_check, tokenizer_train, tokenizer_show, tokenizer_compare, prepare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from bertkit.api.paths import text_files
from bertkit.api.verb import verb
from bertkit.batch import id_of
from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.contracts import SubwordTokenizer
from bertkit.data.cleaning import Cleaning
from bertkit.data.inspection import CorpusReport, inspect_files
from bertkit.data.prepare import prepare as prepare_files
from bertkit.data.remote_output import RemoteOutput
from bertkit.data.shards import Manifest
from bertkit.data.sources import ReadOptions, read_texts
from bertkit.errors import count_of, usage_error
from bertkit.formats.text_files import TextFiles, check_text_file
from bertkit.options.job import AnyPath
from bertkit.options.text import (
    CorpusCheckOptions,
    PrepareOptions,
    TokenizerCompareOptions,
    TokenizerShowOptions,
    TokenizerTrainOptions,
)
from bertkit.report.progress import Progress
from bertkit.results import Result, Results
from bertkit.storage.atomic import restore_folder
from bertkit.storage.outputs import locked_output, open_output_folder, resolve_output
from bertkit.storage.remote import RemotePath, to_path
from bertkit.text import bpe, byte_bpe, loading, wordpiece, words
from bertkit.text.comparison import TokenizerFit, compare_tokenizers
from bertkit.text.tokenizer_files import CHECKSUMS, FILES, write_tokenizer


@dataclass(frozen=True, slots=True, repr=False)
class TokenView(Result):
    """One token of a text: the characters from ``start`` to ``end``."""

    token: str
    id: int
    start: int
    end: int


@verb(CorpusCheckOptions)
def corpus_check(options: CorpusCheckOptions) -> CorpusReport:
    """The report: ``.lines()`` for a person, ``.problems`` that keep a file from being prepared."""
    found = text_files(options.files)
    report = inspect_files(
        found.files, options.field, against=list(map(Path, options.against)), near_duplicates=options.near_duplicates
    )
    return replace(report, skipped=tuple(found.describe_skipped()))


@verb(TokenizerTrainOptions)
def tokenizer_train(options: TokenizerTrainOptions) -> SubwordTokenizer:
    """The tokenizer, which has also been saved in ``output``."""
    found = text_files(options.files)
    if options.kind != "wordpiece" and (options.cased or options.accents or options.unicode_form):
        raise usage_error(
            f"--cased, --accents and --unicode-form are for wordpiece; the rules of {options.kind} are fixed."
        )
    for file in found.files:
        check_text_file(file)  # an error now leaves no empty folder
    base = None if options.from_ is None else _load_base(options, options.from_)
    output = resolve_output(Path(options.output))
    restore_folder(output)
    open_output_folder(output, FILES, overwrite=options.overwrite)
    if others := {path.name for path in output.iterdir()} - {*FILES, CHECKSUMS}:
        raise usage_error(f"{options.output} holds other files, such as {min(others)}. Choose another -o folder.")
    with Progress(options.progress) as bar, locked_output(output):
        open_output_folder(output, FILES, overwrite=options.overwrite)  # another process may have finished since
        _say_skipped(bar, found)
        bar.say(f"learning {options.vocab_size:,} subwords from {count_of(len(found.files), 'file')}")
        texts = _read_texts(found.files, options)
        trained = (
            _train(options, texts) if base is None else wordpiece.train_more(texts, base, vocab_size=options.vocab_size)
        )
        write_tokenizer(output, trained.save)
    return trained


def _say_skipped(bar: Progress, found: TextFiles) -> None:
    for line in found.describe_skipped():
        bar.say(line)


def _load_base(options: TokenizerTrainOptions, model: AnyPath) -> wordpiece.WordPiece:
    """The tokenizer of ``model``, to which words are added."""
    if options.kind != "wordpiece" or options.cased or options.accents or options.unicode_form:
        raise usage_error("--kind, --cased, --accents and --unicode-form are those of --from: leave them out.")
    base = load_tokenizer(model)
    if not isinstance(base, wordpiece.WordPiece):
        raise usage_error(f"{model} has no WordPiece tokenizer; bertkit adds words to WordPiece only.")
    return base


def load_tokenizer(path: AnyPath) -> SubwordTokenizer:
    """The tokenizer in a folder: of ``tokenizer_train``, of a run, or of a model."""
    folder = Path(path)
    return loading.load_tokenizer(ModelFolder.open(folder).path if (folder / "run.json").is_file() else folder)


def _train(options: TokenizerTrainOptions, texts: Iterable[str]) -> SubwordTokenizer:
    match options.kind:
        case "wordpiece":
            return wordpiece.train(
                texts,
                vocab_size=options.vocab_size,
                cased=options.cased,
                strip_accents=None if options.accents is None else options.accents == "strip",
                unicode_form=options.unicode_form,
            )
        case "bpe":
            return bpe.train(texts, vocab_size=options.vocab_size)
        case "byte-bpe":
            return byte_bpe.train(texts, vocab_size=options.vocab_size)
        case "words":
            return words.train(texts, vocab_size=options.vocab_size)


@verb(TokenizerShowOptions)
def tokenizer_show(options: TokenizerShowOptions) -> Results[TokenView]:
    """The tokens of the text. Of an ELMo vocabulary the ids of whole words, without their characters."""
    tokenizer = load_tokenizer(options.tokenizer)
    tokens = tokenizer.encode(options.text)
    ids = map(id_of, tokens.ids)
    return Results(
        TokenView(tokenizer.id_to_token(id), id, *span) for id, span in zip(ids, tokens.offsets, strict=True)
    )


@verb(TokenizerCompareOptions)
def tokenizer_compare(options: TokenizerCompareOptions) -> Results[TokenizerFit]:
    """One result per tokenizer, in the order in which they were given."""
    found = text_files(options.texts)
    tokenizers = {str(path): load_tokenizer(path) for path in options.tokenizers}
    return compare_tokenizers(tokenizers, _read_texts(found.files, options))


def _read_texts(files: Iterable[Path], options: TokenizerTrainOptions | TokenizerCompareOptions) -> Iterator[str]:
    reading = ReadOptions(field=options.field, on_bad_bytes=options.on_bad_bytes)
    return read_texts(files, reading, share=options.sample)


@verb(PrepareOptions)
def prepare(options: PrepareOptions) -> Manifest:
    """The manifest of the shards."""
    with Progress(options.progress) as bar:
        found = text_files(options.files)
        _say_skipped(bar, found)
        output = to_path(options.output)
        if isinstance(output, RemotePath):
            bar.say(f"writing to {RemoteOutput(output).folder}, which is uploaded to {output} when it is complete")
        cleaning = Cleaning(
            duplicates=options.drop_duplicates,
            overlap=tuple(map(Path, options.drop_overlap)),
            repeated_lines=options.drop_repeated_lines,
        )
        bar.start("preparing", cleaning.passes * sum(path.stat().st_size for path in found.files), "byte")
        manifest = prepare_files(
            found.files,
            tokenizer=load_tokenizer(options.tokenizer),
            output=output,
            workers=options.workers,
            engine=options.engine,
            heldout=options.heldout,
            reading=ReadOptions(boundary=options.boundary, field=options.field, on_bad_bytes=options.on_bad_bytes),
            cleaning=cleaning,
            report=lambda done, total: bar.advance(done),
        )
        if options.heldout and not manifest.heldout_tokens:
            bar.say(
                f"nothing is held out: {manifest.tokens:,} tokens are too few for it; pre-training will report no "
                "held-out loss."
            )
        return manifest
