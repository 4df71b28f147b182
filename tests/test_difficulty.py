"""Difficulty of BBQ's two forms: what is counted, and that the committed figures are those of the texts."""

from dataclasses import replace

import pytest

from bbq_dataset import bundled, difficulty, official
from bbq_dataset.builder import CATEGORIES, Origin
from bbq_dataset.difficulty import Counts, card_section, count, counts_text, read_counts
from bbq_dataset.vocabulary import read_vocabulary
from docs import difficulty as script
from qabias.errors import QabiasError
from qabias.models.loading import find_smollm2

from .built import bbq_rows


def no_tokens(text):
    return 0


@pytest.fixture(scope="module")
def committed():
    return read_counts()


@pytest.fixture(scope="module")
def age():
    return bundled.read_templates("Age", read_vocabulary(bundled.FOLDER / "vocabulary"))


# What is counted.


def row(template, polarity, condition, context):
    return {
        "category": "Age",
        "example_id": 0,
        "question_index": str(template.question_index),
        "additional_metadata": {"version": template.version},
        "question_polarity": polarity,
        "context_condition": condition,
        "context": context,
    }


def test_the_counts_of_a_set_by_hand(age):
    template = replace(age[0], context="{{NAME1}} met {{NAME2}}.", negative_answer="{{NAME1}}")
    ambiguous = "Ann met Bob."
    facts = 'Ann met Bob. "No," Bob said - at 3.5 p.m. yesterday! Ann left'
    rows = [
        row(template, polarity, condition, context)
        for polarity in ("neg", "nonneg")
        for condition, context in (("ambig", ambiguous), ("disambig", facts))
    ]
    found = count(rows, [template], n_tokens=len)
    # Ann met Bob = 3 words of 9 letters; each context occurs under both questions.
    assert found["ambig"] == Counts(2, words=6, sentences=2, letters=18, tokens=2 * len(ambiguous), negative=1)
    # Words: 3 + No Bob said at 3.5 p.m. yesterday + Ann left; a dash is none. The stop of "p.m." ends a sentence too.
    # Letters: 9 + 2 + 3 + 4 + 2 + 2 + 2 + 9 + 3 + 4.
    assert found["disambig"] == Counts(
        2, words=24, sentences=8, letters=80, tokens=2 * len(facts), negative=1, negative_first=1
    )
    second = count(rows, [replace(template, negative_answer="{{NAME2}}")], no_tokens)
    assert (second["disambig"].negative, second["disambig"].negative_first) == (1, 0)


def test_means_and_the_readability_index_by_hand():
    both = Counts(2, 40, 3, 170, 50, 1, 1) + Counts(2, 60, 2, 280, 70, 1, 0)
    assert both == Counts(4, 100, 5, 450, 120, 2, 1)
    assert (both.words_per_context, both.tokens_per_context) == (25, 30)
    assert (both.words_per_sentence, both.letters_per_word, both.share_first) == (20, 4.5, 0.5)
    # 4.71 * 4.5 + 0.5 * 20 - 21.43
    assert both.grade == pytest.approx(9.765)


def test_a_plain_story_is_for_lower_grades_than_a_statute(age):
    def grade(text):
        return count([row(age[0], "neg", "ambig", text)], age, no_tokens)["ambig"].grade

    assert grade("The dog ran. It saw a cat. They sat.") < 2
    assert grade("Notwithstanding contradictory provisions, beneficiaries are entitled to reimbursement.") > 20


def test_an_example_of_no_template_and_rows_that_disagree_are_errors(age):
    example = row(age[0], "neg", "disambig", "x.")
    with pytest.raises(QabiasError, match=r"Age 0: no template 1 version 'a' among those given"):
        count([example], age[2:], no_tokens)
    other = {"{{NAME1}}": "{{NAME2}}", "{{NAME2}}": "{{NAME1}}"}
    [slot] = [slot for slot in other if slot in age[0].negative_answer]
    exchanged = replace(age[0], negative_answer=age[0].negative_answer.replace(slot, other[slot]))
    with pytest.raises(QabiasError, match=r"Age\.yaml template 1: another row of its version"):
        count([example], [age[0], exchanged], no_tokens)


# The committed figures.


def test_the_figures_are_of_the_bundled_form_as_it_is_now_and_of_the_published_one(committed):
    again = "python -m docs.difficulty --write"
    assert list(committed) == [origin.version for origin in script.forms(None)], again
    assert difficulty.COUNTS_FILE.read_text("utf-8") == counts_text(committed), again


def without_tokens(figures):
    return {
        name: {key: replace(counts, tokens=0) for key, counts in of_one.items()} for name, of_one in figures.items()
    }


def test_the_figures_of_the_bundled_form_are_counted_from_its_texts(committed):
    vocabulary = read_vocabulary(bundled.FOLDER / "vocabulary")
    found = {
        category: count(bbq_rows(category), bundled.read_templates(category, vocabulary), no_tokens)
        for category in CATEGORIES
    }
    assert found == without_tokens(committed[Origin().version]), "python -m docs.difficulty --write"


def test_the_figures_of_the_published_form_are_counted_from_the_authors_templates(committed, upstream):
    found = {
        category: count(
            bbq_rows(category, "official", upstream), official.read_templates(category, upstream), no_tokens
        )
        for category in CATEGORIES
    }
    assert found == without_tokens(committed[Origin("official").version])


def test_the_released_examples_have_the_figures_of_the_generated_ones(committed, upstream):
    """Other draws of people and words from the same templates, for the categories whose examples are at hand."""
    available = [path.stem for path in (upstream / "nyu-mll" / "BBQ" / "data").glob("*.jsonl")]
    assert available
    for category in available:
        templates = official.read_templates(category, upstream)
        released = count(bbq_rows(category, "release", upstream), templates, no_tokens)
        for condition, generated in committed[Origin("official").version][category].items():
            assert released[condition].contexts == generated.contexts
            assert released[condition].share_first == generated.share_first or condition == "ambig"
            assert released[condition].words_per_context == pytest.approx(generated.words_per_context, rel=0.01)
            assert released[condition].grade == pytest.approx(generated.grade, abs=0.2)


@pytest.mark.parametrize("source", ["bundled", "official"])
def test_the_right_person_is_first_where_a_search_for_the_names_finds_them_first(committed, source, upstream):
    """Proper names can be searched for in the texts; labels contain one another."""
    rows = bbq_rows("Race_ethnicity", source, None if source == "bundled" else upstream)
    templates = (
        official.read_templates("Race_ethnicity", upstream)
        if source == "official"
        else bundled.read_templates("Race_ethnicity", read_vocabulary(bundled.FOLDER / "vocabulary"))
    )
    named = [example for example in rows if example["label_type"] == "name"]
    asked = [e for e in named if (e["question_polarity"], e["context_condition"]) == ("neg", "disambig")]
    n_first = 0
    for example in asked:
        right, wrong = (
            example["answer_info"][f"ans{place}"][0]
            for place in (example["label"], 3 - example["label"] - example["unknown_loc"])
        )
        n_first += example["context"].index(right) < example["context"].index(wrong)
    found = count(named, templates, no_tokens)["disambig"]
    assert (found.negative, found.negative_first) == (len(asked), n_first)
    assert 0 < n_first < len(asked)


@pytest.mark.slow
def test_the_tokens_are_those_of_smollm2(committed, upstream):
    try:
        find_smollm2()
    except QabiasError as error:
        pytest.skip(str(error))
    n_tokens = script.tokenizer()
    for origin in script.forms(upstream):
        assert script.counted(origin, n_tokens) == committed[origin.version]


# The section of the card.


def test_the_section_is_in_the_cards_of_the_two_forms_alone(committed):
    ours, theirs = committed
    text = card_section(ours, committed)
    assert text.startswith(f"### Difficulty of the two forms\n\nEach cell has `{ours}` / `{theirs}`")
    assert f"Each cell has `{theirs}` / `{ours}`" in card_section(theirs, committed)
    for version in (Origin("release").version, Origin("official", fixes=True).version):
        assert card_section(version, committed) == ""


def test_a_cell_has_the_figures_of_both_forms(committed):
    text = card_section(Origin().version, committed)
    one, two = (form["SES"]["disambig"] for form in committed.values())
    [line] = [line for line in text.splitlines() if line.startswith("| SES |")]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells[2] == f"{one.words / one.contexts:.1f} / {two.words / two.contexts:.1f}"
    assert (
        cells[4] == f"{100 * one.negative_first / one.negative:.0f} % / {100 * two.negative_first / two.negative:.0f} %"
    )
    n_words, n_contexts = (
        sum(getattr(of_one["ambig"], name) for of_one in committed[Origin().version].values())
        for name in ("words", "contexts")
    )
    assert f"| words per context | {n_words / n_contexts:.1f} / " in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("words:", "wrds:", 1), "not the counts of every category"),
        (lambda text: text.replace("  Religion:", "  Religon:", 1), "not the counts of every category: 'Religion'"),
        (lambda text: text.partition("official@")[0], "counts of bundled@.* instead of two forms"),
        (lambda text: "[]", "not the counts of every category"),
    ],
)
def test_a_broken_file_is_told_with_what_writes_it(tmp_path, committed, change, message):
    path = tmp_path / "difficulty.yaml"
    path.write_text(change(counts_text(committed)), "utf-8")
    with pytest.raises(QabiasError, match=f"{message}.*python -m docs.difficulty --write"):
        read_counts(path)
