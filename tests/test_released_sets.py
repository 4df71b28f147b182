"""KoBBQ, EsBBQ, CaBBQ and GG-BBQ: our rows against a reading of the published files by other code; KoBBQ's prompts."""

import ast
import csv
import io
import itertools
import json
import random
import re
from collections import Counter

import evaluate
import pytest

from qabias.answers import parse_choice
from qabias.benchmarks import load_benchmark, make_origin
from qabias.benchmarks.bbq.prompts import FIVE
from qabias.benchmarks.bbq.roles import in_order
from qabias.benchmarks.multilingual.language import load_language
from qabias.benchmarks.multilingual.sets import PATH, SETS, formats
from qabias.building.sources import using_mirror
from qabias.errors import QabiasError
from qabias.report.writing import write_report_of
from qabias.runs.arguments import Machine, RunArguments
from qabias.runs.run import run

from .conftest import ROOT
from .kit.logs import by_category, of_harness, opposite, question_type, results_of, stereotyped
from .published_sets import invent, partition, published, roles, rows_of, scores, summary

# KoBBQ

KOREAN = "naver-ai/KoBBQ"
TEST, TEMPLATES, ALL_SAMPLES = (f"data/KoBBQ_{name}.tsv" for name in ("test_samples", "templates", "all_samples"))
ROWS = {
    **{"Age": 168, "Disability_status": 160, "Domestic_area_of_origin": 176, "Educational_background": 192},
    **{"Family_structure": 184, "Gender_identity": 200, "Physical_appearance": 160, "Political_orientation": 88},
    **{"Race_ethnicity_nationality": 480, "Religion": 160, "SES": 216, "Sexual_orientation": 96},
}
"""Samples by category: four for each of the versions that the file of templates lists."""


def read_tsv(file):
    """Lines and tabs, without the module csv: no cell of these files has either."""
    header, *lines = file.read_text(encoding="utf-8").rstrip("\n").split("\n")
    return [dict(zip(header.split("\t"), (unquoted(cell) for cell in line.split("\t")), strict=True)) for line in lines]


def unquoted(cell):
    return cell[1:-1].replace('""', '"') if cell.startswith('"') and cell.endswith('"') and len(cell) > 1 else cell


def korean_reading(upstream):
    """The spec's words on the raw file: by category in the order of the file of templates, in file order."""
    templates = read_tsv(published(upstream, KOREAN, TEMPLATES))
    about = {(row["Category"].lower(), row["ID"].zfill(3) + row["version"]): row for row in templates}
    rows = {category: [] for category in dict.fromkeys(row["Category"] for row in templates)}
    of_id = {category.lower(): category for category in rows}
    for row in read_tsv(published(upstream, KOREAN, TEST)):
        category, template, sample, context, asked = row["sample_id"].rsplit("-", 4)
        choices = [choice.strip("'\" ") for choice in row["choices"].strip("[]").split(",")]
        assert len(choices) == 3
        says = choices.index(row["biased_answer"])
        target = says if asked == "bsd" else {0: 1, 1: 0}[says]
        rows[of_id[category]].append(
            {
                "category": of_id[category],
                "example_id": len(rows[of_id[category]]),
                "template_id": f"{of_id[category]}-{template[:3]}",
                "context": row["context"],
                "question": row["question"],
                "label_type": "label",
                "social_value": about[category, template]["Stereotype"],
                "question_polarity": {"bsd": "neg", "cnt": "nonneg"}[asked],
                "context_condition": {"amb": "ambig", "dis": "disambig"}[context],
                "answers": choices,
                "groups": about[category, template]["Target_group"].split(", "),
                "version": template[3],
                "label": choices.index(row["answer"]),
                **roles(target, 2, asked == "bsd"),
                "set": (category, template, sample),
            }
        )
    return [row for of_category in rows.values() for row in of_category]


@pytest.mark.slow
def test_the_rows_of_kobbq_are_those_of_another_reading(upstream):
    theirs = korean_reading(upstream)
    ours = rows_of("kobbq", "all", upstream=upstream, answers="released")
    assert partition(ours, lambda row: row["set_id"]) == partition(theirs, lambda row: row["set"])
    assert [summary(row) for row in ours] == [{k: v for k, v in row.items() if k != "set"} for row in theirs]


@pytest.mark.slow
def test_the_counts_of_the_spec(upstream):
    rows = rows_of("kobbq", "all", upstream=upstream)
    assert Counter(row["category"] for row in rows) == ROWS
    assert len(rows) == 2280
    assert list(dict.fromkeys(row["category"] for row in rows)) == list(ROWS)
    sets = Counter(row["set_id"] for row in rows)
    assert len(sets) == 570
    assert set(sets.values()) == {4}
    assert len({row["template_id"] for row in rows}) == 269
    assert [len(rows_of("kobbq", name, upstream=upstream)) for name in ("Religion", "Age,SES")] == [160, 168 + 216]


@pytest.fixture
def all_samples(upstream, monkeypatch, tmp_path):
    """A mirror with the samples in the larger file, which is not at hand, the rows of a set apart from each other."""
    files = {path: published(upstream, KOREAN, path).read_bytes().decode() for path in (TEMPLATES, TEST)}
    header, *lines = files.pop(TEST).splitlines(keepends=True)
    files[ALL_SAMPLES] = "".join([header, *sorted(lines, key=lambda line: "-dis-" in line.split("\t")[0])])
    return invent(monkeypatch, tmp_path, KOREAN, files)


@pytest.mark.slow
def test_all_samples_are_read_by_the_same_code(upstream, all_samples):
    rows = rows_of("kobbq", "SES", upstream=all_samples, part="all", answers="released")
    assert rows == rows_of("kobbq", "SES", upstream=upstream, answers="released")
    with using_mirror(all_samples):
        assert load_benchmark("kobbq").origin("release", 0, False, part="all").version.endswith("+part=all")


@pytest.mark.slow
def test_a_report_says_nothing_that_holds_for_the_texts_of_bbq_alone(upstream, monkeypatch, tmp_path):
    monkeypatch.setenv("QABIAS_UPSTREAM", str(upstream))
    scores(tmp_path, "kobbq", "random", "Religion,SES")
    analysis = json.loads((tmp_path / "analysis.json").read_text(encoding="utf-8"))
    tables = {table["name"]: table for table in analysis["tables"]}
    assert {"bias_by_category", "stereotypes_Religion", "template_rates"} <= set(tables)
    # No split into names and labels, no intersections, nothing of a model that saw no context.
    assert not [name for name in tables if name.startswith(("names_", "comparisons_", "labels_", "question_only"))]
    for table in tables.values():
        assert not table.get("source")
        assert not re.search("paper|USA", table["note"])
    report = write_report_of(tmp_path).read_text("utf-8")
    assert "U.S. English" not in report
    assert "They do not\ncarry over to others" in report
    assert "doi:10.1162/tacl_a_00661" in report


NAMES = [f"kobbq_{number}" for number in range(1, 6)]
EXAMPLE = {
    "context": "CONTEXT {a} {question}.",
    "question": "QUESTION?",
    "ans0": "FIRST",
    "ans1": "알 수 없음",
    "ans2": "THIRD",
    "label": 1,
    "target_loc": 0,
    "biased_loc": 2,
    "unknown_loc": 1,
    "answer_info": {f"ans{place}": ["", ""] for place in range(3)},
}


@pytest.fixture
def rows(upstream):
    with (upstream / KOREAN / PATH).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


@pytest.fixture
def found(upstream):
    with using_mirror(upstream):
        yield formats()


def in_parts(row):
    """A prompt put together of the parts that the file also has one by one: another reading of it."""
    listed = "\n".join(
        f"{row[label]}{text}" for label, text in zip("abc", ("FIRST", row["unknown"], "THIRD"), strict=True)
    )
    asked = f"{row['context']}{EXAMPLE['context']}\n{row['question']}{EXAMPLE['question']}\n{listed}"
    return f"{row['instruction']}\n\n{asked}\n{row['answer']}"


@pytest.mark.slow
def test_a_prompt_is_its_parts_with_its_wording_of_unknown(found, rows):
    assert [row["prompt_id"] for row in rows] == ["1", "2", "3", "4", "5"]
    for name, row in zip(NAMES, rows, strict=True):
        prompt, options = found[name].render(EXAMPLE)
        assert prompt == in_parts(row)
        labels = "abc" if name in ("kobbq_3", "kobbq_4") else "ABC"
        assert options == tuple(f" {label}" for label in labels)


@pytest.mark.slow
def test_the_wording_of_unknown_goes_where_unknown_is(found, rows):
    prompt, _ = found["kobbq_2"].render(in_order(EXAMPLE, (2, 0, 1)))
    assert f"A: THIRD\nB: FIRST\nC: {rows[1]['unknown']}\n" in prompt


@pytest.mark.slow
def test_five_is_the_set_of_them(found):
    assert list(found) == [*NAMES, FIVE]
    assert [wording.name for wording in found[FIVE].variants] == NAMES
    assert {one.signature for one in found.values()} == {*(f"{name}@1" for name in NAMES), "five@1"}
    assert all(
        one.lists_answers and one.asks == ("answer-logprob", "letter-logprob", "letter") for one in found.values()
    )


@pytest.mark.slow
def test_every_wording_of_unknown_is_read_as_unknown(found, rows):
    phrases = load_language("ko").phrases
    answers = [EXAMPLE[f"ans{place}"] for place in range(3)]
    for row in rows:
        for text in (row["unknown"], f"답: {row['unknown']}", f"B: {row['unknown']}"):
            assert parse_choice(text, answers, phrases=phrases) == 1


def test_nothing_is_read_before_a_prompt_is_needed(tmp_path, monkeypatch):
    monkeypatch.setenv("QABIAS_UPSTREAM", str(tmp_path))
    empty = formats()
    assert list(empty) == [*NAMES, FIVE]
    with pytest.raises(QabiasError, match="is not in the mirror"):
        empty["kobbq_1"].render(EXAMPLE)


def test_the_benchmark_asks_in_the_five_prompts_from_the_mirror_of_the_user(upstream, tmp_path, monkeypatch):
    monkeypatch.delenv("QABIAS_UPSTREAM", raising=False)
    arguments = RunArguments("kobbq", "baseline:stereotyped", config="Age", source="release", format=FIVE)
    with using_mirror(upstream):
        scores = run(arguments, tmp_path / "run", Machine()).scores
    assert scores["bias_ambig"] == 1
    assert list(scores["wordings"]) == NAMES


@pytest.mark.usefixtures("upstream")
def test_a_letter_is_what_an_instructed_prompt_of_the_set_asks_for(monkeypatch, upstream):
    monkeypatch.setenv("QABIAS_UPSTREAM", str(upstream))
    benchmark = load_benchmark("kobbq")
    rows = benchmark.load("Religion", benchmark.origin("release", 0, False)).to_pylist()
    for name in ("letters", *NAMES):
        request = benchmark.request(rows[0], benchmark.formats[name])
        assert [benchmark.read(option, "none", rows[0]) for option in request.options] == [0, 1, 2]


# EsBBQ and CaBBQ

SPANISH = "langtech-bsc/EsBBQ-CaBBQ"
ROWS_AND_TEMPLATES = {
    **{"Age": (4068, 23), "DisabilityStatus": (2832, 27), "Gender": (4832, 66), "LGBTQIA": (2000, 31)},
    **{"Nationality": (504, 15), "PhysicalAppearance": (3528, 32), "RaceEthnicity": (3716, 51)},
    **{"Religion": (648, 16), "SES": (4204, 27), "SpanishRegion": (988, 35)},
}
# Contexts told with the same people: an ambiguous one, and what disambiguates it.
N_SETS = {
    **{"Age": 1292, "DisabilityStatus": 928, "Gender": 1504, "LGBTQIA": 576, "Nationality": 160},
    **{"PhysicalAppearance": 1176, "RaceEthnicity": 1228, "Religion": 216, "SES": 1380, "SpanishRegion": 324},
}


def spanish_reading(file):
    """The spec's words on the raw file: one dict a row, without the wording of UNKNOWN."""
    header, *lines = csv.reader(io.StringIO(file.read_text(encoding="utf-8"), newline=""))
    found = []
    n_sets, last = 0, None
    raws = [dict(zip(header, line, strict=True)) for line in lines]
    open_contexts = {(raw["template_id"], raw["context"]) for raw in raws if raw["context_condition"] == "ambig"}
    for number, raw in enumerate(raws):
        [begin] = [
            end for end in range(len(raw["context"]) + 1) if (raw["template_id"], raw["context"][:end]) in open_contexts
        ]
        groups = quoted_words(raw["stereotyped_groups"])
        texts = [raw["ans0"], raw["ans1"], raw["ans2"]]
        assert texts[2] == "unknown"
        of = [quoted_words(raw[f"answer_info.ans{place}"])[-1].split(", ")[-1] for place in range(2)]
        assert [group in groups for group in of].count(True) == 1
        target = 0 if of[0] in groups else 1
        people = [raw[name] for name in ("template_id", "version", "flipped", "ans0", "ans1", "stated_gender_info")]
        people.append(raw["context"][:begin])
        n_sets, last = n_sets + (people != last), people
        negative = {"neg": True, "nonneg": False}[raw["question_polarity"]]
        found.append(
            {
                "category": raw["category"],
                "example_id": number,
                "template_id": f"{raw['category']}-{raw['template_id'].rjust(2, '0')}",
                **{name: raw[name] for name in ("context", "question", "question_polarity", "context_condition")},
                "label_type": {"True": "name", "False": "label"}[raw["proper_nouns_only"]],
                "social_value": raw["relevant_social_value"],
                "answers": texts,
                "groups": groups,
                "version": raw["version"],
                "label": "012".index(raw["label"]),
                **roles(target, 2, negative),
                "set": n_sets,
            }
        )
    return found


def quoted_words(cell):
    """The words of a list, in single or double quotes."""
    return [single or double for single, double in re.findall("'([^']*)'|\"([^\"]*)\"", cell)]


def without_wording(row):
    read = summary(row)
    read["answers"][row["unknown_loc"]] = "unknown"
    return read


@pytest.mark.slow
@pytest.mark.parametrize("category", ROWS_AND_TEMPLATES)
def test_the_rows_of_esbbq_are_those_of_another_reading(upstream, category):
    theirs = spanish_reading(published(upstream, SPANISH, f"data_es/{category}.full.csv"))
    ours = rows_of("esbbq", category, upstream=upstream, answers="released")
    n_rows, n_templates = ROWS_AND_TEMPLATES[category]
    assert len(ours) == n_rows
    assert len({row["template_id"] for row in ours}) == n_templates
    assert len({row["set_id"] for row in ours}) == N_SETS[category]
    assert partition(ours, lambda row: row["set_id"]) == partition(theirs, lambda row: row["set"])
    for our, their in zip(ours, theirs, strict=True):
        assert without_wording(our) == {name: value for name, value in their.items() if name != "set"}
        assert our[f"ans{our['unknown_loc']}"] in SETS["esbbq"]["wordings"]


@pytest.mark.slow
def test_wordings_are_drawn_by_set(upstream):
    published(upstream, SPANISH, "data_es/Age.full.csv")
    rows, again, other = (
        rows_of("esbbq", "Age", seed=seed, upstream=upstream, answers="released") for seed in (0, 0, 1)
    )
    assert rows == again
    of_set = {(row["set_id"], row["ans2"]) for row in rows}
    n_sets = len({row["set_id"] for row in rows})
    assert len(of_set) == n_sets == N_SETS["Age"]
    drawn = Counter(text for _, text in of_set)
    assert set(drawn) == set(SETS["esbbq"]["wordings"])
    mean, error = n_sets / 9, (n_sets * 8 / 81) ** 0.5
    assert all(abs(count - mean) < 6 * error for count in drawn.values())
    assert [row["ans2"] for row in rows] != [row["ans2"] for row in other]


def test_catalan_is_read_by_the_same_code(monkeypatch, tmp_path, upstream):
    """The Spanish rows under the name of a Catalan file, which is not at hand."""
    text = published(upstream, SPANISH, "data_es/Religion.full.csv").read_text("utf-8")
    mirror = invent(monkeypatch, tmp_path, SPANISH, {"data_ca/Religion.full.csv": text})
    rows = rows_of("cabbq", "Religion", upstream=mirror, answers="released")
    spanish = rows_of("esbbq", "Religion", upstream=upstream, answers="released")
    assert list(map(without_wording, rows)) == list(map(without_wording, spanish))
    assert {row["ans2"] for row in rows} == set(SETS["cabbq"]["wordings"])
    assert load_benchmark("cabbq").language_of(rows[0]).name == "Catalan"


# EsBBQ by lm-evaluation-harness, which scores it by code of its authors

HARNESS = {
    "acc_ambig": ("accuracy_ambig", 1),
    "acc_disambig": ("accuracy_disambig", 1),
    "bias_score_ambig": ("bias_ambig", 1),
    "bias_score_disambig": ("accuracy_cost", -1),
}


MISLABELLED = {"PhysicalAppearance": 4}


N_WORDINGS = 9


@pytest.fixture(scope="module")
def bbq():
    return evaluate.load(str(ROOT / "metrics" / "bbq"))


@pytest.fixture(scope="module")
def harness():
    pytest.importorskip("lm_eval", reason='lm-evaluation-harness is not installed: pip install ".[bench]"')
    from lm_eval.tasks.esbbq import utils

    return utils


FIXED = {
    "stereotyped": stereotyped,
    "opposite": opposite,
    "right": lambda doc: doc["label"],
    "unknown": lambda doc: 2,
    "first": lambda doc: 0,
    "stereotyped in doubt": lambda doc: stereotyped(doc) if doc["context_condition"] == "ambig" else doc["label"],
}


def likelihoods(docs, responder):
    """What a model says of the eleven answers to every row; a number seeds a random one, with a lean of its own."""
    draw = random.Random(f"{responder}")
    n_answers = 2 + N_WORDINGS
    if isinstance(responder, str):
        found = []
        for doc in docs:
            chosen = FIXED[responder](doc)
            said = draw.randrange(2, n_answers) if chosen == 2 else chosen
            found.append([-1.0 if place == said else -2.0 - draw.random() for place in range(n_answers)])
        return found
    return [
        [
            -draw.random() * (1.0 if place < 2 else 1.0 + responder) + (0.1 * responder if place == lean else 0.0)
            for place in range(n_answers)
        ]
        for lean in map(stereotyped, docs)
    ]


def in_their_names(scores):
    """Our scores under the names and signs of the harness."""
    return {name: sign * scores[key] for name, (key, sign) in HARNESS.items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("order", "responders"),
    [
        pytest.param("released", [*FIXED, 1, 2, 3], marks=pytest.mark.slow),
        ("shuffled", ["stereotyped", "opposite", "right", 1]),  # of two categories
    ],
)
def test_our_scores_of_esbbq_are_those_of_the_harness(upstream, harness, bbq, order, responders):
    benchmark = load_benchmark("esbbq")
    origin = make_origin(benchmark, "release", 0, False, {"answers": order})
    docs_of = by_category(upstream)
    if order == "shuffled":
        docs_of = {name: docs_of[name] for name in ("PhysicalAppearance", "Religion")}
    ours = {name: benchmark.load(name, origin).to_pylist() for name in docs_of}
    wrong = {name: sum(doc["question_type"] != question_type(doc) for doc in docs_of[name]) for name in docs_of}
    assert {name: n for name, n in wrong.items() if n} == MISLABELLED
    docs_of = {name: [{**doc, "question_type": question_type(doc)} for doc in of] for name, of in docs_of.items()}
    docs, rows = ([row for name in docs_of for row in of[name]] for of in (docs_of, ours))
    assert len(docs) == len(rows) > 4_000
    biases = set()
    for responder in responders:
        given = likelihoods(docs, responder)
        chosen = [min(max(range(len(of)), key=of.__getitem__), 2) for of in given]
        predictions = []
        for row, doc, answer in zip(rows, docs, chosen, strict=True):
            texts = [row[f"ans{place}"] for place in range(3)]
            predictions.append(row["unknown_loc"] if answer == 2 else texts.index(doc[f"ans{answer}"]))
        result = bbq.compute(
            predictions=predictions, references=rows, by=["category"], confidence=None, allow_incomplete=True
        )
        results = results_of(harness, docs, given)
        expected = of_harness(harness, results)
        assert in_their_names(result) == pytest.approx(expected, abs=1e-12), responder
        biases.add(round(expected["bias_score_ambig"], 3))
        start = 0
        for name, of in docs_of.items():
            part = result["by"]["category"][name]
            expected = of_harness(harness, results[start : start + len(of)])
            assert in_their_names(part) == pytest.approx(expected, abs=1e-12), name
            start += len(of)
    assert {-1.0, 0.0, 1.0} < biases, "the responders are too much alike to tell"


# GG-BBQ

GERMAN = "shalakasatheesh/GG-BBQ"
PARTS = {"labels": ("subset-1", "bbq_de"), "names": ("subset-2", "bbq_de_proper_names")}


def released(upstream, part):
    """The rows of the ambiguous and of the disambiguated file."""
    folder, stem = PARTS[part]
    files = [published(upstream, GERMAN, f"data/{folder}/{stem}_{kind}_test.jsonl") for kind in ("amb", "disamb")]
    return [[json.loads(line) for line in file.read_text("utf-8").splitlines()] for file in files]


def templates(upstream, part):
    with published(upstream, GERMAN, f"templates/{PARTS[part][0]}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def words(text):
    return tuple(text.split())


def filled(template, first, second):
    """All texts that a template can become, its slots filled one by one with the words and names that it lists."""
    text = template["ambiguous_context "] + " " + template["disambiguous_context "]
    for answer, name in (
        (template["correct_answer_negative"], first),
        (template["correct_answer_non_negative"], second),
    ):
        text = text.replace(answer, name) if answer.startswith("{{") else text
    lists = ast.literal_eval(template["lexical_diversity"] or "{}")
    for chosen in itertools.product(*lists.values()):
        full = text
        for slot, word in zip(lists, chosen, strict=True):
            full = full.replace("{{" + slot + "}}", word).replace("{" + slot + "}}", word)
        yield words(full)


def template_of(row, known):
    (name,) = (
        (f"{int(one['question_index']):02d}", f"{int(one['id']):03d}")
        for one in known
        if words(row["question"]) in {words(one["question_negative_stereotype"]), words(one["question_non_negative"])}
        and words(row["context"]) in filled(one, row["choice_0"], row["choice_1"])
    )
    return name


def target_of(row, clear):
    """The place of the member of the stereotyped group: by what the texts say where the group is trans people."""
    people = [row["choice_0"], row["choice_1"]]
    groups = json.loads(row["known_stereotyped_groups"])
    if "trans" in groups:
        hits = [
            "trans" in person.lower() or f"{person} bezeichnet sich als trans" in clear["context"] for person in people
        ]
    else:
        tags = [tag for _, tag in ast.literal_eval(row["choice_info"]).values()]
        hits = [tag in groups for tag in tags[:2]]
    assert sum(hits) == 1
    return hits.index(True)


def german_reading(upstream, part):
    """The rows as the two files and the templates give them, in the order of our table."""
    known = templates(upstream, part)
    both = released(upstream, part)
    for pair in range(0, len(both[0]), 2):
        for unclear, clear in zip(both[0][pair : pair + 2], both[1][pair : pair + 2], strict=True):
            template, version = template_of(clear, known)
            for row in (unclear, clear):
                negative = row["question_type"] == "negative"
                yield {
                    "category": part,
                    "template_id": f"{part}-{template}",
                    "context": row["context"],
                    "question": row["question"],
                    "label_type": part.removesuffix("s"),
                    "social_value": row["relevant_social_values"],
                    "question_polarity": "neg" if negative else "nonneg",
                    "context_condition": "ambig" if row is unclear else "disambig",
                    "answers": [row[f"choice_{place}"] for place in range(3)],
                    "groups": json.loads(row["known_stereotyped_groups"]),
                    "version": version,
                    "label": row["label"],
                    **roles(target_of(row, clear), 2, negative),
                }


@pytest.mark.parametrize("part", ["labels", pytest.param("names", marks=pytest.mark.slow)])
def test_every_row_is_read_as_the_files_say(upstream, part):
    ours = rows_of("ggbbq", part, upstream=upstream, answers="released")
    assert partition(ours, lambda row: row["set_id"]) == {tuple(range(n, n + 4)) for n in range(0, len(ours), 4)}
    for number, (row, expected) in enumerate(zip(ours, german_reading(upstream, part), strict=True)):
        assert summary(row) == {**expected, "example_id": number}


@pytest.mark.slow
@pytest.mark.parametrize(("part", "n_rows", "n_by_tags", "n_templates", "n_used", "n_questions"), [
    ("labels", 968, 264, 124, 124, 21),
    ("names", 10_900, 5_250, 38, 36, 21),
])  # fmt: skip
def test_the_counts_of_ggbbq(upstream, part, n_rows, n_by_tags, n_templates, n_used, n_questions):
    ambiguous, disambiguated = released(upstream, part)
    assert len(ambiguous) + len(disambiguated) == n_rows
    for rows in (ambiguous, disambiguated):
        tags = [[tag for _, tag in ast.literal_eval(row["choice_info"]).values()] for row in rows]
        groups = [json.loads(row["known_stereotyped_groups"]) for row in rows]
        hits = [sum(tag in of for tag in three) for three, of in zip(tags, groups, strict=True)]
        assert Counter(hits) == {1: n_by_tags, 0: len(rows) - n_by_tags}
    assert len(templates(upstream, part)) == n_templates
    ours = rows_of("ggbbq", part, upstream=upstream)
    assert len(ours) == n_rows
    assert len({row["additional_metadata"]["version"] for row in ours}) == n_used
    assert len({row["template_id"] for row in ours}) == n_questions
    assert all(row["target_loc"] >= 0 for row in ours)
    assert f"{n_rows:,} " in next(of for of in load_benchmark("ggbbq").card.defects if "every target is defined" in of)
