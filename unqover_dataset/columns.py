"""Combines all pairs, templates and attributes into an Arrow table, column by column.

An example is a pair, a template and an attribute. No text depends on all three: each distinct text is computed once and
stored in a column's dictionary, with one index per example.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from .design import Design

# Examples in a batch of plain strings: about 35 MB.
BATCH_ROWS = 100_000

_COMMON = ("template_id", "subject1", "subject2", "cluster1", "cluster2", "attribute", "attribute_class")
_QA = ("context_12", "context_21", "question", "negated_question", "answer1", "answer2")
_MLM = ("context_12", "context_21", "masked", "masked_negated", "answer1", "answer2")


def schema(masked: bool) -> pa.Schema:
    """The columns of a config: questions, or sentences with a mask."""
    strings = (*_COMMON, *(_MLM if masked else _QA))
    return pa.schema([("example_id", pa.int32()), *((name, pa.string()) for name in strings)])


def cross(design: Design, config: str, masked: bool) -> pa.Table:
    """The examples of a config: for every pair, every template, every attribute of the template.

    Args:
        design: What to combine.
        config: Name of the config, for the template ids.
        masked: Whether the questions are sentences with a mask.

    Returns:
        Table with the columns of `schema` and dictionary-encoded texts; `batches` decodes them.
    """
    n_pairs, n_templates = len(design.pairs), len(design.templates)
    sizes = [len(template.questions) for template in design.templates]
    n_questions = sum(sizes)

    # The numbers of each example's pair, template, filling (pair and template) and question.
    pair = np.repeat(np.arange(n_pairs, dtype=np.int32), n_questions)
    template = np.tile(np.repeat(np.arange(n_templates, dtype=np.int32), sizes), n_pairs)
    filling = pair * np.int32(n_templates) + template
    question = np.tile(np.arange(n_questions, dtype=np.int32), n_pairs)

    fillings = [
        (template.context, one.form(template.form), two.form(template.form))
        for one, two in design.pairs
        for template in design.templates
    ]
    questions = [question for template in design.templates for question in template.questions]
    ones, twos = ([pair[i] for pair in design.pairs] for i in (0, 1))
    texts = [
        ([f"{config}-{number}" for number in range(n_templates)], template),
        ([subject.name for subject in ones], pair),
        ([subject.name for subject in twos], pair),
        ([subject.cluster for subject in ones], pair),
        ([subject.cluster for subject in twos], pair),
        ([question.attribute for question in questions], question),
        ([question.attribute_class for question in questions], question),
        ([design.fill(context, one, two) for context, one, two in fillings], filling),
        ([design.fill(context, two, one) for context, one, two in fillings], filling),
        ([question.text for question in questions], question),
        ([question.negated for question in questions], question),
        ([one for _, one, _ in fillings], filling),
        ([two for _, _, two in fillings], filling),
    ]
    columns = [pa.array(np.arange(len(pair), dtype=np.int32)), *(_column(*text) for text in texts)]
    return pa.table(columns, names=schema(masked).names)


def _column(texts: Sequence[str], index: np.ndarray) -> pa.DictionaryArray:
    """Example i has `texts[index[i]]`; equal texts are stored once."""
    encoded = pa.array(texts, pa.string()).dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices.to_numpy()[index], encoded.dictionary)


def batches(table: pa.Table) -> Iterator[pa.Table]:
    """The examples of a table with plain strings, `BATCH_ROWS` at a time."""
    plain = schema("masked" in table.column_names)
    for start in range(0, table.num_rows, BATCH_ROWS):
        yield table.slice(start, BATCH_ROWS).cast(plain)
