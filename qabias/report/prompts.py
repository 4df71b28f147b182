"""The prompts of a run's examples, written again by the format that its signature names.

An analysis keeps the texts of its examples and not what a format makes of them; a format with its version is a pure
function of these texts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from qabias.tables.model import Analysis
from qabias.comparison.comparable import signature_fields
from qabias.benchmarks.prompt_format import PromptFormat, bbnli, bbq, unqover
from qabias.report.reading import damaged

_Example = Mapping[str, Any]

# Scorers that read the texts themselves: pairs of sentences, contexts with questions, masked sentences.
_WITHOUT_PROMPT = ("nli", "extractive_qa", "masked_lm")


def with_prompts(analysis: Analysis, run: Mapping[str, Any], file: Path) -> Analysis:
    """The analysis with the key `prompt` in its examples: a text, or a list where a model reads several.

    Args:
        analysis: What `file` holds.
        run: The `run.json` of the run.
        file: For messages.

    Returns:
        The same analysis where no prompt was read, and one that says so where this version has not the run's format.

    Raises:
        QabiasError: If an example lacks a text that its prompt has.
    """
    fields = signature_fields(run["signature"])
    wanted = fields.get("format")
    if wanted is None or not analysis.examples or fields.get("scorer", "").partition("+")[0] in _WITHOUT_PROMPT:
        return analysis
    formats, questions = _BENCHMARKS[run["benchmark"]]
    known = {one.signature: one for one in formats.values()}
    if wanted not in known:
        missing = f"Prompts are not shown, because this version of qabias does not have the format {wanted}."
        return replace(analysis, how_chosen=f"{analysis.how_chosen} {missing}")
    try:
        examples = tuple({**row, "prompt": _prompt(known[wanted], questions(row))} for row in analysis.examples)
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise damaged(file, f"an example lacks what its prompt is made of ({error!r})") from error
    return replace(analysis, examples=examples)


def _prompt(prompt_format: PromptFormat, questions: Sequence[_Example]) -> str | list[str]:
    prompts = [text for question in questions for text in _texts(prompt_format, question)]
    return prompts[0] if len(prompts) == 1 else prompts


def _texts(prompt_format: PromptFormat, question: _Example) -> list[str]:
    """What stands before the options; with sentence pairs every option is a text of its own."""
    prefix, options = prompt_format.render(question)
    return [prefix + option for option in options] if prompt_format.name == "pair" else [prefix]


def _bbq_question(row: _Example) -> list[_Example]:
    return [{**row, **{f"ans{place}": row["options"][place] for place in range(3)}}]


def _inference_question(row: _Example) -> list[_Example]:
    return [row]


def _unqover_questions(row: _Example) -> list[_Example]:
    answers = {f"answer{number + 1}": row["subjects"][number] for number in range(2)}
    return [
        {"context": row[context], "question": row[question], **answers}
        for context in ("context_12", "context_21")
        for question in ("question", "negated_question")
    ]


_BENCHMARKS: dict[str, tuple[Mapping[str, PromptFormat], Callable[[_Example], list[_Example]]]] = {
    "bbq": (bbq.FORMATS, _bbq_question),
    "unqover": (unqover.FORMATS, _unqover_questions),
    "bbnli": (bbnli.FORMATS, _inference_question),
    "bbq_nli": (bbnli.FORMATS, _inference_question),
}
