"""The report: what the page says, and what it must never load or run."""

import base64
import dataclasses
import hashlib
import math
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qabias.benchmarks import load_benchmark
from qabias.comparison import Comparison
from qabias.report.content import bias_figure
from qabias.report.explorer import Explored, encode
from qabias.report.page import FOLDED, Chapter, comparison_intro, render_chapters
from qabias.report.writing import write_combined_report, write_report_of
from qabias.runs.arguments import RunArguments
from qabias.runs.opened import Run
from qabias.runs.question import read_question
from qabias.runs.run import run
from qabias.scorers.baseline import BaselineScorer
from qabias.scores.facts import ALL
from qabias.tables.drawing import LIGHT
from qabias.tables.model import FIGURES, Analysis, read_analysis

from .kit.pages import (
    BIAS,
    EXAMPLE,
    EXAMPLES,
    HALF,
    SCORES,
    SIGNATURE,
    Page,
    fill_folder,
    named_everywhere,
    read_page,
    run_of,
    table_of,
)

# What the page says


def test_the_first_figure_has_the_largest_bias_first_undefined_ones_last_and_then_all_examples(compared_runs):
    scored = Run.scored(compared_runs / "bbq-all")
    *groups, (last, _) = bias_figure(scored.benchmark, scored.scores, "", False).rows
    sizes = [value.value for _, value in groups]
    defined = [size for size in sizes if size is not None]
    assert last == ALL
    assert len({*defined}) > 2
    assert sizes == sorted(defined, reverse=True) + [None] * (len(sizes) - len(defined))


def test_the_page_is_balanced_small_and_says_what_was_measured(filled):
    path = write_report_of(filled(run=run_of(limit=400)))
    assert path.name == "report.html"
    assert path.stat().st_size < 200_000
    page = read_page(path)
    assert len(page.ids) == len(set(page.ids))
    for part in (
        *(
            "smollm2",
            SIGNATURE,
            "2026-11-21 10:00 UTC",
            "400 examples (200 ambiguous, 200 disambiguated)",
            "400 examples: the run is a sample",
        ),
        *("10 outputs named no answer (2.5 %)", "torch2.13.0", "Revision1", "Librariespython 3.11.7, torch 2.13.0"),
        *("Figure 3 of the paper", "How to read the bias.", "4 of 2,000 examples"),
    ):
        assert part in page.flat
    assert "the run is a sample" not in read_page(write_report_of(filled())).text


@pytest.mark.parametrize(
    ("pinned", "asked", "text"),
    [("0.1.2/float32", None, "0.1.2/float32"), ("7e27bd9/float16", "main", "main: 7e27bd9/float16"), ("", None, None)],
)
def test_the_head_pins_the_model_where_anything_does(page, pinned, asked, text):
    run = run_of(model="some/model", revision=asked)
    run["signature"] = "|".join(["bbq", f"model:some/model{pinned and f'@{pinned}'}", "scorer:causal"])
    facts = page(run=run).flat
    assert ("Revision" in facts) == (text is not None)
    assert text is None or f"Revision{text} Measured" in facts


@pytest.mark.parametrize(
    ("benchmark", "words"),
    [
        ("bbq", ["U.S. English", "Parrish", "2086–2105", "12.5"]),
        ("unqover", ["mu, religion", "0.250", "eta 0.500", "Khashabi"]),
        ("bbnli", ["+50.0 %", "Akyürek", "551–564"]),
        ("bbq_nli", ["+50.0 %", "Akyürek", "Parrish"]),
        ("bbq_qa", ["+50.0 %", "Akyürek", "Parrish"]),
    ],
)
def test_every_benchmark_has_its_scores_its_limits_and_its_paper(page, benchmark, words):
    text = page(run=run_of(benchmark)).flat
    for word in ("does not prove", "quotes stereotypes", "95% CIs, clustered by", *words):
        assert word in text


@pytest.mark.parametrize("benchmark", sorted(SCORES))
def test_only_our_own_texts_are_called_so(page, benchmark):
    assert "(source “bundled”)" in page(run=run_of(benchmark)).text
    assert "(source “bundled”)" not in page(run=run_of(benchmark, source="official")).text


def test_the_question_alone_is_not_called_a_disambiguated_context(page):
    assert "Accuracy, disambiguated" in page().text
    blind = run_of() | {"signature": SIGNATURE.replace("|scorer", "|format:question_only@1|scorer")}
    assert "Accuracy, disambiguated" not in page(run=blind).text


@pytest.mark.parametrize(
    ("interval", "words"),
    [
        ([0.1, 0.3], "95% CI [+10.0, +30.0]"),
        ([-0.1, 0.3], "CI includes 0"),
        ([0.0, 0.3], "CI includes 0"),
        ([None, None], "no CI"),
    ],
)
def test_a_direction_is_named_only_where_the_interval_bears_it_out(page, interval, words):
    scores = {**SCORES["bbq"], "ci": {"bias_ambig": interval, "accuracy_cost": [0.1, 0.2]}}
    text = page(scores=scores).text
    assert words in text
    assert ("CI includes 0" in text) == ("0" in words[-1:])


def test_numbers_stand_in_the_table_with_their_intervals_and_to_copy(page):
    page = page()
    assert page.row("Age") == ["Age", "+20.0\u00a0%[+15.0, +25.0]", "+11.1\u00a0%[+6.1, +16.1]", "1,400"]
    assert page.row("Religion")[1:3] == ["−7.1\u00a0%[−12.1, −2.1]", "—"]
    data = [value for tag, name, value in page.attributes if tag == "td" and name.startswith("data-")]
    assert {"-0.0711", "-0.1211", "-0.0211", "1400"} <= set(data)


def test_long_tables_are_folded_and_all_their_rows_are_there(page):
    rows = [(f"row {n}", n / 1000) for n in range(FOLDED + 1)]
    long = dataclasses.replace(table_of("bars", [("x", "X", "share")], rows, ["x"]), figure=None)
    page = page(analysis=Analysis((BIAS, long)))
    assert f"Table of {FOLDED + 1} rows" in page.text
    assert page.row("row 30") == ["row 30", "3.0\u00a0%"]


def test_tables_stand_by_section_in_the_order_of_the_analysis(page):
    tables = tuple(
        dataclasses.replace(BIAS, name=f"t{n}", title=f"table-{n}", section=section)
        for n, section in enumerate(("First part", "Second part", "First part"))
    )
    page = page(analysis=Analysis(tables))
    headings = re.findall(r"table-\d|(?:First|Second) part", page.text)
    # The list of sections, then the sections; every title stands over its table and names its figure.
    expected = ["First part", "Second part", "First part", "table-0", "table-2", "Second part", "table-1"]
    assert list(dict.fromkeys(headings[2:])) == list(dict.fromkeys(expected[2:]))
    assert headings[:2] == expected[:2]


def test_examples_have_their_texts_and_are_filtered_by_what_varies_little(page):
    page = page()
    assert len(page.examples) == 4
    first = page.examples[0]
    assert first == {name: tuple(v) if isinstance(v, list) else v for name, v in EXAMPLES[0].items() if v is not None}
    assert page.content["key"] == ["category", "example_id"]
    assert set(page.content["filters"]) >= {"category", "template_id", "condition"}
    assert not {"context", "prompt", "options"} & set(page.content["filters"])
    assert "no answers" in page.flat  # why the page has a selection only


def test_examples_of_a_run_are_all_there_unless_they_are_too_many(tmp_path, monkeypatch):
    folder = run(RunArguments("bbq", "baseline:random", "Age", limit=200), tmp_path / "run").folder
    result = read_page(write_report_of(folder))
    table = read_question(Run.open(folder)).table
    shown = result.examples
    assert [(one["category"], one["example_id"]) for one in shown] == list(
        zip(table["category"].to_pylist(), table["example_id"].to_pylist(), strict=True)
    )
    assert [one["context"] for one in shown] == table["context"].to_pylist()
    for one in shown:
        is_right = one["answer"] == one["right_answer"]
        is_unknown = one["roles"][one["options"].index(one["answer"])] == "UNKNOWN"
        side = "stereotyped" if one["answer"] == one["stereotyped_answer"] else "anti-stereotyped"
        assert one["outcome"] == ["right" if is_right else "wrong", "UNKNOWN" if is_unknown else side]
        assert sum(one["probabilities"]) == pytest.approx(1, abs=0.002)
    monkeypatch.setattr("qabias.report.explorer.MOST_EXAMPLES", len(shown) - 1)
    fewer = read_page(write_report_of(folder))
    assert len(fewer.examples) == len(read_analysis(folder / "analysis.json").examples)
    assert f"at most {len(shown) - 1}" in fewer.flat


def test_a_page_of_few_questions_has_them_all(tmp_path):
    """Half of them can be none, which costs the second interval and nothing else."""
    folder = run(RunArguments("bbq", "baseline:random", "Age", limit=8), tmp_path / "run").folder
    assert len(read_page(write_report_of(folder)).examples) == 8


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "id": st.integers(0, 3),
                "text": st.none() | st.text(max_size=20),
                "tags": st.sampled_from([["a"], ["a", "b"]]),
                "list": st.none() | st.lists(st.sampled_from(["x", None, 0.5, "\ue001"]), min_size=2, max_size=2),
                "mixed": st.none() | st.text(max_size=3) | st.lists(st.integers(0, 9), max_size=2),
                "prompt": st.text(st.sampled_from("ab \ue000\ue001é"), max_size=6)
                | st.lists(st.text(max_size=5), min_size=2, max_size=2),
            }
        ),
        min_size=1,
        max_size=6,
    )
)
def test_any_examples_can_be_read_back(rows):
    text = "a text that is long enough to be marked"
    rows = [{**row, "outcome": row["tags"], "long": text, "prompt": row["prompt"]} for row in rows]
    for row in rows:
        if isinstance(row["prompt"], str):
            row["prompt"] += text
    explored = Explored("Examples", "All.", {name: [row[name] for row in rows] for name in rows[0]}, ["id"])
    back = Page(f"<template>{encode(explored, [])}</template>").examples
    plain = [
        {name: tuple(v) if isinstance(v, list) else v for name, v in row.items() if v not in (None, [None, None])}
        for row in rows
    ]
    assert [{n: tuple(v) if isinstance(v, list) else v for n, v in row.items()} for row in back] == plain


def test_several_runs_stand_in_one_page_with_contents(filled, tmp_path):
    runs = [fill_folder(tmp_path / name, run=run_of(name, model=f"model-of-{name}")) for name in sorted(SCORES)]
    path = write_combined_report(runs, tmp_path / "all" / "report.html")
    page = read_page(path)
    assert len(page.ids) == len(set(page.ids))
    assert f"Report of {len(SCORES)} runs" in page.text
    for name in SCORES:
        names = re.findall(rf"model-of-{name}(?!_)", page.text)
        assert len(names) > 3  # contents, headline scores, heading, arguments
    inner = {address[1:].partition("&")[0] for _, address in page.addresses if address.startswith("#")}
    assert inner <= set(page.ids)
    assert {f"c{number}" for number in range(1, len(SCORES) + 1)} <= inner


def test_the_page_of_several_runs_opens_with_their_headline_scores(tmp_path):
    few = {**SCORES["bbq"], "n_unparsed_ambig": 50, "range": {"bias_ambig": [-0.2, 0.4]}}
    runs = [
        fill_folder(tmp_path / "one", run=run_of(model="one")),
        fill_folder(tmp_path / "sets", run=run_of("unqover", model="sets")),
        fill_folder(tmp_path / "two", run=run_of(model="two"), scores=few),
    ]
    page = read_page(write_combined_report(runs, tmp_path / "report.html"))
    ours, others = [[cell.strip() for cell in row] for row in page.rows if row and row[0].strip() in ("one", "two")]
    assert page.rows[0][0] == "Run"
    assert ours[:4] == ["one", "+12.5\u00a0%[+7.5, +17.5]", "—", "40.0\u00a0%[30.0, 50.0]"]
    # Where many answers are missing there is no interval, but the range beside it.
    assert others[:4] == ["two", "+12.5\u00a0%", "−20.0 to +40.0\u00a0%", "40.0\u00a0%[30.0, 50.0]"]
    assert (ours[-1], others[-1]) == ("3.0\u00a0%", "25.0\u00a0%")
    assert page.flat.index("mu, religion") < page.flat.index("Signature, to cite")


def comparison_page(head, analysis):
    """The page of a comparison of two models."""
    comparison = Comparison(load_benchmark("bbq"), [], [], {}, [], [], analysis, None, [])
    chapter = Chapter("Two models", "Two models", head, comparison_intro(comparison), analysis)
    return Page(render_chapters("Two models", [chapter]))


def test_a_comparison_is_the_same_page_with_its_own_text():
    page = comparison_page({"Runs": "a & b"}, Analysis((BIAS,), notes=("Mixed.",)))
    assert page.row("All")[3] == "2,000"
    for part in ("Two models", "a & b", "Holm", "Mixed."):
        assert part in page.text


# What the page must not do


def test_the_page_loads_nothing_and_runs_its_one_script_alone(page):
    page = page(analysis=named_everywhere("x"))
    assert not {"link", "img", "image", "iframe", "object", "embed", "form", "base"} & set(page.tags)
    for tag, address in page.addresses:
        assert address.startswith("#") or (tag == "a" and address.startswith("https://doi.org/"))
    inner = {address[1:].partition("&")[0] for _, address in page.addresses if address.startswith("#")}
    hatches = {v[5:-1] for _, name, v in page.attributes if name == "fill" and v.startswith("url(#")}
    assert inner | hatches <= set(page.ids)
    assert hatches
    described = {v for _, name, v in page.attributes if name in {"aria-labelledby", "aria-describedby", "data-table"}}
    assert described <= set(page.ids)
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    style = "".join(page.styles)
    assert "url(" not in style
    assert "@import" not in style
    assert page.tags.count("style") == 1  # none of Matplotlib's, which would rule the page
    (script,) = page.scripts
    assert page.tags.count("script") == 1
    writers = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write")
    assert not [name for name in (*writers, "eval(", "fetch(", "XMLHttpRequest") if name in script]
    digests = [
        f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}" for text in (style, script)
    ]
    (policy,) = [
        value for tag, name, value in page.attributes if tag == "meta" and name == "content" and "src" in value
    ]
    assert policy == (
        f"default-src 'none'; style-src 'unsafe-inline'; style-src-elem '{digests[0]}'; script-src '{digests[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )


HOSTILE = ['<script>alert(1)</script> & "><b onclick="x">', r"{{ 7 * 7 }} $x_1$ \alpha$\frac{1}{2}$"]


@pytest.mark.parametrize("text", HOSTILE)
def test_texts_show_as_text_everywhere(page, text):
    run = run_of(model=text, revision=text) | {"signature": text, "created": text}
    run["versions"][text] = text
    page = page(run=run, analysis=named_everywhere(text))
    assert page.tags.count("script") == 1
    assert "b" not in page.tags
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    # Title, head, signature, date, versions, arguments; sections, titles, sources, notes, cells, figures; examples.
    assert page.text.count(text) > 60


@pytest.mark.parametrize(
    "text", ["tab\tand\nline", "nul\x00", "right\u202eto left", f"half {HALF}", "言語 🙂", "_x", ""]
)
@pytest.mark.filterwarnings("error")
def test_odd_characters_do_not_cost_the_report(page, text):
    assert page(run=run_of(model=text), analysis=named_everywhere(text)).tags.count("svg") == 1 + len(FIGURES)


def test_two_writes_give_the_same_bytes(filled):
    path = write_report_of(filled(analysis=named_everywhere("x")))
    first = path.read_bytes()
    assert write_report_of(path.parent).read_bytes() == first
    files = ["analysis.json", "report.html", "run.json", "scores.json"]
    assert sorted(p.name for p in path.parent.iterdir()) == files


def test_both_schemes_have_all_colours(page):
    style = "".join(page().styles)
    schemes = [
        dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block)) for block in re.findall(r":root \{([^}]*)\}", style)
    ]
    assert len(schemes) == 2
    assert schemes[0] == LIGHT
    assert schemes[1].keys() == LIGHT.keys()


# Any analysis gives a page

TEXTS = st.text(st.characters(codec="utf-8"), max_size=30)
NUMBERS = {
    "count": st.none() | st.integers(0, 10**7),
    "share": st.none() | st.floats(0, 1),
    "signed": st.none() | st.floats(-1, 1),
    "number": st.none() | st.floats(-1e6, 1e6),
    "p": st.none() | st.floats(0, 1),
}


@st.composite
def tables(draw):
    kinds = draw(st.lists(st.sampled_from(("count", "share", "signed", "number", "p")), min_size=1, max_size=3))
    figure = draw(st.sampled_from(FIGURES))
    shown = ["share"] * len(kinds) if figure == "shares" else kinds
    columns = [(f"c{n}", draw(TEXTS), kind) for n, kind in enumerate(shown)]
    texts = 2 if figure == "heatmap" else 1
    rows = draw(st.lists(st.tuples(*[TEXTS] * texts, *(NUMBERS[kind] for kind in shown)), max_size=4))
    values = [name for name, _, _ in columns][: 2 if figure == "ranks" else None]
    return table_of(figure, columns, rows, values, across="column" if figure == "heatmap" else "")


@pytest.mark.slow
@given(tables())
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_table_gives_a_balanced_page_that_shows_no_undefined_value_as_a_number(table):
    page = comparison_page({}, Analysis((table,)))
    shown = [cells for cells in page.rows[1:] if cells]
    names = [column.name for column in table.columns]
    drawn = [row[names.index(name)] for row in table.rows for name in table.figure.values]
    if drawn and all(value is None for value in drawn):
        assert page.rows == []  # a table of nothing is not on the page
        return
    assert len(shown) == len(table.rows)
    for cells, row in zip(shown, table.rows, strict=True):
        for cell, value, column in zip(cells, row, table.columns, strict=True):
            if column.kind != "text":
                assert (cell.strip() == "—") == (value is None)
                assert value is None or math.isfinite(float(re.sub(r"[,\s%<]", "", cell).replace("−", "-")))


# Prompts of examples are those that the model read


@pytest.mark.parametrize(
    ("benchmark", "config", "prompt_format", "n_prompts"),
    [
        ("bbq", "Religion", "race", 1),
        ("bbq", "Religion", "question_only", 1),
        ("bbq", "Religion", "letters", 1),
        ("unqover", "religion", "qa", 4),
        ("bbnli", "man_is_to_surgeon", "quoref_given", 1),
        ("bbq_nli", "Religion_nli", "does_this_imply", 1),
        ("bbq_qa", "Religion_qa", "novel_2", 1),
    ],
)
def test_examples_have_the_prompts_that_were_asked(tmp_path, monkeypatch, benchmark, config, prompt_format, n_prompts):
    asked = []
    score = BaselineScorer.score

    def listen(self, requests):
        asked.extend(request.prefix for request in requests)
        return score(self, requests)

    monkeypatch.setattr(BaselineScorer, "score", listen)
    arguments = RunArguments(benchmark, "baseline:stereotyped", config, limit=30, format=prompt_format)
    if benchmark == "unqover":
        arguments = dataclasses.replace(arguments, model="baseline:random")
    folder = run(arguments, tmp_path / "run").folder
    page = read_page(write_report_of(folder))
    examples = read_analysis(folder / "analysis.json").examples
    assert examples
    assert len(page.prompts) == n_prompts * len(page.examples)
    assert set(page.prompts) == set(asked)
    assert {example["example_id"] for example in examples} <= {example["example_id"] for example in page.examples}


def signed(prompt_format, scorer="causal"):
    return f"bbq|source:bundled@1|format:{prompt_format}|model:smollm2@1|scorer:{scorer}|norm:none"


def test_prompts_show_as_text_with_their_lines(page):
    hostile = {**EXAMPLE, "context": "<b>One</b>\n\n  two &amp; three"}
    page = page(run=run_of() | {"signature": signed("qa@1")}, analysis=Analysis((BIAS,), (hostile,), "One."))
    assert page.prompts == ["<b>One</b>\n\n  two &amp; three\n\nQ: Who was forgetful?\nA:"]
    assert "b" not in page.tags


def test_only_prompts_that_were_read_are_shown(page):
    pairs = page(run=run_of() | {"signature": signed("pair@1", "multiple_choice")})
    assert pairs.prompts[0] == f"{EXAMPLE['context']} Who was forgetful? The old man"
    assert len(pairs.prompts) == 3 * len(EXAMPLES)
    for signature in (signed("qa@1", "extractive_qa"), signed("pair@1", "nli+x=1"), "bbq|model:x@1", signed("qa@99")):
        assert page(run=run_of() | {"signature": signature}).prompts == []
    assert "qa@99" in page(run=run_of() | {"signature": signed("qa@99")}).flat  # another version is not made up
