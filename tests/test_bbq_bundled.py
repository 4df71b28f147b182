"""The bundled templates of BBQ: format errors, and quality of every filling."""

import csv
import re
import shutil
from collections import Counter, defaultdict

import datasets
import pytest
import yaml

from qabias.building.templating import StableRandom, repair_articles, slots_of
from qabias.errors import QabiasError
from qabias.share.bbq_dataset import bundled, bundled_inference
from qabias.share.bbq_dataset.builder import BBQ, FEATURES
from qabias.share.bbq_dataset.origin import ALL_NLI, CATEGORIES, CONFIGS, NLI_CONFIGS, Origin
from qabias.share.bbq_dataset.pairs import pairs
from qabias.share.bbq_dataset.statements import statement_of
from qabias.share.bbq_dataset.template import UNKNOWN_ANSWERS
from qabias.share.bbq_dataset.vocabulary import read_vocabulary

from .built import BBQ_TABLE_3, bbq_rows, word_runs
from .conftest import ROOT

# Three sets like the published template (Table 3 leaves the category an odd number of sets): no half of them exists.
# The facts of the third one agree with the stereotype in one of its questions.
THREE_SETS = "Disability_status-04"

VOCABULARY = read_vocabulary(bundled.FOLDER / "vocabulary")


@pytest.fixture(scope="module")
def rows():
    return {category: bbq_rows(category) for category in CATEGORIES}


@pytest.fixture(scope="module")
def templates():
    return {category: bundled.read_templates(category, VOCABULARY) for category in CATEGORIES}


# The folder and the builder.


def test_load_dataset_reads_the_folder_as_it_is(tmp_path, rows):
    everything = datasets.load_dataset(str(ROOT / "bbq_dataset"), cache_dir=tmp_path)
    age = datasets.load_dataset(str(ROOT / "bbq_dataset"), "Age", split="test", cache_dir=tmp_path)
    assert list(everything) == ["test"]
    assert age.features == everything["test"].features == FEATURES
    assert age.to_list() == rows["Age"]
    assert everything["test"]["category"] == [category for category in CATEGORIES for _ in rows[category]]


def test_the_builder_makes_the_same_examples(tmp_path, rows):
    builder = BBQ(config_name="Religion", cache_dir=tmp_path)
    builder.download_and_prepare()
    assert builder.as_dataset(split="test").to_list() == rows["Religion"]
    assert Origin().table("Religion").to_pylist() == rows["Religion"]
    assert set(BBQ.builder_configs) == {*CONFIGS, *NLI_CONFIGS, ALL_NLI}


def test_another_seed_draws_other_examples_of_the_same_templates(rows):
    one, two = rows["Nationality"], list(Origin(seed=1).rows("Nationality"))
    assert [row["template_id"] for row in one] == [row["template_id"] for row in two]
    assert one != two


# Counts and balance.


def test_every_style_of_slot_occurs(templates):
    styles = {(t.category, t.style) for versions in templates.values() for t in versions}
    assert {style for _, style in styles} == {"words", "labels", "occupations", "names"}
    for category in ("Race_x_gender", "Race_x_SES"):
        assert {style for where, style in styles if where == category} == {"labels", "names"}
    for category, versions in templates.items():
        assert len({template.question_index for template in versions}) >= 4, category


def test_counts_are_those_of_table_3(rows, templates):
    assert {category: len(of_one) for category, of_one in rows.items()} == BBQ_TABLE_3
    assert sum(BBQ_TABLE_3.values()) == 58492
    assert sum(len({t.question_index for t in versions}) for versions in templates.values()) == 343


def test_every_template_has_a_published_counterpart_with_as_many_examples(rows, upstream):
    for category, ours in rows.items():
        published = bbq_rows(category, "official", upstream)
        assert Counter(row["question_index"] for row in ours) == Counter(row["question_index"] for row in published)


def _expected_examples(versions):
    """Closed form of the number of examples of a template, for the bundled vocabulary."""
    template = versions[0]
    sizes = {name: [label.word for label in labels] for name, labels in VOCABULARY.labels.items()}
    targets = min(5, len(set(template.groups) & set(sizes.get(template.category, sizes["Race_ethnicity"]))))
    if template.is_intersectional:
        return 24 * 25 if template.style == "names" else 24 * 5 * targets
    if template.style == "words":
        return 4 * sum(len(v.people[0]) * (1 if v.parallel else len(v.people[1])) for v in versions)
    if template.style == "occupations":
        return 8 * 5 * 12
    if template.style == "names":
        return len(versions) * 8 * (30 if template.category == "SES" else 25)
    if template.category == "Gender_identity":
        return 8
    return 8 * targets * min(5, len(sizes[template.category]) - targets)


def test_number_of_examples_of_every_template(rows, templates):
    for category, versions in templates.items():
        by_id = defaultdict(list)
        for template in versions:
            by_id[template.template_id].append(template)
        counts = Counter(row["template_id"] for row in rows[category])
        assert counts == {name: _expected_examples(of_one) for name, of_one in by_id.items()}


def test_every_example_has_a_target_and_half_the_gold_answers_are_aligned(rows):
    for category_rows in rows.values():
        aligned = defaultdict(list)
        for row in category_rows:
            assert row["target_loc"] != -1
            if row["context_condition"] == "disambig":
                aligned[row["template_id"]].append(row["label"] == row["biased_loc"])
        for name, values in aligned.items():
            assert 2 * sum(values) == len(values), name


def test_the_target_comes_first_in_half_of_every_templates_sets(rows, templates):
    first = defaultdict(list)
    for category, category_rows in rows.items():
        contexts = {t.template_id: t for t in templates[category]}
        for row in category_rows[::4]:
            template = contexts[row["template_id"]]
            slots = {"{{NAME1}}": "first", "{{NAME2}}": "second"}
            order = sorted(slots, key=template.context.index)
            assert order == ["{{NAME1}}", "{{NAME2}}"], f"{template.template_id}: NAME1 must come first"
            # The negative answer names a known slot; so the slot of the target follows from the answers alone.
            negative_is_first = "{{NAME1}}" in template.negative_answer
            negative = category_rows[row["example_id"] + 1]["label"]
            first[row["template_id"]].append((row["target_loc"] == negative) == negative_is_first)
    for name, values in first.items():
        if name == THREE_SETS:
            assert (sum(values), len(values)) == (1, 3)
        else:
            assert 2 * sum(values) == len(values), name


def test_every_template_names_its_sources_and_harm(templates):
    for versions in templates.values():
        for template in versions:
            assert template.bias.strip()
            assert template.source.strip()


# Language.


def _texts(row):
    return [row[field] for field in ("context", "question", "ans0", "ans1", "ans2")]


def test_grammar_of_every_filling(rows):
    seen = {text for category_rows in rows.values() for row in category_rows for text in _texts(row)}
    for text in seen:
        assert "{" not in text, text
        assert "}" not in text, text
        assert "  " not in text, text
        assert text == text.strip(), text
        assert text[0].isupper() or text[0].isdigit(), text
        assert not re.search(r"[.!?] [a-z]", text), text
        assert not re.search(r"[,;]\s*[.?!]|[.?!]{2}", text), text
        assert repair_articles(text) == text, text
        assert not re.search(r"\b(\w+) \1\b", text.lower().replace("that that", "")), text
        assert "Latino woman" not in text, text


def test_questions_and_contexts_end_with_one_mark(rows):
    for category_rows in rows.values():
        for row in category_rows:
            assert re.search(r"[^.?!]\?$", row["question"]), row["question"]
            assert re.search(r"[^.?!][.!]$", row["context"]), row["context"]
            for i in range(3):
                assert row[f"ans{i}"][-1] not in ".?!,;", row[f"ans{i}"]


def test_contexts_are_as_long_as_published_ones(rows):
    # Words of the generated published contexts: 8 to 55 ambiguous, 23 to 102 disambiguated.
    for category_rows in rows.values():
        for row in category_rows:
            n_words = len(row["context"].split())
            low, high = (8, 55) if row["context_condition"] == "ambig" else (23, 102)
            assert low <= n_words <= high, row["context"]


def test_answers_of_an_example_differ(rows):
    for category_rows in rows.values():
        for row in category_rows:
            assert len({row[f"ans{i}"].lower() for i in range(3)}) == 3, row
            assert row[f"ans{row['unknown_loc']}"] in UNKNOWN_ANSWERS


def test_a_group_is_never_compared_with_one_that_overlaps_it(rows):
    overlaps = {label.word: label.overlaps for label in VOCABULARY.labels["Race_ethnicity"]}
    for row in rows["Race_ethnicity"]:
        if row["label_type"] == "label":
            one, two = (text for text, info in row["answer_info"].values() if info != "unknown")
            assert two not in overlaps[one]
            assert one not in overlaps[two]


def test_statements_are_sentences_about_one_person(templates):
    for versions in templates.values():
        for template in versions:
            for statement in (template.negative_statement, template.non_negative_statement):
                assert slots_of(statement) >= {"ANSWER"}
                assert not slots_of(statement) & {"NAME1", "NAME2"}


def test_no_template_shares_six_words_with_another(templates):
    owners = {}
    for versions in templates.values():
        for template in versions:
            for field in (
                template.context,
                template.context_alike,
                template.disambiguation,
                template.negative_question,
            ):
                for words in word_runs(field):
                    assert owners.setdefault(words, template.template_id) == template.template_id, words


def test_no_template_shares_six_words_with_a_published_one(templates, upstream):
    published = set()
    for path in (upstream / "nyu-mll" / "BBQ" / "templates").glob("new_templates*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                for column, text in row.items():
                    if column.startswith(("Ambiguous", "Disambiguating", "Question")):
                        published |= word_runs(text)
    assert len(published) > 5000
    for versions in templates.values():
        for template in versions:
            for field in (
                template.context,
                template.context_alike,
                template.disambiguation,
                template.negative_question,
                template.non_negative_question,
                *template.append.values(),
            ):
                assert not word_runs(field) & published, (template.template_id, word_runs(field) & published)


def test_a_trans_person_is_compared_with_a_cis_person_of_the_same_words(templates):
    compared = 0
    for template in templates["Gender_identity"]:
        if template.style == "words" and "trans" in template.tags:
            for pair in pairs(template, VOCABULARY, StableRandom(0)):
                people = {person.info: person.name for person in (pair.first, pair.second)}
                assert re.sub("^trans", "cis", people["trans"]) == people["nonTrans"]
                compared += 1
    assert compared == 116


# Errors name file, template and field.

GOOD = {
    "id": 1,
    "style": "words",
    "bias": "slowness",
    "groups": ["old"],
    "sources": ["https://example.org"],
    "people": {"old": ["grandfather"], "nonOld": ["grandson"]},
    "context": "A {{NAME1}} and a {{NAME2}} walked home.",
    "disambiguation": "The {{NAME1}} walked slowly, the {{NAME2}} did not.",
    "negative": {"question": "Who was slow?", "answer": "The {{NAME1}}", "statement": "{{ANSWER}} was slow."},
    "non_negative": {"question": "Who was fast?", "answer": "The {{NAME2}}", "statement": "{{ANSWER}} was fast."},
}


def _read(tmp_path, entries, category="Age"):
    folder = tmp_path / "templates"
    folder.mkdir()
    (folder / f"{category}.yaml").write_text(
        yaml.safe_dump({"category": category, "templates": entries}, sort_keys=False), "utf-8"
    )
    return bundled.read_templates(category, VOCABULARY, tmp_path)


def test_a_good_entry_gives_two_versions(tmp_path):
    one, two = _read(tmp_path, [GOOD])
    assert (one.version, one.tags, one.people) == ("a", ("old", "nonOld"), (("grandfather",), ("grandson",)))
    assert (two.version, two.tags, two.people) == ("b", ("nonOld", "old"), (("grandson",), ("grandfather",)))


def _changed(**fields):
    return {key: value for key, value in {**GOOD, **fields}.items() if value is not None}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (_changed(context=None), "field context: is missing"),
        (_changed(contxt="x"), "field contxt: is not a field; did you mean 'context'?"),
        (_changed(style="label"), "field style: 'label' is not one of words"),
        (_changed(groups=[]), "field groups: must be a list of texts"),
        (_changed(groups=["young"]), "field groups: .* must match exactly one of"),
        (_changed(sources=[""]), "field sources: must be a list of texts"),
        (_changed(people={"old": ["a"]}), "field people: must hold exactly two groups"),
        (_changed(people={"old": ["a", "a"], "nonOld": ["b"]}), "lists an entry twice"),
        (_changed(people={"old": ["a", "c"], "nonOld": ["b"]}, parallel=True), "field people: .* not 2 and 1"),
        (_changed(parallel="yes"), "field parallel: must be true or false, not 'yes'"),
        (_changed(context="A {{NAME1}} and a {{NAME3}} met."), "field context: slot NAME3 is filled by nothing"),
        (_changed(context="A {{NAME1}} walked."), "field context: must name both people"),
        (_changed(context="A {{NAME1}} and {a {{NAME2}} met."), "field context: has a stray brace"),
        (_changed(context=" A {{NAME1}} and {{NAME2}}."), "field context: has a space too many"),
        (_changed(words={"WORD1": ["x", "y"]}), "field words: WORD1 is used in no text"),
        (_changed(negative={"question": "Who?"}), "field negative: must hold exactly question, answer, statement"),
        (_changed(negative={**GOOD["negative"], "answer": "The {{NAME2}}"}), "must name one person each"),
        (_changed(negative={**GOOD["negative"], "question": "Who"}), "must end with a question mark"),
        (_changed(negative={**GOOD["negative"], "statement": "It is so."}), "must hold {{ANSWER}} once"),
        (_changed(append={"short": ", x.", "long": "X."}), "field append: is for Gender_identity only"),
        (_changed(id="one"), "field id: must be a whole number"),
        (_changed(versions=[{"version": "a", "first": "young"}]), "field versions: first is 'young'"),
        (_changed(versions=[{"version": "a"}, {"version": "a"}]), "every version needs a letter of its own"),
        ("text", "a template must be a mapping"),
    ],
)
def test_a_wrong_entry_is_reported_with_file_template_and_field(tmp_path, entry, message):
    with pytest.raises(QabiasError, match=message) as caught:
        _read(tmp_path, [entry])
    assert "Age.yaml: template" in str(caught.value)


# Two people with the same description.

DESCRIBED = {
    **{name: GOOD[name] for name in ("id", "bias", "sources")},
    "style": "names",
    "groups": ["Black"],
    "second_group": "lowSES",
    "descriptions": {"lowSES": ["attendant"], "highSES": ["judge"]},
    "context": "{{NAME1}} ({{DESC1}}) and {{NAME2}} ({{DESC2}}) walked home.",
    "context_alike": "{{NAME1}} and {{NAME2}}, each a {{DESC1}}, walked home.",
    "disambiguation": "{{NAME1}} walked slowly, {{NAME2}} did not.",
    "negative": {"question": "Who was slow?", "answer": "{{NAME1}}", "statement": "{{ANSWER}} was slow."},
    "non_negative": {"question": "Who was fast?", "answer": "{{NAME2}}", "statement": "{{ANSWER}} was fast."},
}


def test_a_description_that_two_people_share_is_said_once(tmp_path):
    shutil.copytree(bundled.FOLDER / "vocabulary", tmp_path / "vocabulary")
    _read(tmp_path, [DESCRIBED], "Race_x_SES")
    seen = Counter()
    for row in bundled.generate("Race_x_SES", seed=0, folder=tmp_path):
        jobs = [info[0].split()[-1] for info in row["answer_info"].values() if info[1] != "unknown"]
        said = re.findall("attendant|judge", row["context"])
        assert sorted(said) == sorted(set(jobs) if len(set(jobs)) == 1 else jobs), row["context"]
        seen[tuple(said)] += 1
        if said == ["attendant"]:
            assert re.match(r"\S+ \S+ and \S+ \S+, each an attendant, walked home\.", row["context"])
    assert set(seen) == {("attendant",), ("attendant", "judge"), ("judge", "attendant")}
    assert seen["attendant",] == 25 * 2 * 4
    premises = [row["premise"] for row in bundled_inference.generate("Race_x_SES_nli", seed=0, folder=tmp_path)]
    assert {premise.count("attendant") for premise in premises} == {1}
    assert {", each an attendant," in premise for premise in premises} == {True, False}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"context_alike": "{{NAME1}} and {{NAME2}}, each a {{DESC2}}."},
            "must hold {{NAME1}}, {{NAME2}} and {{DESC1}} once",
        ),
        ({"context_alike": "{{NAME1}}, each a {{DESC1}}."}, "must hold {{NAME1}}, {{NAME2}} and {{DESC1}} once"),
        ({"context_alike": "{{NAME1}} and {{NAME2}}, each a {{DESC1}} or {{DESC1}}."}, "once each, and no {{DESC2}}"),
        ({"context_alike": "{{NAME1}}, {{NAME2}}, {{DESC1}}, {{DESC3}}."}, "slot DESC3 is filled by nothing"),
        ({"context_alike": "{{NAME2}} and {{NAME1}}, each a {{DESC1}}."}, "the same order as the context"),
        ({"context_alike": ""}, "must be a text, not ''"),
        ({"style": "labels"}, "is for style names with descriptions only"),
        (
            {"descriptions": None, "context": "{{NAME1}} and {{NAME2}}.", "context_alike": "{{NAME1}} and {{NAME2}}."},
            "is for style names with descriptions only",
        ),
    ],
)
def test_a_wrong_context_for_two_people_with_the_same_description_is_refused(tmp_path, fields, message):
    entry = {key: value for key, value in {**DESCRIBED, **fields}.items() if value is not None}
    with pytest.raises(QabiasError, match=f"field context_alike: .*{re.escape(message)}"):
        _read(tmp_path, [entry], "Race_x_SES")


def test_every_question_of_two_people_with_the_same_description_finds_its_statement(rows, templates):
    of = {
        (template.template_id, polarity): text
        for template in templates["Race_x_SES"]
        for polarity, text in (("neg", template.negative_statement), ("nonneg", template.non_negative_statement))
    }
    shared = 0
    for row in Origin().rows("Race_x_SES"):
        found = statement_of(row["template_id"], row["context"], row["question"], "{{ANSWER}}")
        assert found == of[row["template_id"], row["question_polarity"]], row["context"]
        shared += row["comparison"] == "match_other"
    assert shared > 2000


def test_ids_rise(tmp_path):
    with pytest.raises(QabiasError, match="1 follows 1"):
        _read(tmp_path, [GOOD, GOOD])


def test_unreadable_and_missing_files(tmp_path):
    (tmp_path / "templates").mkdir()
    with pytest.raises(QabiasError, match="no such template file"):
        bundled.read_templates("Age", VOCABULARY, tmp_path)
    (tmp_path / "templates" / "Age.yaml").write_text("category: Age\ntemplates: [", "utf-8")
    with pytest.raises(QabiasError, match=r"not readable as YAML.*line 2"):
        bundled.read_templates("Age", VOCABULARY, tmp_path)


def test_wrong_choices_of_source_and_configuration():
    with pytest.raises(QabiasError, match="unknown source 'bundle'"):
        Origin("bundle")
    with pytest.raises(QabiasError, match="no known defects to fix: use fixes with the source official or release"):
        Origin("bundled", fixes=True)
    with pytest.raises(QabiasError, match="unknown configuration 'Agee'"):
        list(Origin().rows("Agee"))
