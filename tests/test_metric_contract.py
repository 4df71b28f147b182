"""What every metric does, whatever it measures: each folder under `metrics/` is found and tested by itself.

The rows are those of the sample that the page of the metric shows, so that a new metric needs no entry here.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.util
import inspect
import json
import re
import shutil
import statistics
import sys
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, NamedTuple

import datasets
import evaluate
import pytest

from .conftest import ROOT
from .metrics.helpers import same, unsigned

METRICS = sorted(path.parent.name for path in (ROOT / "metrics").glob("*/page.yaml"))

LIBRARIES = {"numpy", "datasets", "pyarrow", "evaluate", "yaml"}
"""What a Space has beside the standard library; `datasets` needs PyYAML."""


class Case(NamedTuple):
    """A metric with the sample of its page."""

    name: str
    folder: Path
    metric: Any
    predictions: list[Any]
    rows: list[dict[str, Any]]

    @property
    def options(self) -> Any:
        """The class of the metric's options."""
        return vars(sys.modules[type(self.metric).__module__])["Options"]

    def compute(self, **options: Any) -> dict[str, Any]:
        return dict(self.metric.compute(predictions=self.predictions, references=self.rows, **options))


@pytest.fixture(scope="module", params=METRICS)
def case(request) -> Case:
    folder = ROOT / "metrics" / request.param
    spec = importlib.util.spec_from_file_location(f"{request.param}_page", folder / "app.py")
    page = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(page)
    rows = page.read(page.SAMPLE)
    return Case(request.param, folder, evaluate.load(str(folder)), page.predictions_of(rows), rows)


# The folder


def test_a_copied_folder_loads_away_from_the_checkout(case, tmp_path, monkeypatch):
    copy = tmp_path / "elsewhere" / case.name
    shutil.copytree(case.folder, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if Path(entry or ".").resolve() != ROOT])
    for path in (copy, copy / f"{case.name}.py"):
        metric = evaluate.load(str(path))
        assert same(metric.compute(predictions=case.predictions, references=case.rows), case.compute(), 0.0)


def _imports(path: Path) -> list[tuple[str, int, bool]]:
    """The modules that a file imports: name, number of leading dots, and whether in a function."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    lazy = {id(inner) for function in functions for inner in ast.walk(function)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, 0, id(node) in lazy) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append((node.module or "", node.level, id(node) in lazy))
    return found


def test_modules_import_only_what_a_space_has(case):
    for path in case.folder.glob("*.py"):
        for module, level, lazy in _imports(path):
            top = module.split(".")[0]
            if level:
                assert level == 1, f"{path}: {module}"
                assert (case.folder / f"{top}.py").is_file(), f"{path}: {module}"
            elif (path.name, top, lazy) != ("app.py", "gradio", True):
                assert top in LIBRARIES or top in sys.stdlib_module_names, f"{path}: {module}"
                allowed = path.name in ("app.py", f"{case.name}.py")
                assert allowed or top != "evaluate", f"{path}: only the adapter and the page may import evaluate"
                plain = path.name == "scores.py"
                assert not plain or top == "numpy" or top in sys.stdlib_module_names, f"{path}: {module}"


def test_what_metrics_share_is_one_file(case):
    for path in (ROOT / "metrics" / "shared").glob("[!_]*.py"):
        assert (case.folder / path.name).resolve() == path
        assert not (case.folder / path.name).readlink().is_absolute()


def test_the_engine_computes_what_the_module_does_without_evaluate(case, monkeypatch):
    name = f"qabias.share.metrics.{case.name}.computing"
    for module in [module for module in sys.modules if module.startswith(name.rpartition(".")[0])]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "evaluate", None)
    computing = importlib.import_module(name).Computing()
    ours, theirs = (inspect.signature(of.compute).parameters.values() for of in (computing, case.metric))
    assert [(of.name, of.default) for of in ours] == [(of.name, of.default) for of in theirs]
    assert same(computing.compute(predictions=case.predictions, references=case.rows), case.compute(), 0.0)
    with pytest.raises(ValueError, match=f"^{case.name}: "):
        computing.compute(predictions=[], references=[])


# What the metric says of itself


def test_card_has_the_sections_and_head_of_a_metric_card(case):
    card = (case.folder / "README.md").read_text(encoding="utf-8")
    head = card.split("---\n")[1]
    for key in ("title", "datasets", "tags", "description", "sdk", "sdk_version", "app_file", "pinned"):
        assert f"\n{key}:" in f"\n{head}"
    for section in (
        *("Description", "How to Use", "Inputs", "Output Values", "Values from Popular Papers", "Examples"),
        *("Limitations and Bias", "Citation", "Further References"),
    ):
        assert f"# {section}\n" in card
    assert case.metric.citation in card


def test_card_and_docstring_name_every_key_of_the_result(case):
    card = (case.folder / "README.md").read_text(encoding="utf-8")
    for key in case.compute(by=[next(iter(case.rows[0]))]):
        short = key.removesuffix("_ambig").removesuffix("_disambig")
        assert f"`{key}`" in card or f"`{short}_*`" in card, key
        assert key in case.metric.inputs_description or f"{short}_*" in case.metric.inputs_description, key


def test_every_option_is_explained_once(case):
    text = case.metric.inputs_description.partition("Returns:")[0]
    card = (case.folder / "README.md").read_text(encoding="utf-8")
    parameters = list(inspect.signature(case.metric.compute).parameters)
    for name in parameters:
        assert len(re.findall(rf"^    {name}: ", text, re.MULTILINE)) == 1, name
        assert f"**{name}**" in card, name
    assert "Args:" not in inspect.getdoc(type(case.metric).compute)


def test_the_arguments_of_compute_are_the_options_with_their_defaults(case):
    parameters = inspect.signature(case.metric.compute).parameters.values()
    given = {parameter.name: parameter.default for parameter in parameters}
    inputs = list(inspect.signature(case.metric.add_batch).parameters)
    assert inputs[:2] == ["predictions", "references"]
    assert [given.pop(name) for name in inputs] == [None] * len(inputs)
    assert all(parameter.kind is inspect.Parameter.KEYWORD_ONLY for parameter in parameters)
    assert given == {field.name: field.default for field in fields(case.options)}
    assert MISSING not in given.values()


@pytest.mark.parametrize("where", ["card", "docstring"])
def test_examples_run(case, where, monkeypatch):
    monkeypatch.chdir(ROOT)
    card = (case.folder / "README.md").read_text(encoding="utf-8")
    text = card if where == "card" else case.metric.inputs_description
    examples = doctest.DocTestParser().get_doctest(text, {"evaluate": evaluate}, case.name, None, 0)
    result = doctest.DocTestRunner().run(examples)
    assert result.attempted > 1
    assert result.failed == 0


def test_features_name_columns_of_the_sample(case):
    features = [set(of["references"]) for of in case.metric.features]
    assert any(of <= set(case.rows[0]) for of in features)


# The signature


def test_signature_names_the_metric_the_interval_and_the_version(case):
    result = case.compute(by=[next(iter(case.rows[0]))])
    name, *parts = result["signature"].split("|")
    assert name == case.name
    *rules, confidence, version = parts
    assert confidence == "confidence:0.95"
    assert version == f"version:{case.options.VERSION}"
    assert all(re.fullmatch(r"[a-z_]+:[a-z_]+", rule) for rule in rules)
    moving = set(case.options.CHOICES) - set(case.options.NO_RULES)
    assert moving <= {rule.partition(":")[0] for rule in rules}
    assert not any("signature" in part for parts in result["by"].values() for part in parts.values())
    plain = case.compute(confidence=None)["signature"]
    assert plain == "|".join([name, *rules, version])


def test_every_option_that_moves_a_number_changes_the_signature(case):
    default = case.compute()["signature"]
    one = next(name for name, value in case.rows[0].items() if all(row[name] == value for row in case.rows))
    changed = [{"confidence": 0.5}, {"mean_over": one}]
    for name, choices in case.options.CHOICES.items():
        if getattr(case.options, name) is not None:  # else the rows tell
            changed += [{name: choice} for choice in choices if choice != getattr(case.options, name)]
    signatures = [case.compute(**options)["signature"] for options in changed]
    assert len({default, *signatures}) == 1 + len(signatures)
    for options, signature in zip(changed, signatures, strict=True):
        ((name, value),) = options.items()
        assert f"{name}:{value}|" in signature
    silent: dict[str, Any] = {"by": [next(iter(case.rows[0]))]}
    for name in case.options.NO_RULES:
        value = getattr(case.options, name)
        chosen = case.options.CHOICES.get(name)
        silent[name] = chosen[-1] if chosen else not value if isinstance(value, bool) else value + 1
    assert case.compute(**silent)["signature"] == default
    named = {*case.options.CHOICES, *silent, "confidence", "mean_over"}
    assert named == {field.name for field in fields(case.options)}, "an option without a place in this test"


# Inputs


def test_result_depends_on_neither_the_order_nor_the_shape_of_the_rows(case):
    expected = case.compute(by=[next(iter(case.rows[0]))])
    dataset = datasets.Dataset.from_list(case.rows)
    order = list(range(len(case.rows)))[::-1]
    turned = [case.predictions[k] for k in order]
    for predictions, references in (
        (case.predictions, dataset),
        (case.predictions, dataset.data.table),
        (case.predictions, {name: [row[name] for row in case.rows] for name in case.rows[0]}),
        (case.predictions, dataset.to_pandas()),
        (case.predictions, dataset[:]),
        (tuple(case.predictions), iter(case.rows)),
        (turned, [case.rows[k] for k in order]),
        (turned, dataset.select(order)),
    ):
        result = case.metric.compute(predictions=predictions, references=references, by=[next(iter(case.rows[0]))])
        assert same(result, expected)


def test_a_shuffled_dataset_is_read_column_by_column(case, monkeypatch):
    expected = case.compute(confidence=None)
    order = list(range(len(case.rows)))[::-1]
    dataset = datasets.Dataset.from_list(case.rows).select(order).select(order)

    def refuse(*arguments: Any, **options: Any) -> None:
        raise AssertionError("rows are read one by one")

    for name in ("__getitem__", "__getitems__", "__iter__", "iter"):
        monkeypatch.setattr(datasets.Dataset, name, refuse)
    assert same(case.metric.compute(predictions=case.predictions, references=dataset, confidence=None), expected)


def test_batches_add_up_to_one_call(case):
    expected = case.compute()
    half = len(case.rows) // 2
    case.metric.add_batch(predictions=case.predictions[:half], references=case.rows[:half])
    case.metric.add(prediction=case.predictions[half], reference=case.rows[half])
    dataset = datasets.Dataset.from_list(case.rows[half + 1 :])
    assert same(case.metric.compute(predictions=case.predictions[half + 1 :], references=dataset), expected)
    with pytest.raises(ValueError, match=f"^{case.name}: predictions are missing"):  # the batches are gone
        case.metric.compute()


def test_batches_are_copied_and_survive_an_error(case):
    metric = evaluate.load(str(case.folder))
    predictions, rows = list(case.predictions), list(case.rows)
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    metric.add_batch(predictions=predictions[:2], references=rows[:2])
    metric.add_batch(predictions=predictions[2:], references={name: values[2:] for name, values in columns.items()})
    predictions.clear()
    rows.clear()
    for options in ({"confidence": -1}, {"by": ["nothing"]}):
        with pytest.raises(ValueError, match=f"^{case.name}: "):
            metric.compute(**options)
    assert same(metric.compute(), case.compute())


def test_result_can_be_written_as_json(case):
    result = case.compute(by=[next(iter(case.rows[0]))])
    assert same(json.loads(json.dumps(result)), result, 0.0)


def test_values_of_a_breakdown_are_called_as_they_are(case):
    kinds = [1, 2.5, True, "x", None, 1.0, "1"]
    rows = [{**row, "mixed": kinds[k % 7], "number": [3, None][k % 2]} for k, row in enumerate(case.rows)]
    by = case.metric.compute(predictions=case.predictions, references=rows, by=["mixed", "number"], confidence=None)[
        "by"
    ]
    assert list(by["mixed"]) == sorted({str(row["mixed"]) for row in rows})
    assert list(by["number"]) == ["3", "None"]


# Several runs


def over_runs(case, *runs: list[Any], **options: Any) -> dict[str, Any]:
    """The result for several lists of predictions of the same rows, one run after another."""
    rows = [{**row, "run": f"run {number}"} for number in range(len(runs)) for row in case.rows]
    predictions = [prediction for run in runs for prediction in run]
    return dict(case.metric.compute(predictions=predictions, references=rows, mean_over="run", **options))


def scores_of(result: dict[str, Any]) -> dict[str, float]:
    return {name: result[name] for name in result["ci"]}


def test_the_mean_over_equal_runs_is_the_run_with_its_interval(case):
    by = [next(iter(case.rows[0]))]
    one, twice = case.compute(by=by), over_runs(case, case.predictions, case.predictions, by=by)
    # Templates of two runs that were taken for twice as many would make the interval of the mean narrower.
    assert same(twice["ci"], one["ci"])
    assert same(scores_of(twice), scores_of(one))
    assert twice["n_runs"] == 2
    assert twice["n"] == 2 * one["n"]
    assert all(spread == 0 or spread != spread for spread in twice["spread"].values())
    for value, part in one["by"][by[0]].items():
        assert same(scores_of(twice["by"][by[0]][value]), scores_of(part))
        assert same(twice["by"][by[0]][value]["ci"], part["ci"])


def test_the_scores_of_several_runs_are_their_means_with_their_spread(case):
    backwards = case.predictions[::-1]
    rotated = [*case.predictions[1:], case.predictions[0]]
    runs = [case.predictions, backwards, rotated]
    single = [scores_of(case.metric.compute(predictions=run, references=case.rows)) for run in runs]
    result = over_runs(case, *runs)
    for name, value in scores_of(result).items():
        values = [scores[name] for scores in single]
        assert same(value, sum(values) / 3)
        assert same(result["spread"][name], statistics.stdev(values) if value == value else value)
    shuffled = over_runs(case, *runs[::-1])
    assert same(scores_of(shuffled), scores_of(result))
    assert same(shuffled["ci"], result["ci"])


def test_one_run_by_name_is_the_same_as_without(case):
    result = over_runs(case, case.predictions)
    assert same(unsigned(result), unsigned(case.compute()))
    assert "|mean_over:run|" in result["signature"]


def test_runs_with_other_rows_are_refused(case):
    rows = [{**row, "run": number} for number in (1, 2) for row in case.rows]
    rows[-1] = {**rows[-1], "run": 3}
    with pytest.raises(ValueError, match="the runs do not have this row equally often"):
        case.metric.compute(predictions=[*case.predictions] * 2, references=rows, mean_over="run", **_loose(case))
    for options, message in (
        ({"mean_over": 3}, "mean_over 3 is not the name of a column"),
        ({"mean_over": "run", "by": [["run", "x"]]}, "mean_over 'run' is also in by"),
        ({"mean_over": "walk"}, "references: column 'walk' is unknown\n  fix: name one of"),
        ({"mean_over": "runn"}, "references: column 'runn' is unknown. Did you mean 'run'\\?\n  fix: .*e.g. run$"),
    ):
        with pytest.raises(ValueError, match=f"^{case.name}: {message}"):
            case.metric.compute(predictions=case.predictions, references=rows[: len(case.rows)], **options)


def _loose(case) -> dict[str, bool]:
    return {"allow_incomplete": True} if "allow_incomplete" in case.options.NO_RULES else {}


# Errors


@pytest.mark.parametrize("references", [[], {}, datasets.Dataset.from_dict({})])
def test_empty_input_is_refused(case, references):
    with pytest.raises(ValueError, match=f"^{case.name}: predictions and references are empty"):
        case.metric.compute(predictions=[], references=references)


def test_bad_inputs_are_named(case):
    rows, predictions = case.rows, case.predictions
    column = next(name for name in case.metric.features[0]["references"] if name in rows[0])
    short = [{name: value for name, value in row.items() if name != column} for row in rows]
    for given, references, message in (
        (predictions[1:], rows, f"{len(rows) - 1} predictions but {len(rows)} references"),
        (None, rows, "predictions are missing"),
        (predictions, None, "references are missing"),
        (predictions, "rows", "references are a str"),
        (predictions, 7, "references are a int\n  fix: pass"),
        (predictions, [*rows[1:], "row"], f"references row {len(rows) - 1}: 'row' is not a dict of columns"),
        (predictions, {"a": [1], "b": []}, "references: the columns differ in length ({'a': 1, 'b': 0})"),
        (predictions, {"a": "text"}, "references column 'a' is a str"),
        (predictions, datasets.DatasetDict({"test": datasets.Dataset.from_list(rows)}), "references hold the splits"),
        ("text", rows, "predictions are a str"),
    ):
        with pytest.raises(ValueError, match=f"^{case.name}: ") as error:
            case.metric.compute(predictions=given, references=references)
        assert str(error.value).removeprefix(f"{case.name}: ").startswith(message)
    told = [part.split(":") for part in case.compute(confidence=None)["signature"].split("|")[1:]]
    told = {name: value for name, value in told if getattr(case.options, name, "") is None}  # else the columns tell it
    for references, where in ((short, " row 0"), (datasets.Dataset.from_list(short), "")):
        message = f"^{case.name}: references{where}: column '{column}' is missing"
        with pytest.raises(ValueError, match=message):
            case.metric.compute(predictions=predictions, references=references, **told)


def test_bad_options_are_named(case):
    rows = [{**row, "tags": ["a"]} for row in case.rows]
    bad: list[tuple[dict[str, Any], str]] = [
        ({"confidence": 95}, "confidence 95 is not above 0 and below 1"),
        ({"confidence": 0}, "confidence 0 is not above 0 and below 1"),
        ({"confidence": "0.9"}, "confidence '0.9' is not above 0 and below 1"),
        ({"by": ["zzz"]}, "references: column 'zzz' is unknown\n  fix: name one of"),
        ({"by": ["tgas"]}, "references: column 'tgas' is unknown. Did you mean 'tags'?\n  fix: name one of"),
        ({"by": [3]}, "by entry 3 is neither a column name nor a list of column names"),
        ({"by": [["category", 3]]}, "by entry ['category', 3] is neither"),
        ({"by": [[]]}, "by entry [] is neither"),
        ({"by": "tags"}, "references row 0: tags ['a'] is not a single value"),
    ]
    bad += [
        ({name: "x"}, f"{name} 'x' is not allowed\n  fix: choose one of {choices}")
        for name, choices in case.options.CHOICES.items()
    ]
    for options, message in bad:
        with pytest.raises(ValueError, match=f"^{case.name}: ") as error:
            case.metric.compute(predictions=case.predictions, references=rows, **options)
        assert str(error.value).removeprefix(f"{case.name}: ").startswith(message)
    with pytest.raises(TypeError, match="unexpected keyword argument 'normalise'"):
        case.compute(normalise=True)


def test_several_processes_are_refused(case):
    """When the metric is loaded, not after a distributed evaluation."""
    with pytest.raises(ValueError, match=f"^{case.name}: num_process 2 is not supported"):
        evaluate.load(str(case.folder), num_process=2, process_id=0, experiment_id=f"{case.name}-contract")
