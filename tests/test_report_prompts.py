"""The prompts of a report's examples are those that the model read."""

import dataclasses

import pytest

from qabias.report.writing import write_report_of
from qabias.runs.arguments import RunArguments
from qabias.runs.run import run
from qabias.scorers.baseline import BaselineScorer
from qabias.tables.model import Analysis, read_analysis

from .report_pages import BIAS, EXAMPLE, EXAMPLES, read_page, run_of


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
    assert len(page.quoted) == n_prompts * len(examples)
    assert set(page.quoted) <= set(asked)
    assert len(set(page.quoted)) > len(examples) / 8
    assert page.tags.count("pre") == len(page.quoted)


def signed(prompt_format, scorer="causal"):
    return f"bbq|source:bundled@1|format:{prompt_format}|model:smollm2@1|scorer:{scorer}|norm:none"


def test_prompts_show_as_text_with_their_lines(page):
    hostile = {**EXAMPLE, "context": "<b>One</b>\n\n  two &amp; three"}
    page = page(run=run_of() | {"signature": signed("qa@1")}, analysis=Analysis((BIAS,), (hostile,), "One."))
    assert page.quoted == ["<b>One</b>\n\n  two &amp; three\n\nQ: Who was forgetful?\nA:"]
    assert "b" not in page.tags


def test_sentence_pairs_show_as_the_texts_that_are_read(page):
    page = page(run=run_of() | {"signature": signed("pair@1", "multiple_choice")})
    first = f"{EXAMPLE['context']} Who was forgetful? The old man"
    assert page.quoted[0] == first
    assert len(page.quoted) == 3 * len(EXAMPLES)


@pytest.mark.parametrize("signature", [signed("qa@1", "extractive_qa"), signed("pair@1", "nli+x=1"), "bbq|model:x@1"])
def test_where_no_prompt_was_read_none_is_shown(page, signature):
    assert page(run=run_of() | {"signature": signature}).quoted == []


def test_prompts_of_another_version_are_not_made_up(page):
    page = page(run=run_of() | {"signature": signed("qa@99")})
    assert page.quoted == []
    assert "4 of 2,000 examples, the worst first. Prompts are not shown, because this version" in page.flat
    assert "does not have the format qa@99" in page.flat
