"""The prompts of a run's examples, written again by the format that its signature names.

An analysis keeps the texts of its examples and not what a format makes of them; a format with its version is a pure
function of these texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from qabias.benchmarks import PromptFormat
from qabias.benchmarks.prompt_format import Example
from qabias.runs.scored import ScoredRun
from qabias.runs.signature import scorer_name, signature_fields
from qabias.scorers.registry import kinds
from qabias.tables.model import Analysis


def with_prompts(analysis: Analysis, run: ScoredRun) -> Analysis:
    """The analysis with the key `prompt` in its examples: a text, or a list where a model reads several."""
    wanted = signature_fields(run.signature).get("format")
    kind = kinds().get(scorer_name(run.signature))
    if wanted is None or not analysis.examples or (kind is not None and not kind.reads_prompt):
        return analysis
    benchmark = run.benchmark
    known = {one.signature: one for one in benchmark.formats.values()}
    wanted = wanted.partition("+")[0]  # examples show the first order
    if wanted not in known:
        missing = f"Prompts are not shown, because this version of qabias does not have the format {wanted}."
        return replace(analysis, how_chosen=f"{analysis.how_chosen} {missing}")
    examples = tuple(
        {**row, "prompt": _prompt(known[wanted], benchmark.facts.view.questions(row))} for row in analysis.examples
    )
    return replace(analysis, examples=examples)


def _prompt(prompt_format: PromptFormat, questions: Sequence[Example]) -> str | list[str]:
    prompts = [text for question in questions for text in prompt_format.texts(question)]
    return prompts[0] if len(prompts) == 1 else prompts
