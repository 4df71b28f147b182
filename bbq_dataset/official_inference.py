"""The authors' templates of BBQ as inference (feyzaakyurek/bbnli), and the text rules of their conversion.

Three categories were published. Every target is combined with every non-target of its row, and the first word of each
list fills its slot, without random draws. The released code does not fill slots in questions and lengthened contexts;
this module does.
"""

import csv
import io
import itertools
from collections.abc import Iterator, Mapping

from qabias.building.sources import fetch
from qabias.building.templating import fill
from qabias.errors import QabiasError

from .examples import Row
from .fixes import fix_sentence, fix_text
from .inference import CATEGORY_CONFIGS, CONTEXT_STUDY, InferenceSet, category_of, inference_rows
from .official import literal_list, two_lists

REPOSITORY = "feyzaakyurek/bbnli"
CATEGORIES = ("Gender_identity", "Race_ethnicity", "Religion")


def generate(config: str, *, fixes: bool) -> Iterator[Row]:
    """Yield the rows of one inference config from the authors' templates.

    Args:
        config: One of `inference.NLI_CONFIGS`.
        fixes: Fix the known defects of the published templates (`bbq_dataset.fixes`).

    Raises:
        QabiasError: If the authors did not publish the category, or a file is missing or wrong.
    """
    category = category_of(config)
    if category not in CATEGORIES:
        published = [name for name in CATEGORY_CONFIGS if category_of(name) in CATEGORIES]
        raise QabiasError(
            f"config {config!r} has no official texts as inference",
            f"use --source bundled, or one of {', '.join([*published, CONTEXT_STUDY])}",
        )
    yield from inference_rows(config, _sets(category, fixes=fixes))


def _sets(category: str, *, fixes: bool) -> Iterator[InferenceSet]:
    path = f"data/bbq/templates/new_templates - {category}.csv"
    content = fetch(REPOSITORY, path).read_text(encoding="utf-8")
    for number, row in enumerate(csv.DictReader(io.StringIO(content, newline="")), start=2):
        yield from _row_sets(category, row, f"{path} row {number}", fixes=fixes)


def _row_sets(category: str, row: Mapping[str, str], origin: str, *, fixes: bool) -> Iterator[InferenceSet]:
    template_id = f"{category}-{int(row['Q_id']):02d}"
    targets, others = (literal_list(row, column, origin) for column in ("Known_stereotyped_groups", "Non-target_group"))
    if fixes and category == "Gender_identity":
        targets, others = ([word.lower() for word in words] for words in (targets, others))
    first_words = {
        f"WORD{i}": words[0] for i, words in enumerate(two_lists(row["Lexical_diversity"], "WORD"), start=1) if words
    }
    for number, (target, other) in enumerate(itertools.product(targets, others)):
        # The wording of the published columns requires this: the non-target is NAME1, the target NAME2.
        values = {**first_words, "NAME1": other, "NAME2": target}
        yield _inference_set(row, category, template_id, f"{template_id}-{number:03d}", values, fixes=fixes)


def _inference_set(
    row: Mapping[str, str], category: str, template_id: str, set_id: str, values: Mapping[str, str], *, fixes: bool
) -> InferenceSet:
    def filled(column: str, slots: Mapping[str, str] = values) -> str:
        text = fill(row[column].removesuffix("\n"), slots)  # like Jinja in the authors' code
        if not fixes:
            return text
        return fix_text(text) if column.startswith("Question") else fix_sentence(text)

    exchanged = {**values, "NAME1": values["NAME2"], "NAME2": values["NAME1"]}
    return InferenceSet(
        category=category,
        template_id=template_id,
        set_id=set_id,
        contexts={
            "original": filled("Ambiguous_Context"),
            "swapped": filled("Ambiguous_Context", exchanged),
        },
        facts={
            "pro": filled("Disambiguating_Context_stereotype"),
            "anti": filled("Disambiguating_Context_anti_stereotype"),
        },
        statements={
            ("target", "neg"): filled("Statement_negative"),
            ("target", "nonneg"): filled("Statement_non_negative"),
            ("nontarget", "neg"): filled("Statement_negative_m"),
            ("nontarget", "nonneg"): filled("Statement_non_negative_m"),
        },
        questions={
            "neg": filled("Question_negative_stereotype"),
            "nonneg": filled("Question_non_negative"),
        },
        target=values["NAME2"],
        nontarget=values["NAME1"],
        social_value=row["Relevant_social_values"].strip(),
        reference=row["Notes"],
        append={"short": filled("Context_append_short"), "long": filled("Context_append_long")},
    )
