"""The verbs that exchange models with other libraries: import and export."""

from __future__ import annotations

from pathlib import Path

import bertkit
from bertkit.cli.output import show_json, show_lines
from bertkit.cli.verbosity import Verbosity
from bertkit.escaping import to_json
from bertkit.options.exchange import ExportOptions, ImportOptions


def import_(options: ImportOptions, *, json: bool, verbosity: Verbosity) -> None:
    """Convert a model to a model folder, and show what was found in it."""
    found = bertkit.import_(**vars(options))
    show_json(found) if json else show_lines(found.lines())
    if found.is_for_a_task:
        verbosity.suggest("bertkit", "predict", options.output, "NEW.csv", "-o", "PREDICTIONS.csv")
    else:
        verbosity.suggest("bertkit", "finetune", "YOUR.csv", "--model", options.output, "-o", "RUN")


def export(options: ExportOptions, *, json: bool, verbosity: Verbosity) -> None:
    """Write a model for another library, and show what was written."""
    written = bertkit.export(**vars(options))
    show_json(written) if json else show_lines(written.lines())
    verbosity.suggest("python", "-c", _write_loading(written.output, options.to, has_heads=bool(written.heads)))


def _write_loading(folder: Path, library: str, *, has_heads: bool) -> str:
    """Python with which another library loads the exported ``folder`` and shows what it is."""
    from bertkit.evaluation.onnx_export import FILE
    from bertkit.storage.atomic import read_json

    if library == "onnx":
        return f"import onnxruntime; print(*onnxruntime.InferenceSession({_quote(folder / FILE)}).get_outputs())"
    if library == "sentence-transformers":
        kind = "CrossEncoder" if has_heads else "SentenceTransformer"
        return f"import sentence_transformers; print(sentence_transformers.{kind}({_quote(folder)}))"
    (architecture,) = read_json(folder / "config.json")["architectures"]
    return f"import transformers; print(transformers.{architecture}.from_pretrained({_quote(folder)}))"


def _quote(path: Path) -> str:
    """A path as Python spells it, in the quotes that a shell needs no escape for."""
    return to_json(str(path))
