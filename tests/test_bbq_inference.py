"""BBQ as inference: complete sets, labels, exchanged names, and the authors' templates by an independent reading."""

import csv
import itertools
import json
import re
import shutil
from collections import Counter, defaultdict

import datasets
import jinja2
import pytest
import yaml

from qabias.building.templating import repair_articles
from qabias.errors import QabiasError
from qabias.share.bbq_dataset import bundled, bundled_inference
from qabias.share.bbq_dataset.fixes import FIXES
from qabias.share.bbq_dataset.folder import write_folder
from qabias.share.bbq_dataset.origin import CATEGORIES, NLI_CONFIGS, Origin
from qabias.share.bbq_dataset.vocabulary import read_vocabulary

from .built import bbq_rows, word_runs

STUDY = "Gender_identity_nli_context"
PUBLISHED = {"Gender_identity_nli": 13, "Race_ethnicity_nli": 47, "Religion_nli": 87, STUDY: 13}
# Right labels in a context that agrees with the stereotype, by whom the hypothesis is about and polarity.
PRO = {("target", "neg"): 2, ("target", "nonneg"): 0, ("nontarget", "neg"): 0, ("nontarget", "nonneg"): 2}
ANTI = {("target", "neg"): 0, ("target", "nonneg"): 2, ("nontarget", "neg"): 2, ("nontarget", "nonneg"): 0}


@pytest.fixture(scope="module")
def rows():
    return {config: bbq_rows(config) for config in NLI_CONFIGS}


@pytest.fixture(scope="module")
def questions():
    return {category: bbq_rows(category) for category in CATEGORIES}


@pytest.fixture(scope="module")
def templates():
    vocabulary = read_vocabulary(bundled.FOLDER / "vocabulary")
    return {category: bundled.read_templates(category, vocabulary) for category in CATEGORIES}


@pytest.fixture(scope="module")
def published(upstream):
    return {config: bbq_rows(config, "official", upstream) for config in PUBLISHED}


@pytest.fixture(scope="module")
def fixed(upstream):
    return {config: bbq_rows(config, "official", upstream, fixes=True) for config in PUBLISHED}


@pytest.fixture(params=["rows", "published", "fixed"])
def every_source(request):
    return request.getfixturevalue(request.param)


def _by_set(rows):
    sets = defaultdict(list)
    for row in rows:
        sets[row["set_id"]].append(row)
    return sets


def _premises(rows, **wanted):
    return [row["premise"] for row in rows if all(row[key] == value for key, value in wanted.items())]


def _about(row):
    return row["statement_about"], row["question_polarity"]


def _write_templates(folder, category, content):
    """A dataset folder with the bundled vocabulary and the templates of one category."""
    shutil.copytree(bundled.FOLDER / "vocabulary", folder / "vocabulary")
    (folder / "templates").mkdir()
    (folder / "templates" / f"{category}.yaml").write_text(yaml.safe_dump(content, sort_keys=False), "utf-8")


# Complete sets and labels, whatever the source.


@pytest.mark.slow
def test_complete_sets_have_four_rows_or_eight(every_source):
    for config, config_rows in every_source.items():
        keys = ("set_id", "name_order", "context_length", "context_condition")
        sizes = Counter(tuple(row[key] for key in keys) for row in config_rows)
        assert {(key[3], size) for key, size in sizes.items()} == (
            {("ambig", 4)} if config == STUDY else {("ambig", 4), ("disambig", 8)}
        )
        lengths = {"standard", "short", "long"} if config == STUDY else {"standard"}
        per_set = len(lengths) if config == STUDY else 2
        assert {row["context_length"] for row in config_rows} == lengths
        assert {row["name_order"] for row in config_rows} == {"original", "swapped"}
        assert len(sizes) == 2 * per_set * len(_by_set(config_rows))
        assert [row["example_id"] for row in config_rows] == list(range(len(config_rows)))
        assert {row["category"] for row in config_rows} == {config.split("_nli")[0]}


@pytest.mark.slow
def test_labels(every_source):
    for row in itertools.chain(*every_source.values()):
        right = {"": dict.fromkeys(PRO, 1), "pro": PRO, "anti": ANTI}[row["context_stance"]]
        assert row["label"] == right[_about(row)], row
        assert row["bias_label"] == PRO[_about(row)], row
        assert (row["context_stance"] == "") == (row["context_condition"] == "ambig")


@pytest.mark.slow
def test_the_order_of_the_names_concerns_the_ambiguous_part_alone(every_source):
    for config in set(every_source) - {STUDY}:
        for set_rows in _by_set(every_source[config]).values():
            facts = set()
            for order in ("original", "swapped"):
                (context,) = set(_premises(set_rows, name_order=order, context_stance=""))
                for stance in ("pro", "anti"):
                    (premise,) = set(_premises(set_rows, name_order=order, context_stance=stance))
                    assert premise.startswith(f"{context} ")
                    facts.add((stance, premise.removeprefix(f"{context} ")))
            assert len(facts) == 2


# Bundled: the same people and words as the BBQ examples.


def _labelled(config_rows):
    """Hypothesis and label by premise and polarity."""
    found = defaultdict(set)
    for row in config_rows:
        found[row["premise"], row["question_polarity"]].add((row["hypothesis"].lower(), row["label"]))
    return found


def _agrees_with_questions(config_rows, question_rows):
    stances = defaultdict(set)
    for row in config_rows:
        stances[row["premise"]].add(row["context_stance"])
    labelled = _labelled(config_rows)
    for row in question_rows:
        answers = [row[f"ans{i}"].lower() for i in range(3)]
        found = labelled[row["context"], row["question_polarity"]]
        if row["context_condition"] == "ambig":
            assert stances[row["context"]] == {""}, row
            assert {label for _, label in found} == {1}
            continue
        # Facts that make the biased answer right are those that agree with the stereotype.
        assert stances[row["context"]] == {"pro" if row["label"] == row["biased_loc"] else "anti"}, row
        wrong = 3 - row["label"] - row["unknown_loc"]
        entailed, contradicted = ([text for text, label in found if label == right] for right in (2, 0))
        assert len(entailed) == len(contradicted) == 1
        assert answers[row["label"]] in entailed[0]
        assert answers[wrong] in contradicted[0]


@pytest.mark.slow
@pytest.mark.parametrize("category", CATEGORIES)
def test_every_question_is_found_again_with_the_same_answer(rows, questions, category):
    _agrees_with_questions(rows[f"{category}_nli"], questions[category])


@pytest.mark.slow
def test_another_seed_draws_the_people_of_the_questions_with_that_seed(rows):
    origin = Origin(seed=1)
    drawn = list(origin.rows("Nationality_nli"))
    _agrees_with_questions(drawn, origin.rows("Nationality"))
    assert drawn != rows["Nationality_nli"]


@pytest.mark.slow
def test_a_set_does_not_depend_on_the_other_templates(rows, tmp_path):
    content = yaml.safe_load((bundled.FOLDER / "templates" / "Age.yaml").read_text("utf-8"))
    removed = content["templates"].pop(0)
    _write_templates(tmp_path, "Age", content)
    left = [row for row in rows["Age_nli"] if row["template_id"] != f"Age-{removed['id']:02d}"]
    alone = bundled_inference.generate("Age_nli", seed=0, folder=tmp_path)
    assert [{**row, "example_id": 0} for row in alone] == [{**row, "example_id": 0} for row in left]


# Language.


@pytest.mark.slow
def test_grammar_of_every_text(rows, fixed):
    every_row = [*itertools.chain(*rows.values()), *itertools.chain(*fixed.values())]
    for field, mark in (("premise", "."), ("hypothesis", "."), ("question", "?")):
        for text in {row[field] for row in every_row}:
            assert not re.search(r"[{}]|  |[,;]\s*[.?!]|[.?!]{2}|[.!?] [a-z]", text), text
            assert text == text.strip()
            assert text[0].isupper(), text
            assert text.endswith(mark)
            assert repair_articles(text) == text
    for hypothesis in {row["hypothesis"] for row in itertools.chain(*rows.values())}:
        assert not re.search(r"\b(The|A|An)\b", hypothesis[1:]), hypothesis


def test_no_bundled_text_shares_six_words_with_the_published_templates(templates, upstream):
    published = set()
    for config in PUBLISHED:
        for row in _csv(upstream, config.split("_nli")[0]):
            for column, text in row.items():
                if column.startswith(("Ambiguous", "Disambiguating", "Context", "Statement", "Question")):
                    published |= word_runs(text)
    assert len(published) > 3000
    for template in itertools.chain(*templates.values()):
        texts = (template.context, template.context_alike, template.disambiguation, *template.append.values())
        for text in (*texts, template.negative_statement, template.non_negative_statement):
            assert not word_runs(text) & published, (template.template_id, text)


# The context-length study (Akyurek et al. 2022, Table 7).


@pytest.mark.slow
def test_longer_contexts_add_roles_and_facts_but_not_who_is_who(rows, templates):
    standard = {
        (row["set_id"], row["name_order"]): row["premise"]
        for row in rows["Gender_identity_nli"]
        if not row["context_stance"]
    }
    study = _by_set(rows[STUDY])
    written = {template.template_id for template in templates["Gender_identity"] if template.append}
    assert len(written) >= 4
    assert {row["template_id"] for row in rows[STUDY]} == written
    for set_id, set_rows in study.items():
        added = set()
        for order in ("original", "swapped"):
            premises = [
                set(_premises(set_rows, name_order=order, context_length=length))
                for length in ("standard", "short", "long")
            ]
            (plain,), (short,), (long,) = premises
            assert plain == standard[set_id, order]
            assert short.startswith(f"{plain[:-1]}, ")
            assert long.startswith(f"{short} ")
            added.add(long.removeprefix(plain[:-1]))
        assert len(added) == 1
        assert not re.search(r"\b(wo)?man\b|\bs?he\b|\bhis\b|\bhers?\b|\bhim\b", *added)


@pytest.mark.slow
def test_published_contexts_are_lengthened_as_in_table_7(published, upstream):
    expected = []
    for row in _csv(upstream, "Gender_identity"):
        for one, two in (("Man", "Woman"), ("Woman", "Man")):
            standard = row["Ambiguous_Context"].replace("{{NAME1}}", one).replace("{{NAME2}}", two)
            assert standard[-1] == "."
            short = standard[:-1] + row["Context_append_short"]
            for text in (standard, short, short + " " + row["Context_append_long"]):
                expected.append(_with_first_words(text, row))
    assert [row["premise"] for row in published[STUDY]] == [text for text in expected for _ in PRO]


# Official: the authors' templates.


def _csv(upstream, category):
    path = upstream / "feyzaakyurek" / "bbnli" / "data" / "bbq" / "templates" / f"new_templates - {category}.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _with_first_words(text, row):
    for slot, word in re.findall(r"(WORD\d)\}?\}?: *\[([^,\]]*)", row["Lexical_diversity"]):
        text = text.replace("{{" + slot + "}}", word.strip())
    return text


@pytest.mark.slow
@pytest.mark.parametrize("category", ["Religion", "Race_ethnicity"])
def test_every_row_of_the_published_templates_read_independently(published, upstream, category):
    expected = []
    for number, row in enumerate(_csv(upstream, category), start=1):
        pairs = [
            (n, t) for t in json.loads(row["Known_stereotyped_groups"]) for n in json.loads(row["Non-target_group"])
        ]
        for other, target in pairs:

            def put(column, one=other, two=target, row=row):
                return jinja2.Template(_with_first_words(row[column], row)).render(NAME1=one, NAME2=two)

            for order, one, two in (("original", other, target), ("swapped", target, other)):
                ambiguous = put("Ambiguous_Context", one, two)
                contexts = (
                    ("", ambiguous, (1, 1, 1, 1)),
                    ("pro", ambiguous + " " + put("Disambiguating_Context_stereotype"), (2, 0, 0, 2)),
                    ("anti", ambiguous + " " + put("Disambiguating_Context_anti_stereotype"), (0, 2, 2, 0)),
                )
                columns = ("negative", "non_negative", "negative_m", "non_negative_m")
                asked = ("Question_negative_stereotype", "Question_non_negative") * 2
                for stance, premise, labels in contexts:
                    for column, question, label in zip(columns, asked, labels, strict=True):
                        statement = put(f"Statement_{column}")
                        expected.append(
                            (
                                f"{category}-{number:02d}",
                                order,
                                stance,
                                premise,
                                statement,
                                put(question),
                                label,
                                target,
                                other,
                            )
                        )
    keys = ("template_id", "name_order", "context_stance", "premise", "hypothesis", "question", "label")
    assert [
        tuple(row[key] for key in (*keys, "target", "nontarget")) for row in published[f"{category}_nli"]
    ] == expected


@pytest.mark.slow
def test_defects_are_kept_unless_fixed(published, fixed):
    defects = {
        "stray brace": r"\}",
        "Man or Woman inside a sentence": r"\b(?:a|an|one|the|or|and) (?:Man|Woman)\b",
        "statement as question": r"\A(?!Wh)[^?]*\?\Z",
        "exclamation": r"!\Z",
        "space at the end": r"\s\Z",
        "article": r"\ba Atheist\b",
    }
    for name, pattern in defects.items():
        kept, left = (
            [row for row in itertools.chain(*source.values()) for text in _texts(row) if re.search(pattern, text)]
            for source in (published, fixed)
        )
        assert kept, name
        assert not left, name


def _texts(row):
    return [row["premise"], row["hypothesis"], row["question"]]


@pytest.mark.slow
def test_fixes_change_no_other_letter(published, fixed):
    def letters(text):
        text = re.sub(r"\ban\b", "a", text.lower()).replace("latina", "latino")
        return re.sub(r"[^a-z]", "", text)

    pairs = zip(itertools.chain(*published.values()), itertools.chain(*fixed.values()), strict=True)
    changed = 0
    for raw, corrected in pairs:
        for one, two in zip(_texts(raw), _texts(corrected), strict=True):
            assert letters(one) == letters(two), (one, two)
            changed += one != two
        assert all(
            raw[key] == corrected[key]
            for key in set(raw) - {"premise", "hypothesis", "question", "target", "nontarget"}
        )
    assert changed > 500


@pytest.mark.parametrize(
    ("origin", "config", "message"),
    [
        (Origin("official"), "Age_nli", r"'Age_nli'(.|\n)*Gender_identity_nli, Race_ethnicity_nli, Religion_nli"),
        (Origin("release"), "Religion_nli", "released no examples of BBQ as inference"),
        (Origin(), "Agee_nli", "'Agee_nli'.*Age_nli"),
    ],
)
def test_configurations_that_do_not_exist(origin, config, message):
    with pytest.raises(QabiasError, match=message):
        list(origin.rows(config))


def test_the_versions_name_both_repositories():
    assert Origin().inference_version == Origin().version == "bundled@1"
    official = Origin("official", fixes=True)
    assert re.fullmatch(r"official\+fixes@[0-9a-f]{7}", official.inference_version)
    assert official.inference_version != official.version


# Template format.


@pytest.mark.parametrize(
    ("append", "message"),
    [
        ("more", "field append: must hold exactly short, long"),
        ({"short": ", x."}, "field append: must hold exactly short, long"),
        ({"short": "and x.", "long": "Y."}, "short must begin with a comma"),
        ({"short": ", x.", "long": "y."}, "long with a capital letter"),
        ({"short": ", x", "long": "Y."}, "must end with a full stop"),
        ({"short": ", x.", "long": "The {{NAME1}} left."}, "long must not name a person: slot NAME1"),
    ],
)
def test_a_wrong_append_is_reported(tmp_path, append, message):
    content = yaml.safe_load((bundled.FOLDER / "templates" / "Gender_identity.yaml").read_text("utf-8"))
    content["templates"] = [{**content["templates"][0], "append": append}]
    _write_templates(tmp_path, "Gender_identity", content)
    vocabulary = read_vocabulary(bundled.FOLDER / "vocabulary")
    with pytest.raises(QabiasError, match=f"Gender_identity.yaml: template 1: .*{message}"):
        bundled.read_templates("Gender_identity", vocabulary, tmp_path)


def test_an_answer_inside_a_sentence_begins_in_lower_case(tmp_path):
    content = yaml.safe_load((bundled.FOLDER / "templates" / "Age.yaml").read_text("utf-8"))
    entry = {key: value for key, value in content["templates"][0].items() if key != "versions"}
    entry["people"] = {"old": ["nurse"], "nonOld": ["cook"]}
    entry["negative"] = {**entry["negative"], "statement": "The person who left was {{ANSWER}}."}
    _write_templates(tmp_path, "Age", {"category": "Age", "templates": [entry]})
    made = bundled_inference.generate("Age_nli", seed=0, folder=tmp_path)
    hypotheses = {row["hypothesis"] for row in made if row["question_polarity"] == "neg"}
    assert hypotheses == {"The person who left was the nurse.", "The person who left was the cook."}


# Folder and builder.


@pytest.mark.slow
def test_a_folder_of_published_inference_alone(upstream, tmp_path, published):
    origin = Origin("official")
    write_folder(tmp_path / "folder", origin, tuple(PUBLISHED))
    loaded = datasets.load_dataset(str(tmp_path / "folder"), split="test", cache_dir=tmp_path)
    assert loaded.to_list() == [row for config in PUBLISHED if config != STUDY for row in published[config]]
    card = (tmp_path / "folder" / "README.md").read_text("utf-8")
    assert all(fix in card for fix in FIXES)
    assert f"official@{origin.inference_version[-7:]} of feyzaakyurek/bbnli" in card
    assert "$" not in card.split("## As inference")[1].split("## Dataset Creation")[0]


@pytest.mark.slow
def test_swapped_contexts_are_those_of_the_exchanged_examples(rows, questions, templates):
    for category in CATEGORIES:
        contexts = {row["context"] for row in questions[category]}
        # Where the exchanged pair is a set of its own, its words are drawn anew.
        drawn_anew = {
            template.template_id
            for template in templates[category]
            if template.style == "words" or (category == "Gender_identity" and template.words)
        }
        swapped = {
            row["premise"]
            for row in rows[f"{category}_nli"]
            if row["name_order"] == "swapped" and not row["context_stance"] and row["template_id"] not in drawn_anew
        }
        assert swapped <= contexts
