"""Tables of the paper reproduced on real files, at a scale of seconds."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

import bertkit
from bertkit.errors import BertkitError
from bertkit.reproduction.estimate import ReproductionEstimate
from bertkit.reproduction.reproduce import Reproduction

pytestmark = pytest.mark.usefixtures("without_shape_checks")

SMALL = ["steps=3", "limit=13", "dev_limit=13", "corpus_megabytes=0.3", "word_vocab_size=700", "span_length=96"]
MINUTES = 15


def reproduce(table: str, output: Path, data: Path, *, settings: list[str] = SMALL) -> Reproduction:
    found = bertkit.reproduce(table, data=data, output=output, scale="smoke", set=settings, progress="quiet")
    assert isinstance(found, Reproduction)
    return found


def test_a_table_with_every_kind_of_system(data_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (table,) = reproduce("table4", out, data_folder).tables
    found = {row.name: row for row in table.rows}
    for name in ("ESIM+GloVe", "ESIM+ELMo", "OpenAI GPT", "BERT-Base", "BERT-Large"):
        (score,) = found[name].cells[0].ours
        assert 0 <= score <= 100
        assert score / 100 * 13 == pytest.approx(round(score / 100 * 13)), "13 dev examples"
    assert found["BERT-Base"].cells[0].paper == 81.6
    assert found["Human (expert)"].cells[0].ours == []
    cost = found["BERT-Base"].cost
    assert cost is not None
    assert cost.pretraining_flop is not None
    page = (out / "reproduction.md").read_text()
    assert "figures mean nothing" in page
    assert "codah-train.csv" in page, "replaced files are named"
    assert "$ bertkit reproduce table4 -o" in page

    names = ["bert-base-swag--esim-elmo-swag.json", "bert-large-swag--bert-base-swag.json"]
    assert sorted(each.name for each in (out / "comparisons").iterdir()) == names
    for answer in table.answers:
        assert answer.verdict == "not measured", "there is one seed"
        assert answer.claim.text in page[: page.index(table.heading)]

    stamps = {path: path.stat().st_mtime_ns for path in out.rglob("results.json")}
    assert len(stamps) == 5
    begin = time.process_time()
    assert reproduce("4", out, data_folder).tables[0].text_rows() == table.text_rows()
    assert {path: path.stat().st_mtime_ns for path in out.rglob("results.json")} == stamps, (
        "finished runs are not repeated"
    )
    assert time.process_time() - begin < 5

    with pytest.raises(BertkitError, match=r"was made with other settings \(not the same seeds\)"):
        reproduce("table4", out, data_folder, settings=[*SMALL, "seeds=2"])
    with pytest.raises(BertkitError, match=r"was made with other settings \(not the same --corpus\)"):
        bertkit.reproduce("table4", data=data_folder, output=out, corpus=[__file__], scale="smoke", set=SMALL)
    assert reproduce("Table 4", out.rename(tmp_path / "moved"), data_folder).tables[0].text_rows() == table.text_rows()


def test_gensim_is_missed_before_the_networks_are_trained(
    data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    with pytest.raises(BertkitError, match=r"training word vectors needs gensim: pip install 'bertkit\[vectors\]'"):
        bertkit.reproduce("table7", data=data_folder, output=tmp_path / "out", scale="smoke", progress="quiet")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["reproduction.json"]


@pytest.mark.parametrize("rank", ["0", "1"])
def test_a_folder_of_another_verb_is_left_as_it_is(
    data_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rank: str
) -> None:
    monkeypatch.setenv("RANK", rank)  # torchrun gives no order in which processes see the folder
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(BertkitError, match=r"has run.json and no reproduction.json"):
        reproduce("table4", tmp_path, data_folder)
    assert [each.name for each in tmp_path.iterdir()] == ["run.json"]


def test_a_plan_estimates_the_cost_and_trains_nothing(data_folder: Path, tmp_path: Path) -> None:
    plan = bertkit.reproduce("all", data=data_folder, output=tmp_path / "out", scale="paper", plan=True)
    assert isinstance(plan, ReproductionEstimate)
    assert not (tmp_path / "out").exists()
    by_name = {each.name: each for each in plan.pretrainings}
    assert by_name["bert-base"].parameters == pytest.approx(110e6, rel=0.02)
    assert by_name["bert-large"].parameters == pytest.approx(336e6, rel=0.02)
    # 6 FLOP per parameter of the layers (85 M) and token: 128 tokens in 9 of 10 steps and 512 in the last tenth.
    least = 6 * 85e6 * 256 * (0.9 * 128 + 0.1 * 512) * 1e6
    assert least < by_name["bert-base"].flop < 1.5 * least
    assert {"gpt", "elmo", "roberta", "ltr", "no-nsp", "size-1", "masks-0-0-100", "bert-base-cased"} <= set(by_name)
    assert plan.finetunings > 100
    assert any("bert-large" in line for line in plan.lines())


@pytest.mark.parametrize(
    ("table", "scale", "settings", "message"),
    [
        ("tabel5", "smoke", [], 'Did you mean "table5"'),
        ("table5", "smkoe", [], 'no scale named "smkoe". Did you mean "smoke"'),
        ("table5", "smoke", ["stesp=3"], "unknown key stesp. Did you mean steps"),
        ("table5", "smoke", ["steps=0"], "steps is 0; it must be from 1 to"),
    ],
)
def test_mistakes_are_reported_before_any_work(
    table: str, scale: str, settings: list[str], message: str, data_folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(BertkitError) as error:
        bertkit.reproduce(table, data=data_folder, output=tmp_path, scale=scale, set=settings, progress="quiet")
    assert message in str(error.value)
    assert not any(tmp_path.iterdir())


def test_unusable_output_and_corpus_are_reported(data_folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(BertkitError, match=r"cannot write to .*file: File exists\. Choose another -o folder"):
        reproduce("table5", file, data_folder)
    with pytest.raises(BertkitError, match=r"is a folder; name its files, such as .*\*\.txt"):
        bertkit.reproduce("table5", data=data_folder, output=file, corpus=[tmp_path], progress="quiet")


def test_missing_data_is_reported(tmp_path: Path) -> None:
    with pytest.raises(BertkitError, match=r"corpora has no enwiki\* and no books"):
        bertkit.reproduce("table5", data=tmp_path, output=tmp_path / "out", scale="smoke", progress="quiet")
    text = tmp_path / "text.txt"
    text.write_text("A sentence. Another one.\n")
    with pytest.raises(BertkitError, match=r"MNLI.*does not exist"):
        bertkit.reproduce(
            "table5", data=tmp_path, output=tmp_path / "out", scale="smoke", corpus=[text], progress="quiet"
        )


@pytest.mark.slow
def test_all_tables_take_minutes(data_folder: Path, tmp_path: Path) -> None:
    begin = time.monotonic()
    found = reproduce("all", tmp_path / "out", data_folder, settings=[])
    assert time.monotonic() - begin < MINUTES * 60
    assert len(found.tables) == 10
    for table in found.tables:
        content = json.loads((tmp_path / "out" / f"{table.name}.json").read_text())
        with_system = [row for row in content["rows"] if row["cost"] is not None]
        assert with_system, table.name
        for row in with_system:
            assert row["cells"][0]["ours"], f"{table.name}: {row['name']}"
