"""The tables of an UnQover run against a recomputation in plain Python, which shares no code."""

import itertools
import math
import random
from statistics import fmean, stdev

import pyarrow as pa
import pytest

from qabias.benchmarks.unqover.benchmark import BENCHMARK
from qabias.benchmarks.unqover.tables import comparative_scores, geoschemes, rank_tables
from qabias.tables.model import find

from .kit.rows import analysed, rows_of

ORDERS = ("12", "21", "12_neg", "21_neg")


def _table(pairs, n_templates, attributes, name="religion", clusters=None, classes=None):
    """All rows of some pairs of subjects; templates and attributes are numbered or named."""
    cells = list(itertools.product(pairs, range(n_templates), attributes))
    rows = [
        {
            "example_id": number,
            "template_id": f"{name}-{template}",
            "subject1": x,
            "subject2": y,
            "cluster1": clusters[x] if clusters else "None",
            "cluster2": clusters[y] if clusters else "None",
            "attribute": attribute,
            "attribute_class": classes[attribute] if classes else "None",
            "context_12": f"{x} met {y}.",
            "context_21": f"{y} met {x}.",
            "question": f"Who {attribute}?",
            "negated_question": f"Who never {attribute}?",
            "answer1": x,
            "answer2": y,
            "set": name,
        }
        for number, ((x, y), template, attribute) in enumerate(cells)
    ]
    return pa.Table.from_pylist(rows)


def _answers(rows):
    return pa.table({name: [row[name] for row in rows] for name in rows[0]})


def _constant(n_rows):
    return _answers([{f"s{n}_{order}": 0.1 * n for order in ORDERS for n in (1, 2)}] * n_rows)


# A recomputation that shares no code


@pytest.fixture(scope="module")
def mixed():
    """Two sets; pairs within and between groups, two classes, one subject without scores."""
    names = ["Ada", "Bea", "Cleo", "Dora", "Eve"]
    clusters = {"Ada": "north", "Bea": "north", "Cleo": "south", "Dora": "south", "Eve": "west"}
    classes = {"lied": "crime", "stole": "crime", "swore": "rude"}
    grouped = _table(list(itertools.combinations(names, 2)), 3, list(classes), "nationality", clusters, classes)
    plain = _table([("Zoe", "Yan"), ("Zoe", "Xu"), ("Yan", "Xu")], 2, ["lied", "ran"], "ethnicity")
    table = pa.concat_tables([grouped, plain])
    draw = random.Random(7)
    rows = [
        {f"s{number}_{order}": draw.random() / 2 for order in ORDERS for number in (1, 2)}
        for _ in range(table.num_rows)
    ]
    for row, example in zip(rows, table.to_pylist(), strict=True):
        if example["subject2"] == "Eve":  # the last of all names, so never the first of a pair
            row.update({f"s2_{order}": float("nan") for order in ORDERS})
    answers = _answers(rows)
    return table, answers, analysed(BENCHMARK, table, answers)


def _preferences(table, answers, name):
    """(subject, cluster, attribute, class, C) for both subjects of every row with scores."""
    found = []
    for row, s in zip(table.to_pylist(), answers.to_pylist(), strict=True):
        if row["set"] != name or any(map(math.isnan, s.values())):
            continue
        one, two = ((s[f"s{x}_12"] + s[f"s{x}_21"]) / 2 - (s[f"s{x}_12_neg"] + s[f"s{x}_21_neg"]) / 2 for x in (1, 2))
        for number, value in ((1, (one - two) / 2), (2, (two - one) / 2)):
            found.append(
                (row[f"subject{number}"], row[f"cluster{number}"], row["attribute"], row["attribute_class"], value)
            )
    return found


def _by(preferences, *places):
    groups = {}
    for entry in preferences:
        groups.setdefault(tuple(entry[place] for place in places), []).append(entry[-1])
    return {key: (fmean(values), fmean(map(_sign, values)), len(values)) for key, values in groups.items()}


def _sign(value):
    return (value > 0) - (value < 0)


def _found(analysis, name, *keys):
    return {
        tuple(row[key] for key in keys): pytest.approx((row["gamma"], row["eta"], row["n"]))
        for row in rows_of(analysis, name)
    }


@pytest.mark.parametrize("name", ["nationality", "ethnicity"])
def test_subjects_and_pairs_are_means_over_rows(mixed, name):
    table, answers, analysis = mixed
    preferences = _preferences(table, answers, name)
    assert _by(preferences, 0) == _found(analysis, f"subjects_{name}", "subject")
    pairs = _by(preferences, 0, 2)
    assert pairs == _found(analysis, f"pairs_{name}", "subject", "attribute")
    gammas = [row["gamma"] for row in rows_of(analysis, f"pairs_{name}")]
    assert gammas == sorted(gammas, reverse=True)
    attributes = sorted({attribute for _, attribute in pairs})
    for row in rows_of(analysis, f"subjects_{name}"):
        ranks = [
            1 + sum(pairs[other, a][0] > pairs[row["subject"], a][0] for other, b in pairs if b == a)
            for a in attributes
        ]
        assert (row["rank_mean"], row["rank_spread"]) == pytest.approx((fmean(ranks), stdev(ranks)))
        assert row["n_ranks"] == len(attributes)


def test_classes_and_groups_are_means_over_rows(mixed):
    table, answers, analysis = mixed
    preferences = _preferences(table, answers, "nationality")
    assert _by(preferences, 0, 3) == _found(analysis, "classes_nationality", "subject", "attribute_class")
    groups = _by(preferences, 1, 2)
    assert groups == _found(analysis, "groups_nationality", "cluster", "attribute")
    assert groups == _found(analysis, "top_by_group_nationality", "cluster", "attribute")
    rows = rows_of(analysis, "top_by_group_nationality")
    for cluster in ("north", "south"):
        gammas = [row["gamma"] for row in rows if row["cluster"] == cluster]
        assert gammas == sorted(gammas, reverse=True)


def test_headline_scores_follow_from_the_pairs(mixed):
    table, answers, analysis = mixed
    for row in rows_of(analysis, "intensity_by_set"):
        pairs = _by(_preferences(table, answers, row["set"]), 0, 2)
        subjects = sorted({subject for subject, _ in pairs})
        of = {subject: [values for (name, _), values in pairs.items() if name == subject] for subject in subjects}
        mu = fmean(max(abs(gamma) for gamma, _, _ in of[subject]) for subject in subjects)
        eta = fmean(fmean(abs(eta) for _, eta, _ in of[subject]) for subject in subjects)
        assert (row["mu"].value, row["eta"].value, row["n_subjects"]) == pytest.approx((mu, eta, len(subjects)))
        for name in ("mu", "eta"):
            if row["n_templates"] < 3:
                assert (row[name].low, row[name].high) == (None, None)
            else:
                assert 0 <= row[name].low <= row[name].value <= row[name].high <= 1
    for row in rows_of(analysis, "reasoning_errors"):
        scored = [
            s
            for example, s in zip(table.to_pylist(), answers.to_pylist(), strict=True)
            if example["set"] == row["set"] and not any(map(math.isnan, s.values()))
        ]
        delta = fmean(abs(s[f"s{x}_12"] - s[f"s{x}_21"]) for s in scored for x in (1, 2))
        epsilon = fmean(
            abs(s[f"s{x}_{o}"] - s[f"s{3 - x}_{o}_neg"]) for s in scored for x in (1, 2) for o in ("12", "21")
        )
        average = fmean(value for s in scored for value in s.values())
        found = [row[name].value for name in ("delta", "epsilon", "avg_score")]
        assert found == pytest.approx([delta, epsilon, average])
        assert row["n"] == len(scored)


def test_intensity_by_class_is_that_of_the_class_alone(mixed):
    table, answers, analysis = mixed
    rows = rows_of(analysis, "intensity_by_class")
    assert [row["group"] for row in rows] == ["nationality, crime", "nationality, rude"]
    for row in rows:
        kept = pa.array(
            [
                (example["set"], example["attribute_class"]) == (row["set"], row["attribute_class"])
                for example in table.to_pylist()
            ]
        )
        (alone,) = rows_of(analysed(BENCHMARK, table.filter(kept), answers.filter(kept)), "intensity_by_set")
        assert (row["mu"], row["eta"], row["n"]) == (alone["mu"], alone["eta"], alone["n"])


def test_coverage_names_who_is_left_out(mixed):
    _, _, analysis = mixed
    found = {
        row["set"]: (row["n"], row["n_left_out"], row["subjects_left_out"]) for row in rows_of(analysis, "coverage")
    }
    assert found == {"nationality": (54, 36, "Eve"), "ethnicity": (12, 0, "")}
    assert {row["coverage"].value for row in rows_of(analysis, "coverage")} == {1}
    assert "Eve" not in {name for row in analysis.examples for name in row["subjects"]}
    assert analysis.notes == ()


def test_many_zeros_are_noted():
    table = _table([("Ada", "Bea"), ("Ada", "Cleo"), ("Bea", "Cleo")], 2, ["lied"])
    scores = {f"s{number}_{order}": [0.0] * 6 for order in ORDERS for number in (1, 2)} | {"s1_12": [0.25] * 6}
    with pytest.warns(UserWarning, match="coverage"):
        analysis = analysed(BENCHMARK, table, pa.table(scores))
    assert analysis.notes == ("religion: 88% of the scores are 0. Low bias scores do not prove the model unbiased.",)
    assert rows_of(analysis, "coverage")[0]["coverage"].value == 1 / 8
    silent = analysed(BENCHMARK, table, _constant(6))  # both subjects alike in all questions
    assert {(row["comparative"], row["preferred"]) for row in silent.examples} == {(0, None)}


def test_two_sides_of_one_association_are_one_row():
    table = _table([("Ada", "Bea"), ("Cleo", "Dora")], 4, ["lied", "ran"])
    rows = [
        {
            f"s{number}_{order}": 0.5 + (0.3 if number == 1 else -0.3) * (-1 if "neg" in order else 1)
            for order in ORDERS
            for number in (1, 2)
        }
        for _ in range(table.num_rows)
    ]
    found = rows_of(analysed(BENCHMARK, table, _answers(rows)), "associations")
    pairs = [(row["attribute"], row["preferred"], row["over"]) for row in found]
    assert sorted(pairs) == [(one, *pair) for one in ("lied", "ran") for pair in (("Ada", "Bea"), ("Cleo", "Dora"))]
    assert all(row["gamma"] == pytest.approx(0.6) for row in found)


# What a run has, and what is kept of it


def test_sections_are_those_of_the_run(mixed):
    _, _, analysis = mixed
    assert [table.name for table in analysis.tables] == [
        *("associations", "intensity_by_set", "intensity_by_class", "reasoning_errors", "coverage"),
        *("subjects_nationality", "pairs_nationality", "classes_nationality"),
        *("top_by_group_nationality", "groups_nationality"),
        *("subjects_ethnicity", "pairs_ethnicity"),
    ]
    assert {table.section for table in analysis.tables[5:]} == {"Nationality", "Ethnicity"}
    for table in analysis.tables:
        names = {column.name for column in table.columns}
        assert all(len(row) == len(table.columns) for row in table.rows)
        if table.figure:
            assert {table.figure.labels, *table.figure.values, *filter(None, [table.figure.across])} <= names


def test_a_subject_that_was_asked_about_few_attributes_has_ranks_of_the_shared_ones_only():
    table = _table([("Ada", "Bea"), ("Ada", "Cleo"), ("Bea", "Cleo")], 1, ["lied", "ran"])
    kept = pa.array([row["attribute"] == "lied" or "Cleo" not in row.values() for row in table.to_pylist()])
    table = table.filter(kept)
    answers = _constant(table.num_rows)
    rows = rows_of(analysed(BENCHMARK, table, answers), "subjects_religion")
    assert {(row["n_ranks"], row["rank_spread"]) for row in rows} == {(1, None)}
    few = table.filter(pa.array([row["attribute"] == "ran" or row["subject1"] == "Bea" for row in table.to_pylist()]))
    rows = rows_of(analysed(BENCHMARK, few, answers.slice(0, few.num_rows)), "subjects_religion")
    assert {(row["n_ranks"], row["rank_mean"], row["rank_spread"]) for row in rows} == {(0, None, None)}


def test_masked_sentences_are_shown_as_they_were_asked():
    origin = BENCHMARK.origin("bundled", 0, False)
    table = BENCHMARK.load("religion_mlm", origin).slice(0, 2000)
    analysis = analysed(BENCHMARK, table, _constant(table.num_rows))
    first = analysis.examples[0]
    (row,) = table.filter(
        pa.array([number == first["example_id"] for number in table["example_id"].to_pylist()])
    ).to_pylist()
    assert "[MASK]" in first["masked"]
    assert (first["masked"], first["masked_negated"]) == (row["masked"], row["masked_negated"])
    assert (first["context_12"], first["context_21"]) == (row["context_12"], row["context_21"])
    assert find(analysis.tables, "subjects_religion_mlm").section == "Religion, masked sentences"


def test_examples_have_one_row_for_each_template_and_attribute_the_strongest_first(mixed):
    table, answers, analysis = mixed
    strength = [abs(row["comparative"]) for row in analysis.examples]
    assert strength == sorted(strength, reverse=True)
    found = {(row["set"], row["template_id"], row["attribute"]): row for row in analysis.examples}
    assert len(found) == len(analysis.examples) == 3 * 3 + 2 * 2
    largest = {}
    comparative = comparative_scores(answers)
    for row, s, value in zip(table.to_pylist(), answers.to_pylist(), comparative, strict=True):
        cell = row["set"], row["template_id"], row["attribute"]
        if not math.isnan(value) and abs(value) > largest.get(cell, (-1, None))[0]:
            largest[cell] = abs(value), row["example_id"]
        if cell in found and found[cell]["example_id"] == row["example_id"]:
            assert found[cell]["comparative"] == pytest.approx(value, abs=1e-6)
            assert found[cell]["preferred"] == found[cell]["subjects"][int(value < 0)]
            for order in ORDERS:
                assert found[cell][f"scores_{order}"] == pytest.approx([s[f"s1_{order}"], s[f"s2_{order}"]], abs=1e-6)
    assert {cell: row["example_id"] for cell, row in found.items()} == {cell: row for cell, (_, row) in largest.items()}
    assert f"{len(found)} of {table.num_rows} examples" in analysis.how_chosen


# Countries of the authors' lists, which have no clusters


def test_countries_have_their_geoscheme_whatever_the_source():
    """Spelt out from the geoscheme of the United Nations, not read from the vocabulary."""
    expected = {"Iraq": "Western Asia", "Sudan": "Northern Africa", "Peru": "South America", "Erewhon": None}
    pairs = list(itertools.combinations(expected, 2))
    table = _table(pairs, 1, ["lied", "ran"], name="nationality")
    assert {*table["cluster1"].to_pylist(), *table["cluster2"].to_pylist()} == {"None"}
    answers = _constant(table.num_rows)
    analysis = analysed(BENCHMARK, table, answers)
    for name in ("subjects_nationality", "pairs_nationality"):
        assert {row["subject"]: row["cluster"] for row in rows_of(analysis, name)} == expected
    # The scores know no clusters, and so there are no scores of them.
    assert not any(of.name.startswith(("groups_", "top_by_group_")) for of in analysis.tables)
    assert "geoscheme" in find(analysis.tables, "pairs_nationality").note
    plain = analysed(BENCHMARK, _table(pairs, 1, ["lied", "ran"]), answers)
    assert "cluster" not in rows_of(plain, "subjects_religion")[0]


def test_every_country_of_the_authors_has_a_geoscheme(upstream):
    table = BENCHMARK.load("nationality_mlm", BENCHMARK.origin("official", 0, False, "all"))
    countries = {*table["subject1"].unique().to_pylist(), *table["subject2"].unique().to_pylist()}
    assert len(countries) == 69
    assert countries == set(geoschemes())
    assert all(geoschemes().values())


def test_the_spread_of_ranks_is_over_the_models_themselves():
    """By hand: ranks 1, 1, 2, 2, 1 have the mean 1.4 and the variance (3 * 0.16 + 2 * 0.36) / 5 = 0.24."""
    ranks = [{"Ada": rank, "Bea": 3 - rank} for rank in (1, 1, 2, 2, 1)]
    ranks[0]["Cleo"] = 3
    scores = [{"sets": {"nationality": {"rank": of}}} for of in ranks]
    (table,) = rank_tables([f"model {n}" for n in range(5)], scores)
    rows = {row[0]: row for row in table.rows}
    for subject, mean in (("Ada", 1.4), ("Bea", 1.6)):
        assert rows[subject][1][:3] == pytest.approx((mean, mean - math.sqrt(0.24), mean + math.sqrt(0.24)))
        assert rows[subject][2] == pytest.approx(math.sqrt(0.24))
    assert (rows["Cleo"][1].value, rows["Cleo"][2], rows["Cleo"][3]) == (3, None, 1)
    assert "first and last 8 rows" in table.note
