"""The authors' published templates, and the text rules of their generator."""

import ast
import csv
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from qabias.building.sources import fetch
from qabias.building.templating import StableRandom, fill
from qabias.errors import QabiasError

from . import fixes as known_fixes
from .examples import FilledTexts, Row, examples, slot_values
from .template import Pair, Style, Template, label_type
from .vocabulary import Label, Name, Vocabulary, occupations_by_prestige

REPOSITORY = "nyu-mll/BBQ"


def generate(category: str, *, seed: int, fixes: bool) -> Iterator[Row]:
    """Yield the examples of one category from the authors' templates.

    Args:
        category: Name of the category.
        seed: Seed of our random draws (the published draws were not recorded).
        fixes: Fix the known defects of the published templates (`bbq_dataset.fixes`).

    Raises:
        QabiasError: If a file is missing or wrong.
    """
    templates = read_templates(category, fixes=fixes)
    vocabulary = read_vocabulary()
    streams = []
    for row, template in enumerate(templates):
        rng = StableRandom("bbq", "official", category, template.question_index, template.version, row, seed)
        if template.descriptions != occupations_by_prestige(vocabulary):
            # The published generator draws from a row's own lists once, but occupations for every comparison.
            drawn = {tag: (rng.choice(words),) for tag, words in template.descriptions.items()}
            template = replace(template, descriptions=drawn)
        streams.append((template, rng))
    if fixes:
        rows = examples(streams, vocabulary, fill_fixed, known_fixes.tags_on_slots)
        yield from known_fixes.drop_undefined_targets(rows)
    else:
        yield from examples(streams, vocabulary, fill_published)


def read_templates(category: str, *, fixes: bool = False) -> list[Template]:
    """Read the authors' template file of a category, one `Template` per CSV row.

    Raises:
        QabiasError: If the file is missing or a cell is wrong (names file, row and column).
    """
    path = f"templates/new_templates - {category}.csv"
    occupations = occupations_by_prestige(read_vocabulary())
    templates = [
        _template(category, known_fixes.fix_row(row) if fixes else row, f"{path} row {number}", occupations)
        for number, row in enumerate(_read_csv(path), start=2)
        if row["Ambiguous_Context"]
    ]
    return known_fixes.fix_templates(templates) if fixes else templates


def read_vocabulary() -> Vocabulary:
    """Read the authors' vocabulary and proper names."""
    labels: dict[str, list[Label]] = {}
    for row in _read_csv("templates/vocabulary.csv"):
        if row["Pilot_include"] != "No":
            labels.setdefault(row["Category"], []).append(Label(row["Name"], row["Info"], row["SubCat"]))
    names = [
        Name(row["Name"], row["First_last"], row["gender"], row["ethnicity"])
        for row in _read_csv("templates/vocabulary_proper_names.csv")
    ]
    return Vocabulary({category: tuple(entries) for category, entries in labels.items()}, tuple(names))


def _read_csv(path: str) -> list[dict[str, str]]:
    content = fetch(REPOSITORY, path).read_text(encoding="utf-8")
    return list(csv.DictReader(io.StringIO(content, newline="")))


def _template(category: str, row: dict[str, str], origin: str, occupations: dict[str, tuple[str, ...]]) -> Template:
    intersectional = "Known_stereotyped_race" in row
    style = _style(row, intersectional)
    first_people, second_people = two_lists(row["Names"], "NAME") if style == "words" else ((), ())
    first_words, second_words = two_lists(row["Lexical_diversity"], "WORD")
    words = {"WORD1": first_words} if first_words else {}
    # The published code reads a second list only if it offers a choice.
    if len(second_words) > 1:
        words["WORD2"] = second_words
    question_index = int(row["Q_id"])
    names = row.get("Proper_nouns_only") == "TRUE"
    return Template(
        category=category,
        question_index=question_index,
        version=row.get("version", "None"),
        style=style,
        subcategory=row.get("Subcategory") or "None",
        groups=tuple(
            literal_list(row, "Known_stereotyped_race" if intersectional else "Known_stereotyped_groups", origin)
        ),
        second_group=row.get("Known_stereotyped_var2", ""),
        source=row["Notes"],
        bias=row["Relevant_social_values"].strip(),
        context=row["Ambiguous_Context"],
        disambiguation=row["Disambiguating_Context"],
        negative_question=row["Question_negative_stereotype"],
        negative_answer=row["Answer_negative"],
        non_negative_question=row["Question_non_negative"],
        non_negative_answer=row["Answer_non_negative"],
        people=(first_people, second_people),
        tags=(row.get("NAME1_info", ""), row.get("NAME2_info", "")),
        descriptions=_descriptions(category, row, origin, occupations) if intersectional else {},
        gender=row.get("Stated_gender_info", "") if category == "Race_x_SES" and names else "",
        words=words,
        label_type=label_type(category, question_index, names),
        origin=origin,
    )


def _style(row: dict[str, str], intersectional: bool) -> Style:
    if row.get("Proper_nouns_only") == "TRUE":
        return "names"
    if intersectional:
        return "labels"
    if row.get("Names"):
        return "words"
    return "occupations" if row.get("Subcategory") == "Occupation" else "labels"


def literal_list(row: Mapping[str, str], column: str, origin: str) -> list[Any]:
    """Read a cell that holds a list literal; a QabiasError names file, row and column."""
    try:
        return list(ast.literal_eval(row[column]))
    except (SyntaxError, ValueError) as error:
        problem = f"{origin}: column {column}: {row[column]!r} is not a list: {error}"
        raise QabiasError(problem, "use the unchanged published file") from error


def _descriptions(
    category: str, row: dict[str, str], origin: str, occupations: dict[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    if not row["Names"]:
        return occupations if category == "Race_x_SES" else {}
    words = [(word,) if isinstance(word, str) else tuple(word) for word in literal_list(row, "Names", origin)]
    return dict(zip(literal_list(row, "Var2_info", origin), words, strict=True))


def two_lists(cell: str, slot: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Read the two lists of a cell like the published code, including its errors."""
    first: tuple[str, ...] = ()
    second: tuple[str, ...] = ()
    if len(cell) <= 1:
        return first, second
    for clause in cell.split(";"):
        if f"{slot}1" in clause:
            first = _items(clause, f"{slot}1")
        second = _items(clause, f"{slot}2") if f"{slot}2" in clause else ()
    return first, second


def _items(clause: str, tag: str) -> tuple[str, ...]:
    listed = re.sub(r"(\{\{)?" + tag + r"(\}\})?:", "", clause).replace("[", "").replace("]", "")
    return tuple(item.strip() for item in listed.split(","))


def fill_published(template: Template, pair: Pair) -> FilledTexts:
    """Fill a template like the published generator, including article errors and lower-case starts."""
    values = slot_values(pair)
    described = (pair.first.name, pair.second.name, pair.first.description, pair.second.description)
    has_vowel = any(word[:1] in "aeiouAEIOU" for word in described if word)

    def filled(text: str) -> str:
        text = fill(text, values)
        text = text.replace("lesbian man", "lesbian woman").replace("Latino woman", "Latina woman")
        if has_vowel:
            text = re.sub(r"(\s[aA])(\s[aeiouAEIOU])", r"\1n\2", text).replace(" an European", " a European")
        return text

    return _texts(template, filled)


def fill_fixed(template: Template, pair: Pair) -> FilledTexts:
    """Fill a template and fix its typing, articles, spaces and capitals."""
    values = slot_values(pair)
    return _texts(template, lambda text: known_fixes.fix_text(fill(text, values)))


def _texts(template: Template, filled: Any) -> FilledTexts:
    context = filled(template.context).strip()
    return FilledTexts(
        context=context,
        disambiguated_context=f"{context} {filled(template.disambiguation)}".strip(),
        negative_question=filled(template.negative_question).strip(),
        negative_answer=filled(template.negative_answer),
        non_negative_question=filled(template.non_negative_question).strip(),
        non_negative_answer=filled(template.non_negative_answer),
        source=filled(template.source),
    )
