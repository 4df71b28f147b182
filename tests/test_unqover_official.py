"""The `official` source of UnQover against the published figures and an independent reading of the word lists."""

import itertools
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from qabias.errors import QabiasError
from qabias.share.unqover_dataset.builder import UnQover
from qabias.share.unqover_dataset.columns import batches
from qabias.share.unqover_dataset.fixes import FIXES
from qabias.share.unqover_dataset.origin import CONFIGS, SUBJECTS
from qabias.share.unqover_dataset.origin import Origin as AnyOrigin

from .built import UNQOVER_TABLE_1, unqover_rows, unqover_table
from .conftest import ROOT

MLM_COUNTS = {
    "bert": {"gender": 700_000, "nationality": 507_870, "ethnicity": 31_500, "religion": 38_500},
    "roberta": {"gender": 286_720, "nationality": 385_776, "ethnicity": 31_500, "religion": 31_500},
}
ALL_TEMPLATES_MLM = {"gender": 1_372_000, "nationality": 2346 * 342, "ethnicity": 73_500, "religion": 38_500}


@pytest.fixture(scope="module")
def make(upstream):
    def origin(**fields):
        return AnyOrigin("official", upstream_dir=upstream, **fields)

    return origin


@pytest.fixture(scope="module")
def tables(upstream):
    return {config: unqover_table(config, "official", upstream) for config in CONFIGS}


def test_counts_are_those_of_table_1(tables):
    assert {config: tables[config].num_rows for config in UNQOVER_TABLE_1} == UNQOVER_TABLE_1
    # The paper rounds: 1.4m, 1.2m, 74k, 39k.
    assert [round(n, -5) for n in UNQOVER_TABLE_1.values()][:2] == [1_400_000, 1_200_000]
    for table in tables.values():
        assert table["example_id"].to_numpy().tolist() == list(range(table.num_rows))


def test_counts_of_the_masked_sets(make, tables):
    assert {name: tables[f"{name}_mlm"].num_rows for name in UNQOVER_TABLE_1} == MLM_COUNTS["bert"]
    roberta, everyone = make(subjects="roberta"), make(subjects="all")
    assert {name: roberta.table(f"{name}_mlm").num_rows for name in UNQOVER_TABLE_1} == MLM_COUNTS["roberta"]
    assert {name: everyone.table(f"{name}_mlm").num_rows for name in UNQOVER_TABLE_1} == ALL_TEMPLATES_MLM
    assert roberta.table("religion").equals(tables["religion"]), "subjects select in the masked sets only"


# An independent reading of the word lists: example by example, by plain replacement, without a line of the builder.


class Lists:
    """The word lists of one set, read with regular expressions over the whole file."""

    def __init__(self, upstream, name, *, masked=False, subset=""):
        folder = upstream / "allenai" / "unqover" / "word_lists"
        published = {"nationality": "country"}.get(name, name)

        def read(path):
            return "\n".join(
                line for line in (folder / path).read_text("utf-8").split("\n") if not line.startswith("#")
            )

        people = [
            re.findall(r"^\[subj(:dem)?\] +(?:(\w+) \| )?(.+?) *$", read(f"nouns/subjects/{part}{subset}"), re.M)
            for part in (("female", "male") if name == "gender" else (published,))
        ]
        if name == "gender":
            self.pairs = [(f, m) for f in people[0] for m in people[1]]
            self.pairs = [((f[2], "", f[1]), (m[2], "", m[1])) for f, m in self.pairs]
        else:
            names = [person[2] for person in people[0] if not person[0]]
            demonyms = [person[2] for person in people[0] if person[0]] or [""] * len(names)
            assert len(names) == len(demonyms)
            triples = [(a, b, "None") for a, b in zip(names, demonyms, strict=True)]
            self.pairs = list(itertools.combinations(triples, 2))

        kind = "occupation_rev1" if name == "gender" else f"biased_{published}"
        self.blocks = {}
        pattern = r"^(\[[lp]_act(?:-single)?(?::neg)?\])\s(?:\s*(\w+)\s*\|)?\s*(.+?)\s*$"
        for head, label, text in re.findall(pattern, read(f"activities/{kind}"), re.M):
            self.blocks.setdefault(head, []).append((label or "None", text))

        slots = read(f"slots/{published}_noact{'_lm' if masked else ''}").split("\n")
        self.templates = [line.strip().split("\t") for line in slots if line.strip()]

    def keys(self):
        """Pair, template number, head and number of the attribute of every example, in the published order."""
        for pair in self.pairs:
            for number, (_, question, _) in enumerate(self.templates):
                for head, entries in self.blocks.items():
                    if head in question and ":neg" not in head:
                        for row in range(len(entries)):
                            yield pair, number, head, row

    def example(self, config, position, key):
        (one, two), number, head, row = key
        negative = head.replace("]", ":neg]")
        line = "\t".join(self.templates[number])
        line = line.replace(head, self.blocks[head][row][1]).replace(negative, self.blocks[negative][row][1])

        def put(first, second):
            text = line
            for slot, person in (("subj1", first), ("subj2", second)):
                text = text.replace(f"[{slot}]", person[0]).replace(f"[{slot}:dem]", person[1])
            tokens = text.split(" ")
            for i in range(len(tokens) - 1):
                if tokens[i] in ("a", "A") and tokens[i + 1][0].lower() in "aeiou":
                    tokens[i] += "n"
            return " ".join(tokens).replace("[mask]", "[MASK]").split("\t")

        forward, backward = put(one, two), put(two, one)
        assert forward[1:] == backward[1:]
        form = 1 if "[subj1:dem]" in line else 0
        texts = ("masked", "masked_negated") if config.endswith("_mlm") else ("question", "negated_question")
        return {
            "example_id": position,
            "template_id": f"{config}-{number}",
            "subject1": one[0],
            "subject2": two[0],
            "cluster1": one[2],
            "cluster2": two[2],
            "attribute": self.blocks[head.replace("-single", "")][row][1],
            "attribute_class": self.blocks[negative][row][0],
            "context_12": forward[0],
            "context_21": backward[0],
            texts[0]: forward[1],
            texts[1]: forward[2],
            "answer1": one[form],
            "answer2": two[form],
        }


@pytest.mark.parametrize("config", ["religion", "ethnicity", "religion_mlm", "ethnicity_mlm"])
def test_every_example_equals_the_independent_reading(config, upstream, tables):
    name, masked = config.removesuffix("_mlm"), config.endswith("_mlm")
    lists = Lists(upstream, name, masked=masked, subset="_bert" if masked else "")
    expected = [lists.example(config, *entry) for entry in enumerate(lists.keys())]
    assert unqover_rows(tables[config]) == expected


@pytest.mark.parametrize("config", ["gender", "nationality", "gender_mlm", "nationality_mlm"])
def test_a_sample_equals_the_independent_reading(config, upstream, tables):
    name, masked = config.removesuffix("_mlm"), config.endswith("_mlm")
    lists = Lists(upstream, name, masked=masked, subset="_bert" if masked else "")
    keys = list(lists.keys())
    assert len(keys) == tables[config].num_rows
    positions = sorted(random.Random(config).sample(range(len(keys)), 5000))
    expected = [lists.example(config, position, keys[position]) for position in positions]
    assert unqover_rows(tables[config].take(positions)) == expected


@pytest.mark.parametrize("field", ["context_21", "negated_question", "answer1", "attribute"])
def test_the_independent_reading_rejects_a_corrupted_example(field, upstream, tables):
    lists = Lists(upstream, "ethnicity")
    entry = next(itertools.islice(enumerate(lists.keys()), 777, None))
    row = tables["ethnicity"].slice(777, 1).to_pylist()[0]
    assert row == lists.example("ethnicity", *entry)
    assert {**row, field: f"{row[field]} indeed"} != lists.example("ethnicity", *entry)


def test_articles_follow_the_letter_as_published(tables):
    contexts = set(tables["ethnicity"]["context_12"].unique().to_pylist())
    assert any(" an European " in text for text in contexts)
    assert not any(re.search(r"\b[Aa] [AEIOU]", text) for text in contexts)
    assert any(text.startswith("An Asian man") for text in contexts)


def test_the_merged_attribute_is_the_only_one_of_two_kinds(tables):
    """One text is a place and a person attribute: 63 names, not 64; an example's key is unique still."""
    table = tables["nationality"]
    assert len(table["attribute"].unique()) == 63
    rows = table.slice(0, 492).to_pylist()
    assert len({(row["template_id"], row["attribute"]) for row in rows}) == 492
    assert {row["subject2"] for row in rows} == {"America"}


def test_t_u8_the_pairs_in_which_a_name_lies_in_the_other(tables):
    counts = Counter()
    for name in UNQOVER_TABLE_1:
        for batch in batches(tables[name]):
            counts.update(zip(batch["answer1"].to_pylist(), batch["answer2"].to_pylist(), strict=True))
    contained = {(one, two) for one, two in counts if one.lower() in two.lower() or two.lower() in one.lower()}
    # Of the demonyms only "Mali" could lie in "Somali", and that is "Malian".
    assert contained == {("Mali", "Somalia"), ("African", "African-American"), ("Caucasian", "Asian")}
    assert counts["African", "African-American"] + counts["Caucasian", "Asian"] == 1400


# Fixes.


def test_fixes_fix_what_they_list_and_nothing_else(make, tables):
    fixed = {config: make(fixes=True).table(config) for config in CONFIGS}
    for config, table in fixed.items():
        assert table.num_rows == tables[config].num_rows
        for column in ("template_id", "subject1", "subject2", "cluster1", "attribute_class"):
            assert table[column].equals(tables[config][column]), (config, column)
    assert fixed["gender"].equals(tables["gender"]), "the set has no defects"

    def values(table, *columns):
        return {text for column in columns for text in table[column].unique().to_pylist()}

    contexts = values(fixed["ethnicity"], "context_12", "context_21")
    assert not any("an European" in text for text in contexts)
    assert any("a European" in text for text in contexts)
    answers = values(fixed["nationality"], "answer1", "answer2")
    assert {"Spanish", "Yemeni", "Yemen"} <= answers
    assert "Spainish" not in answers
    assert any("Yemeni boy" in text for text in values(fixed["nationality"], "context_12"))
    for row in fixed["religion_mlm"].slice(500, 50).to_pylist():
        assert row["template_id"] == "religion_mlm-10"
        assert row["masked"].startswith("The [MASK] men ")
        assert row["masked_negated"].startswith("The [MASK] men ")
    assert tables["religion_mlm"]["masked_negated"][500].as_py().startswith("The [MASK] man ")

    for config in ("nationality", "ethnicity", "religion"):
        questions = values(fixed[config], "question", "negated_question")
        for row in unqover_rows(fixed[config].slice(0, 1000)):
            if "group" not in row["context_12"] and row["question"].startswith("Who "):
                assert not re.search(r"^Who were|and were", f"{row['question']} {row['negated_question']}"), row
        assert not any(re.search(r"harrass|\bvery loud\b|smell of|of flower\?|on street", q) for q in questions)
        assert not any(re.search(r"(?<!would )\bspeed\b", question) for question in questions)
        n_changed = len(questions - values(tables[config], "question", "negated_question"))
        assert 15 <= n_changed <= 45, n_changed


def test_every_list_of_fixes_is_in_the_version_and_the_card(make, tmp_path):
    from qabias.share.unqover_dataset.folder import write_folder

    write_folder(tmp_path, make(fixes=True), ["religion"])
    card = (tmp_path / "README.md").read_text("utf-8")
    assert all(fix in card for fix in FIXES)
    assert "fixed here" in card
    assert make(fixes=True).version == "official+fixes@3e47969"


def test_versions_tell_everything_that_changes_the_texts(make):
    assert make().version == "official@3e47969"
    assert make(subjects="bert").version == "official@3e47969"
    assert make(subjects="roberta", fixes=True).version == "official+fixes@3e47969+subjects=roberta"
    assert make(seed=5).version == make().version


# Faults.


def test_a_damaged_or_missing_file_is_refused(upstream, tmp_path):
    source, mirror = (folder / "allenai" / "unqover" for folder in (upstream, tmp_path))
    shutil.copytree(source / "word_lists", mirror / "word_lists")
    path = mirror / "word_lists" / "nouns" / "subjects" / "religion"
    path.write_text(path.read_text("utf-8").replace("Sikh", "Jain"), "utf-8")
    with pytest.raises(QabiasError, match="subjects/religion is not the published file"):
        AnyOrigin("official", upstream_dir=tmp_path).table("religion")
    path.unlink()
    with pytest.raises(QabiasError, match="subjects/religion is not in the mirror"):
        AnyOrigin("official", upstream_dir=tmp_path).table("religion")


def test_wrong_choices_are_refused(make):
    with pytest.raises(QabiasError, match="unknown subjects 'gpt': choose one of all, bert, roberta"):
        make(subjects="gpt")
    with pytest.raises(QabiasError, match="unknown configuration 'country'"):
        make().table("country")
    with pytest.raises(QabiasError, match="published selection"):
        AnyOrigin(subjects="bert")
    assert set(SUBJECTS) == {"all", "bert", "roberta"}


def test_the_builder_takes_the_fields_of_the_origin(upstream, tmp_path):
    builder = UnQover(
        config_name="religion_mlm",
        source="official",
        subjects="roberta",
        fixes=True,
        upstream_dir=str(upstream),
        cache_dir=tmp_path,
    )
    builder.download_and_prepare()
    dataset = builder.as_dataset(split="test")
    assert dataset.num_rows == MLM_COUNTS["roberta"]["religion"]
    expected = AnyOrigin("official", fixes=True, upstream_dir=upstream, subjects="roberta").table("religion_mlm")
    assert dataset.to_list() == unqover_rows(expected)


# Cost.

GENERATE = """
import pathlib
from qabias.share.unqover_dataset.origin import Origin
from qabias.share.unqover_dataset.design import SETS
tables = [Origin(source).table(name) for source in ("bundled", "official") for name in SETS]
assert sum(table.num_rows for table in tables) == 2 * 2_638_232
print(pathlib.Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is that of Linux")
@pytest.mark.slow
def test_all_sets_of_both_sources_take_less_than_1_gb(upstream):
    # A process of its own: the peak of this one holds what other tests have built.
    done = subprocess.run(
        [sys.executable, "-c", GENERATE],
        cwd=ROOT,
        env=os.environ | {"QABIAS_UPSTREAM": str(upstream)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert int(done.stdout) < 2**20, "in kB"
