"""The notebooks of examples/ are valid, are stored without outputs, and run.

Their code cells are executed as one program in a process of its own, without Jupyter, so that the tests need no further
package. The value of the last expression of a cell is shown as Jupyter would show it, by ``_repr_html_`` if it has one.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
NOTEBOOKS = ("table", "text")
SHOW = """
def show(value):
    print(value._repr_html_() if hasattr(value, "_repr_html_") else repr(value))
"""


def read_notebook(name: str) -> dict[str, Any]:
    notebook: dict[str, Any] = json.loads((EXAMPLES / f"{name}.ipynb").read_text(encoding="utf-8"))
    return notebook


def sources_of(name: str, kind: str) -> list[str]:
    """The contents of all cells of one kind."""
    return ["".join(cell["source"]) for cell in read_notebook(name)["cells"] if cell["cell_type"] == kind]


def program_of(cells: list[str]) -> str:
    """The cells as one program that shows the value of the last expression of each."""
    program = [SHOW]
    for source in cells:
        cell = ast.parse(source)
        last = cell.body[-1]
        if isinstance(last, ast.Expr):
            last.value = ast.Call(ast.Name("show", ast.Load()), [last.value], [])
        program.append(ast.unparse(ast.fix_missing_locations(cell)))
    return "\n".join(program)


def run_program(program: str, folder: Path) -> str:
    """What a program prints. Temporary files are written into the folder."""
    ended = subprocess.run(
        [sys.executable, "-c", f"import tempfile\ntempfile.tempdir = {str(folder)!r}\n{program}"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-5000:]
    return ended.stdout


def test_the_folder_has_these_notebooks_only() -> None:
    assert sorted(path.name for path in EXAMPLES.glob("*.ipynb")) == [f"{name}.ipynb" for name in NOTEBOOKS]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_valid_and_without_outputs(name: str) -> None:
    notebook = read_notebook(name)
    assert sorted(notebook) == ["cells", "metadata", "nbformat", "nbformat_minor"]
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", each) for each in ids)
    for cell in notebook["cells"]:
        fields = {"cell_type", "id", "metadata", "source"}
        if cell["cell_type"] == "code":
            assert (cell["execution_count"], cell["outputs"]) == (None, [])
            fields |= {"execution_count", "outputs"}
        else:
            assert cell["cell_type"] == "markdown"
        assert set(cell) == fields
        assert cell["metadata"] == {}
        assert cell["source"]
        assert all(isinstance(line, str) for line in cell["source"])


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_links_in_a_notebook_lead_somewhere(name: str) -> None:
    links = [link for text in sources_of(name, "markdown") for link in re.findall(r"\]\(([^)#:]+)", text)]
    assert links
    for link in links:
        assert (EXAMPLES / link).exists(), link


def test_a_program_shows_the_value_of_the_last_expression_of_each_cell(tmp_path: Path) -> None:
    program = program_of(["1 + 1\nx = 2", "class Table:\n    _repr_html_ = lambda self: '<b>'\nTable()", "x * 3"])
    assert run_program(program, tmp_path).splitlines() == ["<b>", "6"]


def test_the_notebook_about_a_table_makes_a_classifier(tmp_path: Path) -> None:
    shown = run_program(program_of(sources_of("table", "code")), tmp_path)
    assert "ScoreInterval(value=" in shown
    labels = re.findall(r"<tr><td>(good|bad)</td>", shown)
    assert labels == ["good", "bad"]


def test_the_notebook_about_text_makes_a_model_that_fills_words_and_searches(tmp_path: Path) -> None:
    shown = run_program(program_of(sources_of("text", "code")), tmp_path)
    tables = re.findall(r"<thead><tr>(.*?)</tr></thead><tbody>(.*?)</tbody>", shown)
    rows = {re.sub(r"</?th>", " ", head).strip(): body.count("<tr>") for head, body in tables}
    assert rows["token  id  start  end"] > 5
    assert rows["word  probability  text  token"] == 5
    assert rows["row  score  text"] == 5
