"""The bundled texts of BBQ: quality of every filling, gates that see the faults they are for, and faults in files."""

import copy
import csv
import re
import shutil
from collections import Counter, defaultdict
from dataclasses import replace

import pytest
import yaml

from qabias.building import sources
from qabias.building.templating import StableRandom, slots_of
from qabias.errors import QabiasError
from qabias.share.bbq_dataset import bundled, bundled_inference, gates
from qabias.share.bbq_dataset.origin import CATEGORIES, Origin
from qabias.share.bbq_dataset.pairs import pairs
from qabias.share.bbq_dataset.statements import statement_of
from qabias.share.bbq_dataset.template import UNKNOWN_ANSWERS
from qabias.share.bbq_dataset.vocabulary import look_alike, read_vocabulary

from .built import BBQ_TABLE_3, bbq_rows, word_runs

GOOD = {
    "id": 1,
    "style": "words",
    "bias": "slowness",
    "groups": ["old"],
    "sources": ["https://example.org"],
    "people": {"old": ["grandfather"], "nonOld": ["grandson"]},
    "context": "A {{NAME1}} and a {{NAME2}} walked home by the river.",
    "disambiguation": "The {{NAME1}} walked slowly, the {{NAME2}} did not.",
    "negative": {"question": "Who was slow?", "answer": "The {{NAME1}}", "statement": "{{ANSWER}} was slow."},
    "non_negative": {"question": "Who was fast?", "answer": "The {{NAME2}}", "statement": "{{ANSWER}} was fast."},
}
NAMED = {
    **{name: GOOD[name] for name in ("id", "bias", "sources")},
    "style": "names",
    "groups": ["Black"],
    "second_group": "lowSES",
    "descriptions": "occupations",
    "context": "{{NAME1}} ({{DESC1}}) and {{NAME2}} ({{DESC2}}) walked home by the river.",
    "context_alike": "{{NAME1}} and {{NAME2}}, each a {{DESC1}}, walked home by the river.",
    "disambiguation": "{{NAME1}} walked slowly, {{NAME2}} did not.",
    "negative": {"question": "Who was slow?", "answer": "{{NAME1}}", "statement": "{{ANSWER}} was slow."},
    "non_negative": {"question": "Who was fast?", "answer": "{{NAME2}}", "statement": "{{ANSWER}} was fast."},
}

UNALIKE = {name: value for name, value in NAMED.items() if name != "context_alike"}
DESCRIBED = {
    **UNALIKE,
    "descriptions": {"lowSES": ["attendant"], "highSES": ["judge"]},
    "context": "{{NAME1}} ({{DESC1}}) and {{NAME2}} ({{DESC2}}) walked home.",
    "context_alike": "{{NAME1}} and {{NAME2}}, each a {{DESC1}}, walked home.",
}


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


@pytest.mark.slow
def test_another_seed_draws_other_examples_of_the_same_templates(rows):
    one, two = rows["Nationality"], list(Origin(seed=1).rows("Nationality"))
    assert [row["template_id"] for row in one] == [row["template_id"] for row in two]
    assert one != two


# Counts and balance.


@pytest.mark.slow
def test_counts_are_those_of_table_3_and_every_style_of_slot_occurs(rows, templates):
    assert {category: len(category_rows) for category, category_rows in rows.items()} == BBQ_TABLE_3
    assert sum(len({t.question_index for t in versions}) for versions in templates.values()) == 343
    styles = {category: {template.style for template in versions} for category, versions in templates.items()}
    assert set().union(*styles.values()) == {"words", "labels", "occupations", "names"}
    assert styles["Race_x_gender"] == styles["Race_x_SES"] == {"labels", "names"}


@pytest.mark.slow
def test_every_template_has_a_published_counterpart_with_as_many_examples(rows, upstream):
    for category, ours in rows.items():
        published = bbq_rows(category, "official", upstream)
        assert Counter(row["question_index"] for row in ours) == Counter(row["question_index"] for row in published)


@pytest.mark.slow
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


# Language.


@pytest.mark.slow
def test_an_age_in_years_is_only_compared_with_another_one(rows):
    """Appendix A of Parrish et al. 2022."""
    for row in rows["Age"]:
        people = [text for text, info in row["answer_info"].values() if info != "unknown"]
        assert len({bool(re.search(r"\d", text)) for text in people}) == 1, (row["template_id"], people)


def test_every_template_has_a_source_and_shares_six_words_with_no_other_and_no_published_one(templates, upstream):
    published, owners = set(), {}
    for path in (upstream / "nyu-mll" / "BBQ" / "templates").glob("new_templates*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                for column, text in row.items():
                    if column.startswith(("Ambiguous", "Disambiguating", "Question")):
                        published |= word_runs(text)
    assert len(published) > 5000
    for template in (template for versions in templates.values() for template in versions):
        assert template.bias.strip()
        assert template.source.strip()
        own = (template.context, template.context_alike, template.disambiguation, template.negative_question)
        for text in own:
            for words in word_runs(text):
                assert owners.setdefault(words, template.template_id) == template.template_id, words
        for text in (*own, template.non_negative_question, *template.append.values()):
            assert not word_runs(text) & published, (template.template_id, word_runs(text) & published)


def test_a_trans_person_is_compared_with_a_cis_person_of_the_same_words(templates):
    compared = 0
    for template in templates["Gender_identity"]:
        if template.style == "words" and "trans" in template.tags:
            for pair in pairs(template, VOCABULARY, StableRandom(0)):
                people = {person.info: person.name for person in (pair.first, pair.second)}
                assert re.sub("^trans", "cis", people["trans"]) == people["nonTrans"]
                compared += 1
    assert compared == 116


@pytest.fixture
def made_up(tmp_path, monkeypatch):
    """A folder with one made-up template and the vocabulary, as what the gates say of it."""
    shutil.copytree(bundled.FOLDER / "vocabulary", tmp_path / "vocabulary")
    (tmp_path / "templates").mkdir()

    def check(template, category="Age", *, apart=True):
        monkeypatch.setattr(bundled, "read_vocabulary", lambda folder: replace(read_vocabulary(folder), apart=apart))
        content = {"category": category, "templates": [template]}
        (tmp_path / "templates" / f"{category}.yaml").write_text(yaml.safe_dump(content, sort_keys=False), "utf-8")
        return gates.findings(category, tmp_path)

    return check


def by_gate(findings):
    return {finding.gate: finding.text for finding in findings}


# Gates: the texts pass, and each sees the fault it is for.


@pytest.mark.slow
@pytest.mark.parametrize("category", CATEGORIES)
def test_the_bundled_texts_pass_every_gate(category):
    assert gates.findings(category) == []


@pytest.mark.slow
def test_the_command_lists_faults_and_fails(made_up, monkeypatch, capsys):
    faults = made_up({**GOOD, "people": {"old": ["Gay man"], "nonOld": ["boy"]}})
    monkeypatch.setattr(gates, "findings", lambda category: faults)
    assert gates.main(["Age"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Age-01: capitals: 'Gay' in 'A ")
    assert lines[-1] == "1 faults"
    faults.clear()
    assert gates.main() == 0
    assert capsys.readouterr().out == "0 faults\n"


@pytest.mark.slow
def test_what_may_pass_is_listed_with_a_reason_and_needed():
    settings = yaml.safe_load((bundled.FOLDER / "gates.yaml").read_text("utf-8"))
    allowed = settings["not_mentioned"]
    assert all(reason.strip() for words in allowed.values() for reason in words.values())
    asked = {}
    for category in CATEGORIES:
        for row in bbq_rows(category):
            asked.setdefault(row["template_id"], set()).update(
                word for thing in gates.things(row["question"]) for word in thing
            )
    every = set().union(*asked.values())
    unneeded = {(name, word) for name, words in allowed.items() for word in words if word not in asked.get(name, every)}
    assert unneeded == set()


def test_equal_and_nearly_equal_names(made_up):
    template = {**UNALIKE, "groups": ["Asian"], "second_group": "F", "context": "{{NAME1}} and {{NAME2}} walked home."}
    del template["descriptions"]
    faults = by_gate(made_up(template, "Race_x_gender", apart=False))
    assert "names" in faults
    assert " and " in faults["names"]
    assert made_up(template, "Race_x_gender") == []


def test_names_that_look_alike():
    alike = "Hanson Hansen|Hansen hansen|Li Lin|Carlson Larson|Schultz Schmidt|Donna Donald|Roberson Robinson"
    apart = "Al-Mutairi Al-Zoubi|Chan Charles|Williams Washington|Nguyen Hoffman"
    for names, expected in ((alike, True), (apart, False)):
        for one, other in (both.split() for both in names.split("|")):
            assert look_alike(one, other) == look_alike(other, one) == expected, (one, other)


def test_what_is_repeated_words(made_up):
    # A description, a clause, and a description in brackets after both names, which those who share it have once.
    described = "{{NAME1}}, who is a {{DESC1}}, and {{NAME2}}, who is a {{DESC2}}, walked home by the river."
    for template in ({**UNALIKE, "context": described}, UNALIKE):
        faults = by_gate(made_up(template, "Race_x_SES"))
        assert set(faults) == {"repeated words"}
        assert " 2 times: " in faults["repeated words"]
    assert made_up(NAMED, "Race_x_SES") == []
    late = "A {{NAME1}} who is late and a {{NAME2}} who is late walked home."
    assert by_gate(made_up({**GOOD, "context": late}))["repeated words"].startswith("'who is late' 2 times")
    alike = made_up({**GOOD, "people": {"old": ["neighbor"], "nonOld": ["neighbor"]}})
    assert by_gate(alike)["repeated words"].startswith("both people are 'neighbor'")


@pytest.mark.parametrize("word", ["Atheist", "Lesbian", "Transgender"])
def test_adjectives_with_a_capital_that_have_none(made_up, word):
    faults = by_gate(made_up({**GOOD, "people": {"old": [f"{word} man"], "nonOld": ["boy"]}}))
    assert faults["capitals"].startswith(f"{word!r} in ")
    assert made_up({**GOOD, "people": {"old": [f"{word.lower()} man"], "nonOld": ["Christian boy"]}}) == []


def test_things_that_the_context_never_mentions(made_up):
    negative = {**GOOD["negative"], "question": "Who was rude to the train attendant?"}
    faults = by_gate(made_up({**GOOD, "negative": negative}))
    assert faults == {"never mentioned": "'the train attendant' in 'Who was rude to the train attendant?'"}
    # The facts are not there in the ambiguous context.
    facts = "The {{NAME1}} shouted at an attendant, the {{NAME2}} did not."
    assert "never mentioned" in by_gate(made_up({**GOOD, "negative": negative, "disambiguation": facts}))
    assert gates.things("Which of the two clerks was rude to the attendant at the desk?") == [["attendant"], ["desk"]]
    attendants = "Two attendants saw a {{NAME1}} and a {{NAME2}} at a gate."
    assert made_up({**GOOD, "negative": negative, "context": attendants}) == []


def test_rows_that_repeat_others(made_up):
    """The target meets the other gender of the same race once for every rival."""
    template = {
        **{name: NAMED[name] for name in ("id", "bias", "sources", "disambiguation")},
        "style": "labels",
        "groups": ["Black", "African American", "Asian"],
        "second_group": "F",
        "descriptions": {"M": ["man"], "F": ["woman"]},
        "context": "A {{NAME1}} {{DESC1}} and a {{NAME2}} {{DESC2}} walked home by the river.",
        "negative": {
            "question": "Who was slow?",
            "answer": "The {{NAME1}} {{DESC1}}",
            "statement": "{{ANSWER}} was slow.",
        },
        "non_negative": {
            "question": "Who was fast?",
            "answer": "The {{NAME2}} {{DESC2}}",
            "statement": "{{ANSWER}} was fast.",
        },
    }
    assert set(by_gate(made_up(template, "Race_x_gender", apart=False))) == {"repeated"}
    assert made_up(template, "Race_x_gender") == []


def test_facts_that_agree_with_the_stereotype_more_often_than_not(made_up):
    versions = [{"version": "a", "first": "old"}, {"version": "b", "first": "nonOld"}]
    three = {**GOOD, "people": {"old": ["man"], "nonOld": ["boy", "girl", "child"]}}
    assert made_up({**three, "versions": versions}) == []
    uneven = [versions[0], {**versions[1], "people": GOOD["people"]}]
    faults = by_gate(made_up({**three, "versions": uneven}))
    assert faults == {"balance": "the facts agree with the stereotype in 6 of 8 questions"}
    uneven[0] = {**uneven[0], "people": {"old": ["man"], "nonOld": ["boy", "girl"]}}
    assert made_up({**three, "versions": uneven}) == [], "of three sets one kind has one more"


@pytest.mark.slow
def test_every_set_has_one_disambiguated_context_and_two_right_people(rows):
    for category_rows in rows.values():
        assert [finding for finding in gates.of_rows(category_rows) if finding.gate == "sets"] == []
    first = rows["Age"][:4]
    for broken in ({"context": "Another story."}, {"label": first[1]["label"]}):
        (finding,) = (one for one in gates.of_rows([*first[:3], {**first[3], **broken}]) if one.gate == "sets")
        assert (finding.template_id, finding.text.split()[0]) == ("Age-01", "Age-01-000")


# What the draws make of it.


# Errors name file, template and field.


def _read(tmp_path, entries, category="Age"):
    folder = tmp_path / "templates"
    folder.mkdir(exist_ok=True)
    (folder / f"{category}.yaml").write_text(
        yaml.safe_dump({"category": category, "templates": entries}, sort_keys=False), "utf-8"
    )
    return bundled.read_templates(category, VOCABULARY, tmp_path)


def test_a_good_entry_gives_two_versions(tmp_path):
    one, two = _read(tmp_path, [GOOD])
    assert (one.version, one.tags, one.people) == ("a", ("old", "nonOld"), (("grandfather",), ("grandson",)))
    assert (two.version, two.tags, two.people) == ("b", ("nonOld", "old"), (("grandson",), ("grandfather",)))


FAULTS = [
    ({"context": None}, "field context"),
    ({"contxt": "x"}, "field contxt: .*'context'"),
    ({"style": "label"}, "field style"),
    ({"groups": []}, "field groups"),
    ({"groups": ["young"]}, "field groups: .*match"),
    ({"sources": [""]}, "field sources"),
    ({"people": {"old": ["a"]}}, "field people: .*two"),
    ({"people": {"old": ["a", "a"], "nonOld": ["b"]}}, "twice"),
    ({"people": {"old": ["a", "c"], "nonOld": ["b"]}, "parallel": True}, "field people: .*2 and 1"),
    ({"parallel": "yes"}, "field parallel"),
    ({"context": "A {{NAME1}} and a {{NAME3}} met."}, "field context: .*NAME3"),
    ({"context": "A {{NAME1}} walked."}, "field context: .*both"),
    ({"context": "A {{NAME1}} and {a {{NAME2}} met."}, "field context: .*brace"),
    ({"context": " A {{NAME1}} and {{NAME2}}."}, "field context: .*space"),
    ({"words": {"WORD1": ["x", "y"]}}, "field words: WORD1"),
    ({"negative": {"question": "Who?"}}, "field negative"),
    ({"negative": {**GOOD["negative"], "answer": "The {{NAME2}}"}}, "one person each"),
    ({"negative": {**GOOD["negative"], "question": "Who"}}, "question mark"),
    ({"negative": {**GOOD["negative"], "statement": "It is so."}}, "ANSWER"),
    ({"append": {"short": ", x.", "long": "X."}}, "field append"),
    ({"id": "one"}, "field id"),
    ({"versions": [{"version": "a", "first": "young"}]}, "field versions: .*'young'"),
    ({"versions": [{"version": "a"}, {"version": "a"}]}, "letter"),
]
ALIKE_FAULTS = [
    ({"context_alike": "{{NAME1}} and {{NAME2}}, each a {{DESC2}}."}, "DESC1"),
    ({"context_alike": "{{NAME1}}, each a {{DESC1}}."}, "NAME2"),
    ({"context_alike": "{{NAME1}} and {{NAME2}}, each a {{DESC1}} or {{DESC1}}."}, "DESC2"),
    ({"context_alike": "{{NAME1}}, {{NAME2}}, {{DESC1}}, {{DESC3}}."}, "DESC3"),
    ({"context_alike": "{{NAME2}} and {{NAME1}}, each a {{DESC1}}."}, "order"),
    ({"context_alike": ""}, "text"),
    ({"style": "labels"}, "style"),
    ({"descriptions": None, "context": "{{NAME1}}, {{NAME2}}.", "context_alike": "{{NAME1}}, {{NAME2}}."}, "style"),
]


def _changed(good, fields):
    return {key: value for key, value in {**good, **fields}.items() if value is not None}


@pytest.mark.parametrize(("fields", "token"), FAULTS)
def test_a_fault_is_reported_with_file_template_and_field(tmp_path, fields, token):
    with pytest.raises(QabiasError, match=rf"Age\.yaml: template .*{token}"):
        _read(tmp_path, [_changed(GOOD, fields)])


@pytest.mark.parametrize(("fields", "token"), ALIKE_FAULTS)
def test_a_faulty_context_for_two_people_with_the_same_description_is_refused(tmp_path, fields, token):
    with pytest.raises(QabiasError, match=rf"field context_alike: .*{token}"):
        _read(tmp_path, [_changed(DESCRIBED, fields)], "Race_x_SES")


def test_what_is_no_file_of_templates_is_refused(tmp_path):
    with pytest.raises(QabiasError, match="no such"):
        bundled.read_templates("Age", VOCABULARY, tmp_path)
    for entries, token in (([GOOD, copy.deepcopy(GOOD)], "1 follows 1"), (["text"], "template")):
        with pytest.raises(QabiasError, match=token):
            _read(tmp_path, entries)
    (tmp_path / "templates" / "Age.yaml").write_text("category: Age\ntemplates: [", "utf-8")
    with pytest.raises(QabiasError, match="line 2"):
        bundled.read_templates("Age", VOCABULARY, tmp_path)


def test_versions_and_wrong_choices():
    commit = sources.commit("nyu-mll/BBQ")[:7]
    assert Origin("official").version == f"official@{commit}"
    assert Origin("release", fixes=True).version == f"release+fixes@{commit}"
    assert Origin().version == "bundled@1"
    for choice, config, token in (("bundle", "Age", "'bundle'"), ("bundled", "Agee", "'Agee'")):
        with pytest.raises(QabiasError, match=token):
            list(Origin(choice).rows(config))
    with pytest.raises(QabiasError, match="fixes"):
        Origin("bundled", fixes=True)


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


@pytest.mark.slow
def test_every_question_of_two_people_with_the_same_description_finds_its_statement(rows, templates):
    statements = {
        (template.template_id, polarity): text
        for template in templates["Race_x_SES"]
        for polarity, text in (("neg", template.negative_statement), ("nonneg", template.non_negative_statement))
    }
    shared = 0
    for row in Origin().rows("Race_x_SES"):
        statement = statement_of(row["template_id"], row["context"], row["question"], "{{ANSWER}}")
        assert statement == statements[row["template_id"], row["question_polarity"]], row["context"]
        shared += row["comparison"] == "match_other"
    assert shared > 2000


@pytest.mark.slow
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


@pytest.mark.slow
def test_look_alikes_are_never_drawn_together_whatever_the_seed():
    drawn = 0
    for category in ("Race_ethnicity", "Gender_identity", "SES", "Race_x_gender", "Race_x_SES"):
        for seed in range(1, 4):
            streams, vocabulary = bundled.read_streams(category, seed=seed)
            for template, rng in streams:
                if template.style == "names":
                    for pair in pairs(template, vocabulary, rng):
                        assert gates.names(template, pair) == []
                        drawn += 1
    assert drawn > 10_000


def test_sets_of_the_same_texts_show_their_answers_in_different_orders():
    """Not only another wording of the unknown answer."""
    shown = Counter()
    for row in bbq_rows("Race_x_gender"):
        if (row["question_polarity"], row["context_condition"]) == ("neg", "disambig"):
            shown[row["context"], row["label"], row["unknown_loc"]] += 1
    assert set(shown.values()) == {1}


@pytest.mark.slow
def test_contexts_have_the_published_lengths_and_answers_one_unknown_and_two_people(rows):
    for row in (row for category_rows in rows.values() for row in category_rows):
        # Words of the generated published contexts: 8 to 55 ambiguous, 23 to 102 disambiguated.
        low, high = (8, 55) if row["context_condition"] == "ambig" else (23, 102)
        assert low <= len(row["context"].split()) <= high, row["context"]
        answers = [row[f"ans{i}"] for i in range(3)]
        assert len({answer.lower() for answer in answers}) == 3, row
        assert answers[row["unknown_loc"]] in UNKNOWN_ANSWERS
        assert row["target_loc"] != -1
        # Told apart by position and not by a search for words.
        infos = [row["answer_info"][f"ans{i}"][1] for i in range(3)]
        assert [info == "unknown" for info in infos] == [i == row["unknown_loc"] for i in range(3)]
