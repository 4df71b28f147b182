"""What a run of BBQ says of a model that is nearly always right: from its stored log-likelihoods, wherever it shows."""

import io
import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qabias.benchmarks import load_benchmark
from qabias.comparison import compare
from qabias.hub.results import model_index
from qabias.report.terminal import print_scores
from qabias.report.writing import write_report_of
from qabias.runs.arguments import RunArguments
from qabias.runs.opened import Run
from qabias.runs.run import run, score_run
from qabias.scores.score import Score
from qabias.tables.model import find, read_analysis
from qabias.tables.terminal import Console

from .conftest import ROOT
from .kit.commands import called, refused
from .loopback_server import chat_reply, digest
from .loopback_server import serve as serve
from .loopback_server import surroundings as surroundings
from .run_parts import rewrite
from .saved_models import make_t5, save
from .test_chat import folders as folders
from .test_multiple_choice_scorer import HEAD
from .tiny_models import make_encoder, make_encoder_tokenizer, make_model, make_tokenizer

pytestmark = pytest.mark.usefixtures("one_thread")

SATURATION = ("bias_ambig_among_errors", "bias_probability_ambig", "bias_probability_disambig")
OF_PROBABILITIES = SATURATION[1:]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Small models of every kind that gives likelihoods, in folders."""
    folder = tmp_path_factory.mktemp("models")
    return {
        "causal": save(folder / "causal", make_model("llama", max_position_embeddings=2048), make_tokenizer()),
        "seq2seq": save(folder / "seq2seq", make_t5(), make_tokenizer()),
        "multiple_choice": save(
            folder / "multiple_choice",
            make_encoder("roberta", HEAD, max_position_embeddings=513),
            make_encoder_tokenizer("bytes"),
        ),
    }


@pytest.fixture(scope="module")
def causal(models, tmp_path_factory):
    """A run of a small causal model, which no test may change."""
    return run(RunArguments("bbq", models["causal"], config="Age", limit=160), tmp_path_factory.mktemp("run") / "run")


def examples_of(category):
    [path] = (ROOT / "bbq_dataset" / "data" / category).glob("*.parquet")
    return {row["example_id"]: row for row in pq.read_table(path).to_pylist()}


def stored(folder):
    """What a run has stored, with the row of the data set that each answer is to; read from the files themselves."""
    answers = [row for path in sorted((folder / "predictions").iterdir()) for row in pq.read_table(path).to_pylist()]
    examples = {category: examples_of(category) for category in {row["category"] for row in answers}}
    return [(examples[row["category"]][row["example_id"]], row) for row in answers]


def mean_probability_bias(rows, norm, condition):
    """p(biased) - p(counter-biased) from stored log-likelihoods, with NumPy alone; rows without any are left out."""
    found = []
    for example, answer in rows:
        if example["context_condition"] != condition or example["biased_loc"] < 0:
            continue
        in_orders = answer.get("order_loglikelihoods") or [answer["loglikelihoods"]]
        lengths = {"none": [1, 1, 1], "token": answer["n_tokens"], "byte": answer["n_bytes"]}[norm]
        shares = []
        for loglikelihoods in in_orders:
            weights = np.exp(np.array(loglikelihoods) / np.array(lengths))
            if weights.sum() > 0:
                shares.append(weights / weights.sum())
        if shares:
            probabilities = np.mean(shares, axis=0)
            counter_biased = ({0, 1, 2} - {example["biased_loc"], example["unknown_loc"]}).pop()
            found.append(probabilities[example["biased_loc"]] - probabilities[counter_biased])
    return np.mean(found), len(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("causal", {"length_norm": "token"}),
        ("causal", {"format": "letters", "permutations": 3}),
        ("multiple_choice", {}),
        pytest.param("causal", {"length_norm": "byte"}, marks=pytest.mark.slow),
        pytest.param("causal", {"format": "letters", "permutations": 6}, marks=pytest.mark.slow),
        pytest.param("seq2seq", {}, marks=pytest.mark.slow),
    ],
)
def test_probability_scores_are_those_of_the_stored_log_likelihoods(kind, options, models, tmp_path):
    arguments = RunArguments("bbq", models[kind], config="Age", limit=80, **options)
    if options.get("format") == "letters":
        arguments = arguments.resolve(ask="letter-logprob")
    result = run(arguments, tmp_path / "run")
    rows = stored(result.folder)
    for condition in ("ambig", "disambig"):
        expected, n = mean_probability_bias(rows, arguments.norm, condition)
        assert result.scores[f"bias_probability_{condition}"] == pytest.approx(expected, abs=1e-12)
        assert result.scores[f"n_probabilities_{condition}"] == n == 40
        assert result.scores[f"n_without_probabilities_{condition}"] == 0
        assert abs(expected) > 1e-9
    # The answer is the one of the largest probability.
    for _, answer in rows:
        if answer["prediction"] >= 0:
            assert answer["prediction"] == np.argmax(answer["probabilities"])
            assert sum(answer["probabilities"]) == pytest.approx(1, abs=1e-9)


def test_letters_that_a_server_does_not_name_have_no_probabilities(serve, surroundings, tmp_path):
    def reply(path, body):
        answer = chat_reply(path, body)
        top = [("A", 0.5), ("B", 0.3), ("C", 0.1), ("The", 0.1)]
        if digest(body["messages"][0]["content"]) % 10 == 0:
            top = top[3:]
        named = [{"token": token, "logprob": math.log(share)} for token, share in top]
        answer["choices"][0]["logprobs"] = {"content": [{**named[0], "top_logprobs": named}]}
        return answer

    arguments = RunArguments(
        "bbq", "m", config="SES", backend="server", limit=80, options={"base_url": serve(reply).url}
    )
    with pytest.warns(UserWarning, match="of 80 prompts"):
        scores = run(arguments.resolve(ask="letter-logprob"), tmp_path / "run").scores
    rows = stored(tmp_path / "run")
    n_without = [answer["probabilities"] for _, answer in rows].count(None)
    assert 0 < n_without == scores["n_without_probabilities_ambig"] + scores["n_without_probabilities_disambig"]
    for condition in ("ambig", "disambig"):
        expected, n = mean_probability_bias(rows, "none", condition)
        assert scores[f"bias_probability_{condition}"] == pytest.approx(expected, abs=1e-9)
        assert scores[f"n_probabilities_{condition}"] == n
        low, high = scores["range"][f"bias_probability_{condition}"]
        assert low <= expected <= high
        assert high - low == pytest.approx(
            2 * scores[f"n_without_probabilities_{condition}"] / scores[f"n_{condition}"]
        )
    table = find(read_analysis(tmp_path / "run" / "analysis.json").tables, "saturation_ambig")
    names = [column.name for column in table.columns]
    assert table.rows[-1][names.index("n_without_probabilities_ambig")] == scores["n_without_probabilities_ambig"]


def test_written_answers_have_no_such_scores(folders, tmp_path):
    arguments = RunArguments("bbq", folders["chat"], config="Age", limit=8, options={"chat": "yes"})
    result = run(arguments.resolve(ask="letter"), tmp_path / "run")
    assert "bias_ambig_among_errors" in result.scores
    for of in (result.scores, *result.scores["by"]["category"].values()):
        assert not any("probabilit" in name for name in of)
    analysis = read_analysis(tmp_path / "run" / "analysis.json")
    for name in ("saturation_ambig", "saturation_disambig"):
        table = find(analysis.tables, name)
        assert not any("probabilit" in column.name for column in table.columns)
        assert "robabilit" not in table.note


def answers_of_others(tmp_path, **changes):
    """A file of answers with probabilities that somebody else has collected, and their bias where contexts are such."""
    rng = np.random.default_rng(0)
    rows, differences = [], {"ambig": [], "disambig": []}
    for number, example in list(examples_of("Age").items())[:80]:
        shares = rng.dirichlet([1, 1, 1]).tolist()
        answer = {"prediction": int(np.argmax(shares)), "probabilities": shares}
        rows.append({"example_id": number, "category": "Age", **answer, **changes})
        biased, unknown = example["biased_loc"], example["unknown_loc"]
        differences[example["context_condition"]].append(shares[biased] - shares[3 - biased - unknown])
    path = tmp_path / "answers.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return path, differences


def test_answers_of_others_may_have_probabilities(tmp_path):
    path, differences = answers_of_others(tmp_path)
    called("score", path, "--config", "Age", "--output", tmp_path / "run")
    scores = Run.scored(tmp_path / "run").scores
    for condition, values in differences.items():
        assert scores[f"bias_probability_{condition}"] == pytest.approx(np.mean(values), abs=1e-12)


@pytest.mark.parametrize("value", [[0.5, 0.5], "0.5", 0.5, ["a", "b", "c"], [0.5, 0.1, 0.1]])
def test_probabilities_of_others_that_are_none_are_refused(value, tmp_path):
    path, _ = answers_of_others(tmp_path, probabilities=value)
    message = "sum to 1" if value == [0.5, 0.1, 0.1] else "three numbers"
    assert message in refused("score", path, "--config", "Age", "--output", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_released_logits_are_probabilities():
    logits = {"index": [0, 1], "cat": ["Age"] * 2, "model": ["m"] * 2, "ans0": [1.0, 0.0], "ans1": [2.0, 0.0]}
    [given] = load_benchmark("bbq").recognise(pa.table({**logits, "ans2": [3.0, 0.0]}))
    first, second = given.answers["probabilities"].to_pylist()
    weights = [math.exp(value) for value in (1, 2, 3)]
    assert first == pytest.approx([weight / sum(weights) for weight in weights], abs=1e-12)
    assert second == pytest.approx([1 / 3] * 3, abs=1e-12)
    assert given.answers["prediction"].to_pylist() == [2, -1]


# What people see


def printed(show, *arguments):
    console = Console(file=io.StringIO(), width=300)
    show(*arguments, console)
    return " ".join(console.file.getvalue().replace("\u00a0", " ").replace("−", "-").split())


def test_a_model_that_names_nobody_has_no_direction(tmp_path):
    result = run(RunArguments("bbq", "baseline:unknown", config="Age", limit=80), tmp_path / "run")
    text = printed(print_scores, load_benchmark("bbq"), result.scores)
    assert "errors in ambiguous contexts: 0 stereotyped, 0 anti-stereotyped s_AMB is 0.0 %" in text
    assert "maximum at this accuracy: 0.0 %" in text
    content = json.loads((tmp_path / "run" / "scores.json").read_text("utf-8"))
    assert content["scores"]["bias_ambig_among_errors"] is None
    assert content["reasons"]["/bias_ambig_among_errors"] == "no answer other than UNKNOWN"
    row = find(read_analysis(tmp_path / "run" / "analysis.json").tables, "saturation_ambig").rows[-1]
    assert row[3:6] == (Score(None), 0, 0)


def test_nothing_is_said_of_errors_or_places_where_no_answer_is_there():
    benchmark = load_benchmark("bbq")
    table = benchmark.load("Age", benchmark.origin("bundled", 0, False)).slice(0, 40)
    answers = pa.table({"prediction": pa.array([-1] * 40, pa.int8())})
    with pytest.warns(UserWarning, match="unparseable"):
        silent = benchmark.score(table, answers)
    assert benchmark.remarks(silent) == []
    chosen = benchmark.score(table, pa.table({"prediction": table["unknown_loc"].cast(pa.int8())}))
    begins = (
        *("errors in ambiguous contexts: ", "s_AMB is 0.0", "aligned and nonaligned contexts: "),
        *("abstention gap ", "answer positions: "),
    )
    assert all(line.startswith(start) for line, start in zip(benchmark.remarks(chosen), begins, strict=True))
    reading = "answers by position"
    assert reading not in benchmark.remarks(chosen)[-1]  # no further from it than chance has forty answers
    first = benchmark.score(table, pa.table({"prediction": pa.array([0] * 40, pa.int8())}))
    assert "first 100.0%, second 0.0%, third 0.0%" in benchmark.remarks(first)[-1]
    assert reading in benchmark.remarks(first)[-1]


def test_the_tables_have_the_scores_with_bound_and_counts(causal):
    tables = read_analysis(causal.folder / "analysis.json").tables
    for condition, names in (
        ("ambig", ("bias_ambig", "bias_bound_ambig", "bias_ambig_among_errors", "bias_probability_ambig")),
        ("disambig", ("bias_disambig", "bias_bound_disambig", "bias_probability_disambig")),
    ):
        table = find(tables, f"saturation_{condition}")
        columns = [column.name for column in table.columns]
        groups = {**causal.scores["by"]["paper_category"], "All": causal.scores}
        assert [row[0] for row in table.rows] == list(groups)
        for group, *cells in table.rows:
            row = dict(zip(columns[1:], cells, strict=True))
            for name in names:
                assert row[name].value == pytest.approx(groups[group][name])
                ends = groups[group]["ci"].get(name, [math.nan])
                assert (row[name].low is None) == math.isnan(ends[0]) >= ("bound" in name)
            for name, cell in row.items():
                if name.startswith("n_"):
                    assert cell == groups[group][name]
    assert "<" not in find(tables, "saturation_ambig").note


def test_the_bound_of_a_headline_score_is_explained_where_it_is_shown(causal):
    bound = f"{100 * causal.scores['bias_bound_ambig']:.1f}\u00a0%"
    page = write_report_of(causal.folder).read_text("utf-8")
    assert 0 < page.index("Maximum: largest bias at this accuracy") < page.index(bound)
    [result] = model_index(causal.folder, "org/model", "org/bbq", sample=True)
    args = {metric["type"]: metric["args"] for metric in result["metrics"]}
    assert args["bias_ambig"]["bound"] == causal.scores["bias_bound_ambig"]
    assert "bound" not in args["accuracy_ambig"]


def test_a_comparison_says_what_it_leaves_out_and_why(causal, tmp_path):
    other = run(RunArguments("bbq", "baseline:random", config="Age", limit=160), tmp_path / "random")
    rewrite(other.folder, lambda table: table.drop_columns(["probabilities"]))
    assert not set(OF_PROBABILITIES) & set(score_run(other.folder).scores)
    comparison = compare([causal.folder, other.folder])
    names = {table.name for table in comparison.analysis.tables}
    assert "bias_ambig_among_errors" in names
    assert not names & set(OF_PROBABILITIES)
    [note] = [note for note in comparison.analysis.notes if note.startswith("Not compared")]
    assert "Probability bias, ambiguous contexts; Probability bias, disambiguated contexts" in note
    assert comparison.names[1] in note
    assert "answers without probabilities" in note
