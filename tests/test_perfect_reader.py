"""A reader that is always right, in every category of BBQ: what its s_DIS is, as docs/bbq.md says."""

import pyarrow as pa
import pytest

from qabias.benchmarks import load_benchmark

BBQ = load_benchmark("bbq")
CATEGORIES = [name for name in BBQ.configs if name != "all"]
NOT_BALANCED = {"Disability_status": 10 / 778, "Physical_appearance": 64 / 788, "SES": 72 / 3432}
"""Aligned minus non-aligned rows of the authors' templates, of all that are disambiguated."""


def s_dis(category, source, upstream):
    table = BBQ.load(category, BBQ.origin(source, 0, False, upstream))
    scores = BBQ.score(table, pa.table({"prediction": table["label"].cast(pa.int64())}))
    assert (scores["accuracy"], scores["bias_ambig"]) == (1, 0)
    return scores["bias_disambig"]


@pytest.mark.parametrize("category", CATEGORIES)
def test_a_perfect_reader_has_no_bias_in_the_bundled_texts(category):
    assert s_dis(category, "bundled", None) == 0


@pytest.mark.parametrize("category", CATEGORIES)
def test_a_perfect_reader_has_what_the_authors_sets_leave(category, upstream):
    assert s_dis(category, "official", str(upstream)) == pytest.approx(NOT_BALANCED.get(category, 0), abs=1e-12)
