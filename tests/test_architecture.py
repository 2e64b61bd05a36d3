"""The architecture of docs/architecture.md, as tests: who may import whom, how large things may grow, what is promised.

The source is read with ``ast``, nothing is imported, so a broken file fails here by its name.
"""

from __future__ import annotations

import ast
import os
import re
import resource
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import bertkit
from bertkit.cli.main import HELP

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "bertkit"

LAYERS = (
    ("_version", "errors", "config", "rng", "lookup", "storage"),
    ("batch", "contracts"),
    ("formats", "text", "nn", "metrics"),
    ("encoder_types", "objectives", "data", "runs"),
    ("encoders", "task_types", "model"),
    ("tasks", "training", "checkpoint"),
    ("inference", "report"),
    ("scheduling",),
    ("pretraining", "finetuning"),
    ("evaluation", "sweeps"),
    ("reproduction", "quick_start"),
    ("api",),
    ("cli", "__init__"),
    ("__main__",),
)
FLOORS = {name: number for number, names in enumerate(LAYERS) for name in names}
SHELVES = {"encoders", "objectives", "tasks"}

FILE_LINES, FUNCTION_LINES, CONSTRUCTOR_PARAMETERS = 400, 60, 12
EXCEPTIONS: dict[str, str] = {
    "pretraining.record.PretrainRun": "a record: every setting of a pre-training run, always read by field name",
    "finetuning.record.FinetuneRun": "a record, as PretrainRun",
    "encoder_types.spec.HuggingFaceSpec": "a record: all that Hugging Face's folder of an encoder can differ in",
    "encoders.bert.BertConfig": "a record: the hyper-parameters of the paper's table, one field each",
    "encoders.roberta.RobertaConfig": "a record, as BertConfig",
    "cli.training.FinetuneOptions": "a record: one field an option",
    "cli.training.PretrainOptions": "a record: one field an option",
    "reproduction.scales.Scale": "a record: all that a reproduction's size consists of",
    "report.doctor.Diagnosis": "a record: one field a line of the report",
}

SECONDS_TO_START = 0.150


def files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def name_of(path: Path) -> str:
    """``encoders.bert``; a package is named by its folder, the top one ``__init__``."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)


def floor(name: str) -> int:
    return FLOORS[name.partition(".")[0]]


def folder(name: str) -> str:
    return name.partition(".")[0] if (SOURCE / name.partition(".")[0]).is_dir() else ""


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def imported(node: ast.AST) -> Iterator[str]:
    """The modules that a statement imports, by their full names."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, f"relative import in line {node.lineno}; write the whole name"
        for alias in node.names:
            whole = f"{node.module}.{alias.name}"
            yield whole if is_module(whole) else str(node.module)


def is_module(name: str) -> bool:
    path = SOURCE.parent.joinpath(*name.split("."))
    return name.startswith("bertkit") and (path.with_suffix(".py").exists() or (path / "__init__.py").exists())


def own_imports() -> Iterator[tuple[str, str]]:
    """(importer, imported) inside bertkit."""
    for path in files():
        for node in ast.walk(tree(path)):
            for name in imported(node):
                if name.startswith("bertkit."):
                    yield name_of(path), name.removeprefix("bertkit.")


def test_every_file_has_a_floor() -> None:
    assert {name.partition(".")[0] for name in map(name_of, files())} == set(FLOORS)


def test_a_file_imports_from_lower_floors_only() -> None:
    wrong = [
        f"{importer} (floor {floor(importer)}) imports {name} (floor {floor(name)})"
        for importer, name in own_imports()
        if not (
            floor(name) < floor(importer)
            or (folder(importer) and folder(importer) == folder(name))
            or floor(name) == floor(importer) <= 1
            or importer == "__init__"  # which names what it loads later, for type checkers
        )
    ]
    assert not wrong, "\n".join(wrong)


def test_nothing_imports_itself_in_a_circle() -> None:
    graph: dict[str, set[str]] = {}
    for importer, name in own_imports():
        graph.setdefault(importer, set()).add(name)

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " -> ".join((*path[path.index(name) :], name))
        for each in graph.get(name, ()):
            visit(each, (*path, name))

    for name in graph:
        visit(name, ())


def test_files_on_a_shelf_do_not_know_each_other() -> None:
    wrong = [
        f"{importer} imports its neighbour {name}"
        for importer, name in own_imports()
        if folder(importer) == folder(name) and folder(name) in SHELVES and re.search(r"\.[^_]", name)
    ]
    assert not wrong, "\n".join(wrong)


def test_private_files_stay_in_their_folder() -> None:
    wrong = [
        f"{importer} imports {name}, which is private to {folder(name)}/"
        for importer, name in own_imports()
        if name.partition(".")[2].startswith("_") and folder(importer) != folder(name)
    ]
    assert not wrong, "\n".join(wrong)


def test_imports_are_at_the_top_and_cli_does_not_load_torch() -> None:
    wrong = []
    for path in files():
        for function in ast.walk(tree(path)):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and folder(name_of(path)) != "cli":
                names = [name for node in ast.walk(function) for name in imported(node)]
                wrong += [f"{name_of(path)}.{function.name} imports {name}" for name in names]
        if folder(name_of(path)) == "cli":
            names = [name for node in tree(path).body for name in imported(node)]
            wrong += [f"{name_of(path)} imports {name} at the top" for name in names if name.startswith("torch")]
    assert not wrong, "\n".join(wrong)


def constructor_parameters(node: ast.ClassDef) -> int:
    """Those of ``__init__``, or the fields of a dataclass."""
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and each.name == "__init__":
            return len(each.args.posonlyargs + each.args.args + each.args.kwonlyargs) - 1
    if any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list):
        return sum(isinstance(each, ast.AnnAssign) for each in node.body)
    return 0


def over_budget() -> dict[str, str]:
    """Whatever is larger than it should be, by name, with its size."""
    found = {}
    for path in files():
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines > FILE_LINES:
            found[name_of(path)] = f"{lines} lines"
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > FUNCTION_LINES:
                    found[f"{name_of(path)}.{node.name}"] = f"{lines} lines"
            elif isinstance(node, ast.ClassDef) and constructor_parameters(node) > CONSTRUCTOR_PARAMETERS:
                found[f"{name_of(path)}.{node.name}"] = f"{constructor_parameters(node)} parameters"
    return found


def test_nothing_grows_beyond_its_budget_unnoticed() -> None:
    found = over_budget()
    assert not {name: size for name, size in found.items() if name not in EXCEPTIONS}
    assert not set(EXCEPTIONS) - set(found), "an exception that is no longer needed"


def test_the_public_surface_is_what_the_docs_list() -> None:
    listed = re.findall(
        r"^### `bertkit\.(\w+)", (ROOT / "docs" / "python.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted(listed) == sorted(bertkit.__all__)
    assert all(hasattr(bertkit, name) for name in bertkit.__all__)


def test_the_tree_in_the_readme_is_the_tree() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    block = re.search(r"```text\nsrc/bertkit/\n(.*?)```", readme, re.DOTALL)
    assert block, "README.md shows no tree of src/bertkit/"
    shown = {line.split()[0].rstrip("/") for line in block[1].splitlines() if line.startswith("  ")}
    there = {path.name for path in SOURCE.iterdir() if not path.name.startswith("_") and path.suffix != ".typed"}
    assert shown == there


@pytest.mark.parametrize("shelf", ["encoders", "objectives", "tasks"])
def test_what_is_on_a_shelf_is_in_the_docs(shelf: str) -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for path in sorted((SOURCE / shelf).glob("[!_]*.py")):
        assert f"`{shelf}/{path.name}`" in page


def test_every_file_of_the_docs_can_be_found_from_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for path in sorted((ROOT / "docs").glob("*.md")):
        assert f"docs/{path.name}" in readme


def test_links_in_the_docs_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"


def test_the_version_is_the_newest_heading_of_the_changelog() -> None:
    subprocess.run([sys.executable, str(ROOT / ".ci" / "check_version.py")], check=True)


def seconds_to_run(script: str) -> float:
    """The least of several runs, as processor time: on a busy machine the clock measures the others."""
    taken = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert ended.stdout in ("", HELP)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(taken)


@pytest.mark.parametrize(
    "script",
    ["import bertkit", "import sys; sys.argv[1:] = ['--help']; from bertkit.cli.main import main; main()"],
    ids=["import", "help"],
)
def test_it_starts_at_once_and_without_torch(script: str) -> None:
    assert seconds_to_run(script) < SECONDS_TO_START
    heavy = "{'torch', 'numpy', 'cyclopts', 'rich'}"
    subprocess.run([sys.executable, "-c", f"{script}; import sys; assert not {heavy} & set(sys.modules)"], check=True)


@pytest.mark.skipif("BERTKIT_TEST_INSTALLED" not in os.environ, reason="set by `make test`, which tests the wheel")
def test_what_is_tested_is_the_installed_wheel() -> None:
    assert Path(bertkit.__file__).parent == Path(sysconfig.get_paths()["purelib"]) / "bertkit"
