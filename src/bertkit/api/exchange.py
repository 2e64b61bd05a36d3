"""The verbs that exchange models with other libraries: import_ and export."""

from __future__ import annotations

from pathlib import Path

from bertkit.api.verb import verb
from bertkit.checkpoint.model_folder import CONFIG, ModelFolder
from bertkit.errors import usage_error
from bertkit.inference.conversion import Conversion, convert
from bertkit.options.exchange import ExportOptions, ImportOptions
from bertkit.options.job import AnyPath
from bertkit.report.progress import Progress
from bertkit.storage.outputs import open_output_folder


@verb(ImportOptions)
def import_(options: ImportOptions) -> Conversion:
    """What was found: ``.lines()`` for a person, ``.left_out`` with the tensors that bertkit does not know."""
    folder = ModelFolder.open(options.source)
    return _write(folder, options.output, options)


@verb(ExportOptions)
def export(options: ExportOptions) -> Conversion:
    """What was written: ``.lines()`` for a person."""
    folder = ModelFolder.open(options.run)
    return _write(folder, options.output, options)


def _write(folder: ModelFolder, target: AnyPath, options: ImportOptions | ExportOptions) -> Conversion:
    output = Path(target)
    if output.exists() and output.samefile(folder.path):
        raise usage_error(f"{output} is the input. Choose another -o folder.")
    open_output_folder(output, [CONFIG], overwrite=options.overwrite)
    with Progress(options.progress) as bar:
        bar.say(f"converting {folder.path}")
        return convert(folder, output)
