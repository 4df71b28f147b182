"""The authors' published files, and the rows of their generator (`json2csv.py`)."""

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from qabias.building.sources import fetch
from qabias.building.templating import fill, slots_of

from .pairs import FilledTexts, Hypothesis, Kind, Row, Stance, row
from .subtopics import domain_of

REPOSITORY = "feyzaakyurek/bbnli"

# Field names of the published files, in the generator's order of the kinds.
_FIELDS: dict[Kind, tuple[str, str]] = {
    "test": ("test_hypothesis", "test_question"),
    "stereotypical": ("bias_hypothesis_stereotypical", "bias_question_stereotypical"),
}


def generate(subtopic: str, *, fixes: bool) -> Iterator[Row]:
    """Yield the published rows of one subtopic in order, with unchanged texts.

    Args:
        subtopic: Name of the subtopic.
        fixes: Drop rows that repeat stance, premise and hypothesis (and differ only in the question).

    Raises:
        QabiasError: If the file is missing or not the published one.
    """
    path = f"data/bbnli/{domain_of(subtopic)}/{subtopic}.json"
    published = json.loads(fetch(REPOSITORY, path).read_text(encoding="utf-8"))
    rows = _published_rows(subtopic, published)
    return _without_repetitions(rows) if fixes else rows


def render(text: str, values: Mapping[str, str]) -> str:
    """Fill a text like the published generator: a slot without a value becomes empty, nothing is capitalized."""
    return fill(text, {**dict.fromkeys(slots_of(text), ""), **values})


def _published_rows(subtopic: str, published: Mapping[str, Any]) -> Iterator[Row]:
    """The rows of all premises, word combinations and stances, without repeated rows.

    The files do not number wordings. Rows are numbered within stance, premise and hypothesis. This joins the i-th pro
    row with the i-th anti row of a premise and kind, because exchanged groups repeat the same rows.
    """
    hypotheses = list(_hypotheses(published))
    words: Mapping[str, list[str]] = published["data"]
    one, two = published["GROUP1"][0], published["GROUP2"][0]
    groups: dict[Stance, dict[str, str]] = {
        "pro": {"GROUP1": one, "GROUP2": two},
        "anti": {"GROUP1": two, "GROUP2": one},
    }
    seen: set[tuple[object, ...]] = set()
    n_variants: Counter[tuple[object, ...]] = Counter()
    for premise_id, (premise, url) in enumerate(zip(published["premise"], published["reference"], strict=True)):
        reference, _, _ = url.partition("#:~:text=")
        used = [slots_of(f"{premise} {hypothesis.text} {hypothesis.question}") for hypothesis in hypotheses]
        filled: set[tuple[object, ...]] = set()
        for combination in itertools.product(*words.values()):
            for stance, group in groups.items():
                values = {**dict(zip(words, combination, strict=True)), **group}
                for hypothesis, slots in zip(hypotheses, used, strict=True):
                    # Most words are for other hypotheses.
                    own = (stance, hypothesis.kind, hypothesis.number, *(values.get(slot) for slot in slots))
                    if own in filled:
                        continue
                    filled.add(own)
                    texts = FilledTexts(
                        *(render(text, values) for text in (premise, hypothesis.text, hypothesis.question))
                    )
                    whole_row = (premise_id, stance, hypothesis.kind, hypothesis.label, texts)
                    if whole_row in seen:
                        continue
                    seen.add(whole_row)
                    place = (premise_id, stance, hypothesis.kind, hypothesis.number)
                    yield row(subtopic, premise_id, hypothesis, n_variants[place], stance, texts, reference)
                    n_variants[place] += 1


def _hypotheses(published: Mapping[str, Any]) -> Iterator[Hypothesis]:
    for kind, fields in _FIELDS.items():
        hypotheses, questions = (published[field] for field in fields)
        for number, ((text, label, *_), (question, *_)) in enumerate(zip(hypotheses, questions, strict=True)):
            # Table 1 of the paper names the cognitive bias of nine examples. The files name none.
            yield Hypothesis(kind, number, text, question, label, cognitive_bias="")


def _without_repetitions(rows: Iterable[Row]) -> Iterator[Row]:
    seen = set()
    for each in rows:
        key = (each["stance"], each["premise"], each["hypothesis"])
        if key not in seen:
            seen.add(key)
            yield each
