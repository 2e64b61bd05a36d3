"""The verbs that exchange models with other libraries: import_ and export."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from bertkit.api.paths import optional_path
from bertkit.api.verb import verb
from bertkit.checkpoint.hub import download
from bertkit.checkpoint.model_folder import CONFIG, ModelFolder
from bertkit.checkpoint.save_model import check_model_output
from bertkit.errors import usage_error
from bertkit.evaluation.onnx_export import export_onnx
from bertkit.inference.conversion import Conversion, convert, convert_to_sentence_transformers
from bertkit.options.exchange import ExportOptions, ImportOptions
from bertkit.report.progress import Progress
from bertkit.storage.hub import is_hub_id
from bertkit.storage.outputs import check_output, locked_output, resolve_output

Writer = Callable[[ModelFolder, Path], Conversion]
"""Writes a model into a new folder."""


@verb(ImportOptions)
def import_(options: ImportOptions) -> Conversion:
    """What was found: ``.lines()`` for a person, ``.left_out`` with the tensors that bertkit does not know."""
    source = str(options.source)
    if not is_hub_id(source):
        return _write(ModelFolder.open(options.source), convert, options)
    with Progress(options.progress) as bar:
        bar.say(f"downloading {source}")
        folder = ModelFolder.open(download(source))
    return _write(folder, partial(convert, origin=f"{source}@{folder.path.name}"), options)


@verb(ExportOptions)
def export(options: ExportOptions) -> Conversion:
    """What was written: ``.lines()`` for a person."""
    if options.to != "onnx" and (options.int8 or options.check):
        raise usage_error("--int8 and --check are for --to onnx.")
    writers: Mapping[str, Writer] = {
        "huggingface": convert,
        "sentence-transformers": convert_to_sentence_transformers,
        "onnx": partial(export_onnx, int8=options.int8, check=optional_path(options.check)),
    }
    return _write(ModelFolder.open(options.run), writers[options.to], options)


def _write(folder: ModelFolder, write: Writer, options: ImportOptions | ExportOptions) -> Conversion:
    output = Path(options.output)
    if output.exists() and output.samefile(folder.path):
        raise usage_error(f"{output} is the input. Choose another -o folder.")
    check_model_output(output)
    check_output(output / CONFIG, overwrite=options.overwrite)  # save_model makes the folder, once the model is loaded
    with Progress(options.progress) as bar, locked_output(resolve_output(output)):
        check_output(output / CONFIG, overwrite=options.overwrite)  # another process may have finished since
        bar.say(f"converting {folder.path}")
        return write(folder, output)
