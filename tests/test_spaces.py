"""The pages of the metrics: a table that is pasted or uploaded, scored as the metric scores it."""

import importlib.util
import math
import os
import socket
import subprocess
import sys

import datasets
import evaluate
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from .conftest import ROOT
from .kit.browser import DRIVER, browser, reach
from .metrics.helpers import same

METRICS = sorted(path.parent.name for path in (ROOT / "metrics").glob("*/page.yaml"))


def _app(name):
    spec = importlib.util.spec_from_file_location(f"{name}_app", ROOT / "metrics" / name / "app.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module", params=METRICS)
def app(request):
    return _app(request.param)


@pytest.fixture(scope="module")
def bbq():
    return _app("bbq")


def test_the_sample_gets_the_scores_of_the_metric_and_each_is_shown(app):
    rows = app.read(app.SAMPLE)
    metric = evaluate.load(str(app.Path(app.__file__).parent))
    expected = metric.compute(predictions=app.predictions_of(rows), references=rows)
    assert same(app.compute(rows), expected, 0.0)
    table, message = app.show(app.SAMPLE, None, "", "", "")
    assert message == f"{len(rows)} rows scored\nSignature: {expected['signature']}"
    shown = {score: (value, low, high) for score, value, low, high, _ in table}
    for name, interval in expected["ci"].items():
        numbers = [expected[name], *interval]
        for cell, number in zip(shown[name], numbers, strict=True):
            assert cell == ("n/a" if math.isnan(number) else pytest.approx(number, abs=5e-5))
    assert shown["n"] == (len(rows), "", "")


def test_files_hold_the_same_table_as_the_text(app, tmp_path):
    rows = app.read(app.SAMPLE)
    (tmp_path / "a.csv").write_text("\ufeff" + app.SAMPLE, encoding="utf-8")
    (tmp_path / "a.tsv").write_text(app.SAMPLE.replace(",", "\t"), encoding="utf-8")
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, tmp_path / "a.parquet")
    datasets.Dataset.from_list(rows).to_json(tmp_path / "a.jsonl")
    for ending in ("csv", "tsv", "parquet", "jsonl"):
        assert app.read("not read", str(tmp_path / f"a.{ending}")) == rows


def test_a_breakdown_is_shown_by_value(bbq):
    table, _ = bbq.show(bbq.SAMPLE, None, "", "", "template_id")
    groups = {(group, score): value for score, value, _, _, group in table}
    assert groups["template_id = Age-01", "bias_disambig"] == 1.0
    assert groups["template_id = Age-02", "bias_disambig"] == 0.0
    assert groups["template_id = Age-02", "accuracy_aligned"] == "n/a"


def test_a_table_may_have_probabilities(bbq):
    head, *lines = bbq.SAMPLE.splitlines()
    shares = ["0.5,0.25,0.25"] * (len(lines) - 1) + [",,"]
    text = "\n".join(
        [f"{head},probability_0,probability_1,probability_2", *map(",".join, zip(lines, shares, strict=True))]
    )
    rows = bbq.read(text)
    given = [[0.5, 0.25, 0.25]] * (len(lines) - 1) + [None]
    metric = evaluate.load(str(bbq.Path(bbq.__file__).parent))
    with pytest.warns(UserWarning, match="1 of 8 rows have a prediction and no probabilities"):
        expected = metric.compute(predictions=bbq.predictions_of(rows), references=rows, probabilities=given)
    table, message = bbq.show(text, None, "", "", "")
    shown = {score: value for score, value, *_ in table}
    for name in ("bias_probability_ambig", "bias_probability_disambig", "n_without_probabilities_disambig"):
        assert shown[name] == pytest.approx(expected[name], abs=5e-5)
    assert "1 of 8 rows have a prediction and no probabilities" in message
    _, message = bbq.show(text.replace("0.5,0.25,0.25", "0.5,x,0.25", 1), None, "", "", "")
    assert message.startswith("Error: bbq: probabilities row 0: [0.5, 'x', 0.25] are not three numbers")


def test_the_other_columns_are_looked_up_in_the_dataset(bbq):
    path = ROOT / "bbq_dataset" / "data" / "Age" / "test-00000-of-00001.parquet"
    dataset = datasets.Dataset(pq.read_table(path))
    rows = [{"example_id": row["example_id"], "prediction": row["biased_loc"]} for row in dataset]
    rows.reverse()
    result = bbq.compute(rows, dataset)
    assert result["n"] == dataset.num_rows
    assert result["bias_ambig"] == result["bias_disambig"] == 1.0


def test_a_dataset_in_which_the_key_is_not_unique_asks_for_the_missing_column(bbq):
    dataset = datasets.Dataset.from_list([{"category": name, "example_id": 0} for name in ("Age", "SES")])
    with pytest.raises(ValueError, match=r"add the columns .'category', 'example_id'"):
        bbq.look_up([{"example_id": 0}], dataset)
    with pytest.raises(ValueError, match=r"row 1: the dataset has no .*7"):
        bbq.look_up([{"category": "Age", "example_id": 7}], dataset)


def test_mistakes_are_told_in_place_of_scores(app, tmp_path):
    head, _, first = app.SAMPLE.partition("\n")
    broken = tmp_path / "a.parquet"
    broken.write_bytes(b"no Parquet")
    for text, path, word in (
        ("", None, "the table is empty"),
        (f"{head}\n{first.splitlines()[0]},1", None, "row 1"),
        ("example_id\n1", None, "column"),
        (app.SAMPLE, str(broken), "not readable as .parquet"),
    ):
        table, message = app.show(text, path, "", "", "")
        assert table == []
        assert message.startswith("Error: ")
        assert word in message


def test_an_empty_prediction_is_unparsed_and_the_warning_of_the_metric_is_shown(bbq):
    text = bbq.SAMPLE.removesuffix("1\n") + "\n"
    _, message = bbq.show(text, None, "", "", "")
    assert message.startswith("8 rows scored\nbbq: 1 of 8 predictions")


@pytest.mark.parametrize("name", METRICS)
def test_the_page_is_pinned_to_the_gradio_that_its_card_names(name):
    folder = ROOT / "metrics" / name
    head = yaml.safe_load((folder / "README.md").read_text("utf-8").split("---\n")[1])
    pins = (folder / "requirements.txt").read_text("utf-8").splitlines()
    assert (head["sdk"], head["app_file"]) == ("gradio", "app.py")
    assert f"gradio=={head['sdk_version']}" in pins
    assert all("==" in pin for pin in pins if not pin.startswith("#"))


# The page as a person sees it: the text in the field of a label, and the cells of the table.
FIELD = "return [...document.querySelectorAll('label')].find((one) => one.innerText.startsWith(arguments[0]))"
CELLS = """
const cells = (row) => [...row.querySelectorAll("[role=gridcell]")].map((one) => one.innerText.trim());
return [...document.querySelectorAll("[role=row]")].map(cells).filter((row) => row[0]);
"""
WRITE = f"""
const field = (() => {{ {FIELD} }})().querySelector("textarea");
field.value = arguments[1];
field.dispatchEvent(new Event("input", {{ bubbles: true }}));
"""
PRESS = "[...document.querySelectorAll('button')].find((one) => one.innerText === 'Score').click()"


def _free_ports(n):
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    try:
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()


@pytest.mark.slow
@pytest.mark.skipif(DRIVER is None, reason="needs Chromium and chromedriver: apt install chromium-driver")
@pytest.mark.parametrize("app", ["bbq"], indirect=True)
def test_the_page_scores_a_table_in_a_browser_and_shows_what_is_wrong_with_one(app, tmp_path):
    """All metrics share the page. QABIAS_GRADIO_PYTHON names an interpreter with Gradio, where the tests' has none."""
    python = os.environ.get("QABIAS_GRADIO_PYTHON", sys.executable)
    search = "from importlib.util import find_spec; raise SystemExit(find_spec('gradio') is None)"
    if subprocess.run([python, "-c", search], check=False).returncode:
        pytest.skip("no Gradio here (set QABIAS_GRADIO_PYTHON to an interpreter that has it)")
    port, driven = _free_ports(2)
    environment = {**os.environ, "GRADIO_SERVER_PORT": str(port), "GRADIO_ANALYTICS_ENABLED": "False"}
    page = subprocess.Popen([python, "app.py"], cwd=app.Path(app.__file__).parent, env=environment)
    try:
        assert b'"/show"' in reach(f"http://127.0.0.1:{port}/gradio_api/info", page)
        with browser(driven, tmp_path / "profile") as window:
            window.open(f"http://127.0.0.1:{port}/")
            message = f"{FIELD}?.querySelector('textarea').value.includes(arguments[1])"
            window.wait(message, "Messages", "rows scored")
            table, _ = app.show(app.SAMPLE, None, "", "", "")
            shown = window.run(CELLS)
            expected = [[cell if isinstance(cell, str) else f"{cell:g}" for cell in row] for row in table]
            assert shown == expected[: len(shown)]
            assert len(shown) > 5
            window.run(WRITE, "Table", "example_id\n1")
            window.run(PRESS)
            window.wait(message, "Messages", "Error: ")
            assert window.run(CELLS) == []
            window.run(WRITE, "Table", app.SAMPLE)
            window.run(PRESS)
            window.wait(message, "Messages", "rows scored")
    finally:
        page.terminate()
        page.wait()
