"""The rules of docs/architecture.md as tests: who may import whom, how large things may grow, what is promised.

The source is read with ``ast`` and not imported, so a broken module fails here by its name.
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
TESTS = ROOT / "tests"

LAYERS = (
    ("_version", "errors", "ranges", "scores", "escaping", "config", "rng", "lookup", "optional", "storage"),
    ("batch", "contracts", "kernels", "named_objectives", "objective_settings", "options", "results"),
    ("formats", "text", "nn", "metrics", "machine"),
    ("encoder_types", "objectives", "data", "runs", "task_files"),
    ("encoders", "task_types", "model"),
    ("tasks", "training", "checkpoint", "user_tables"),
    ("inference", "report"),
    ("scheduling",),
    ("pretraining", "finetuning"),
    ("evaluation", "server", "speed", "sweeps"),
    ("reproduction", "quick_start"),
    ("api",),
    ("cli", "sklearn", "__init__"),
    ("__main__",),
)
LAYER_OF = {name: number for number, names in enumerate(LAYERS) for name in names}
SHARED_LAYERS = 2
"""In the lowest layers, whose modules are the project's vocabulary, modules of one layer may import each other."""

PLUG_INS = {"encoders", "objectives", "tasks"}

MODULE_LINES, FUNCTION_LINES, CLASS_LINES = 400, 60, 150
PARAMETERS, METHODS, FIELDS = 10, 15, 12
PRIVATE_SHARE = 0.25
EXCEPTIONS: dict[str, str] = {
    "encoder_types.spec.HuggingFaceSpec": "a record: one optional table per property of Hugging Face's format",
    "evaluation.report.Evaluation": "a record: one field per section of the report",
    "finetuning.record.FinetuneRun": "a record: every setting of a run, always read by field name",
    "options.finetuning.TaskTrainingOptions": "a record: one field per option of the command line",
    "user_tables.guess.guess": "one parameter per option of the command line about a table",
    "options.pretraining.PretrainOptions": "a record: one field per option of the command line",
    "pretraining.record.PretrainRun": "a record: every setting of a run, always read by field name",
    "report.doctor.Diagnosis": "a record: one field per line of the report",
    "reproduction.scales.Scale": "a record: every size of a reproduction, always read by field name",
}
"""What may be larger, by name, with the reason."""

LOOKUPS = {"lookup", "optional"}
"""The modules that may import by a name in a string: plug-ins by name, and optional dependencies."""

PROGRAM = re.compile(r"^\s*(from bertkit|import bertkit)[\w.]* *(import|$)", re.MULTILINE)
"""Source code of a program that imports bertkit."""

WITHOUT_TESTS = {"_version", "__main__"}

MOST_TO_START = 15
"""The help takes 10 to 12 times as long as an empty program: 0.13 s on an idle Zen 3 at 2.4 GHz, where other programs
share its cores up to 0.26."""


def files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def name_of(path: Path) -> str:
    """``encoders.bert``; a package is named by its folder, the top one ``__init__``."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)


def layer(name: str) -> int:
    return LAYER_OF[name.partition(".")[0]]


def package(name: str) -> str:
    """The package of a module; empty for a module beside the packages."""
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
            full_name = f"{node.module}.{alias.name}"
            yield full_name if is_module(full_name) else str(node.module)


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


def is_allowed(importer: str, name: str) -> bool:
    """Whether the layers permit this import."""
    return (
        layer(name) < layer(importer)
        or bool(package(importer) and package(importer) == package(name))
        or layer(name) == layer(importer) < SHARED_LAYERS
        or importer == "__init__"  # which names what it loads later, for type checkers
    )


def test_every_module_has_a_layer() -> None:
    assert {name.partition(".")[0] for name in map(name_of, files())} == set(LAYER_OF)


def test_modules_import_from_lower_layers_only() -> None:
    wrong = [
        f"{importer} (layer {layer(importer)}) imports {name} (layer {layer(name)})"
        for importer, name in own_imports()
        if not is_allowed(importer, name)
    ]
    assert not wrong, "\n".join(wrong)


def test_there_are_no_import_cycles() -> None:
    graph: dict[str, set[str]] = {}
    for importer, name in own_imports():
        graph.setdefault(importer, set()).add(name)
    finished: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " -> ".join((*path[path.index(name) :], name))
        if name not in finished:
            for each in graph.get(name, ()):
                visit(each, (*path, name))
            finished.add(name)

    for name in graph:
        visit(name, ())


def test_plug_ins_do_not_import_one_another() -> None:
    wrong = [
        f"{importer} imports {name}"
        for importer, name in own_imports()
        if package(importer) == package(name) and package(name) in PLUG_INS and re.search(r"\.[^_]", name)
    ]
    assert not wrong, "\n".join(wrong)


def test_private_modules_are_imported_by_their_own_package_only() -> None:
    wrong = [
        f"{importer} imports {name}, which is private to {package(name)}/"
        for importer, name in own_imports()
        if name.partition(".")[2].startswith("_") and package(importer) != package(name)
    ]
    assert not wrong, "\n".join(wrong)


def test_at_most_a_quarter_of_a_package_is_private() -> None:
    private: dict[str, int] = {}
    total: dict[str, int] = {}
    for path in files():
        name = name_of(path)
        lines = len(path.read_text(encoding="utf-8").splitlines())
        total[package(name)] = total.get(package(name), 0) + lines
        if name.partition(".")[2].startswith("_"):
            private[package(name)] = private.get(package(name), 0) + lines
    shares = {name: private[name] / total[name] for name in private}
    assert not {name: share for name, share in shares.items() if share > PRIVATE_SHARE}


def test_imports_are_at_the_top_and_cli_does_not_load_torch() -> None:
    wrong = []
    for path in files():
        for function in ast.walk(tree(path)):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and package(name_of(path)) != "cli":
                names = [name for node in ast.walk(function) for name in imported(node)]
                wrong += [f"{name_of(path)}.{function.name} imports {name}" for name in names]
        if package(name_of(path)) == "cli":
            names = [name for node in tree(path).body for name in imported(node)]
            wrong += [f"{name_of(path)} imports {name} at the top" for name in names if name.startswith("torch")]
    assert not wrong, "\n".join(wrong)


def test_no_import_is_hidden_in_a_string() -> None:
    """Neither ``import_module("...")`` nor a program in a string: the rules above would not see them."""
    wrong = []
    for path in files():
        if name_of(path) in {*LOOKUPS, "__init__"}:
            continue
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Name | ast.Attribute):
                called = node.id if isinstance(node, ast.Name) else node.attr
                if called in ("import_module", "__import__", "exec"):
                    wrong.append(f"{name_of(path)}, line {node.lineno}: {called}")
            elif isinstance(node, ast.Constant) and PROGRAM.search(str(node.value)):
                wrong.append(f"{name_of(path)}, line {node.lineno}: a program in a string")
    assert not wrong, "\n".join(wrong)


def is_record(node: ast.ClassDef) -> bool:
    return any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)


def is_configuration(path: Path, node: ast.ClassDef) -> bool:
    """Whether a record is the configuration of an encoder, which has a field for each hyper-parameter."""
    return package(name_of(path)) == "encoders" and node.name.endswith("Config")


def count_parameters(arguments: ast.arguments) -> int:
    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def sizes(path: Path) -> Iterator[tuple[str, str]]:
    """(name, what is too large about it) for everything in a module that is over its budget."""
    lines = len(path.read_text(encoding="utf-8").splitlines())
    if lines > MODULE_LINES:
        yield name_of(path), f"{lines} lines"
    for node in ast.walk(tree(path)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        name = f"{name_of(path)}.{node.name}"
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        if isinstance(node, ast.ClassDef):
            methods = sum(isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) for each in node.body)
            fields = sum(isinstance(each, ast.AnnAssign) for each in node.body) if is_record(node) else 0
            if lines > CLASS_LINES:
                yield name, f"{lines} lines"
            if methods > METHODS:
                yield name, f"{methods} methods"
            if fields > FIELDS and not is_configuration(path, node):
                yield name, f"{fields} fields"
        elif lines > FUNCTION_LINES:
            yield name, f"{lines} lines"
        elif count_parameters(node.args) > PARAMETERS:
            yield name, f"{count_parameters(node.args)} parameters"


def test_nothing_exceeds_its_budget_without_a_reason() -> None:
    found = {name: size for path in files() for name, size in sizes(path)}
    assert not {name: size for name, size in found.items() if name not in EXCEPTIONS}
    assert not set(EXCEPTIONS) - set(found), "an exception that is no longer needed"


def test_every_module_has_its_test_module() -> None:
    modules = [path.relative_to(SOURCE) for path in files() if path.name != "__init__.py"]
    missing = [
        str(path)
        for path in modules
        if path.stem not in WITHOUT_TESTS and not (TESTS / path.parent / f"test_{path.name.lstrip('_')}").exists()
    ]
    assert not missing, "\n".join(missing)


def test_every_package_has_a_docstring_and_no_code() -> None:
    wrong = []
    for path in SOURCE.rglob("*/__init__.py"):
        if ast.get_docstring(tree(path)) is None:
            wrong.append(f"{name_of(path)} has no docstring")
        allowed = (ast.Import, ast.ImportFrom, ast.Expr, ast.Assign)
        wrong += [f"{name_of(path)}, line {node.lineno}" for node in tree(path).body if not isinstance(node, allowed)]
    assert not wrong, "\n".join(wrong)


def test_no_public_name_is_a_package() -> None:
    """``bertkit.tasks()`` would stop working once the package ``bertkit.tasks`` has been imported."""
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")} | {path.stem for path in SOURCE.glob("*.py")}
    assert not packages & set(bertkit.__all__)


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
    actual = {path.name for path in SOURCE.iterdir() if not path.name.startswith("_") and path.suffix != ".typed"}
    assert shown == actual


@pytest.mark.parametrize("folder", sorted(PLUG_INS))
def test_every_plug_in_is_in_the_docs(folder: str) -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for path in sorted((SOURCE / folder).glob("[!_]*.py")):
        assert f"`{folder}/{path.name}`" in page


def test_links_in_the_docs_lead_somewhere() -> None:
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"


def test_the_version_is_the_newest_heading_of_the_changelog() -> None:
    subprocess.run([sys.executable, str(ROOT / ".ci" / "check_version.py")], check=True)


def seconds_to_run(script: str) -> float:
    """The shortest of several runs, in processor seconds, which other processes on the machine do not change."""
    durations = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert ended.stdout in ("", HELP)
        durations.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(durations)


@pytest.mark.parametrize(
    "script",
    ["import bertkit", "import sys; sys.argv[1:] = ['--help']; from bertkit.cli.main import main; main()"],
    ids=["import", "help"],
)
def test_start_up_is_fast_and_without_torch(script: str) -> None:
    assert seconds_to_run(script) < MOST_TO_START * seconds_to_run("pass")
    heavy = "{'torch', 'numpy', 'cyclopts', 'rich'}"
    subprocess.run([sys.executable, "-c", f"{script}; import sys; assert not {heavy} & set(sys.modules)"], check=True)


@pytest.mark.skipif("BERTKIT_TEST_INSTALLED" not in os.environ, reason="set by `make test`, which tests the wheel")
def test_the_installed_wheel_is_what_is_tested() -> None:
    assert Path(bertkit.__file__).parent == Path(sysconfig.get_paths()["purelib"]) / "bertkit"
