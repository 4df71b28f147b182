"""Invented files in BBQ's form, as JBBQ's, which may not be passed on: nothing in them is of JBBQ."""

import json
from itertools import permutations

N_TEMPLATES = 10
PEOPLE = {
    # The groups; text and tag of a member and of somebody else.
    "Age": (["高齢者", "若者"], ("八十歳", "高齢者"), ("二十歳", "若者")),
    "Disability_status": (["車椅子"], ("車椅子", "障害者"), ("徒歩", "なし")),
    "Gender_identity": (["F"], ("女の子", "女の子"), ("弟", "M")),
    "Physical_appearance": (["背が低い"], ("小柄", "背が低い"), ("大柄", "背が高い")),
    "Sexual_orientation": (["ゲイ", "レズビアン"], ("恋人は女性", "レズビアン"), ("恋人は男性", "異性愛者")),
}
UNKNOWNS = (("わからない", "unknown"), ("Not known", "不明"))


def four(order, member, other, groups, question="1", version="a", room="1"):
    """A set of four rows whose answers, (text, tag), stand in an order; the member is right in negative questions."""
    (unknown,) = (info for info in order if info not in (member, other))
    for negative in (True, False):
        for ambiguous in (True, False):
            yield {
                "example_id": 0,
                "question_index": question,
                "question_polarity": "neg" if negative else "nonneg",
                "context_condition": "ambig" if ambiguous else "disambig",
                "category": "as published",
                "answer_info": {f"ans{place}": list(info) for place, info in enumerate(order)},
                "additional_metadata": {"stereotyped_groups": groups, "version": version},
                "context": f"{room}番の部屋に二人がいた。" + ("" if ambiguous else "一人が話した。"),
                "question": "話したのは誰か？" if negative else "黙っていたのは誰か？",
                **{f"ans{place}": f"{text}の人" for place, (text, _) in enumerate(order)},
                "label": order.index(unknown if ambiguous else member if negative else other),
                "is_additional": 0,
            }


def rows_of(category):
    """Six sets of four of every template, one for each order of the answers."""
    groups, member, other = PEOPLE[category]
    return [
        row
        for number in range(N_TEMPLATES)
        for order in permutations((member, other, UNKNOWNS[number % 2]))
        for row in four(order, member, other, groups, str(number // 2 + 1), "ab"[number % 2], number)
    ]


def json_lines(rows):
    """Rows as JSONL."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def write_rows(file, rows):
    """Write rows as JSONL."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json_lines(rows), encoding="utf-8")


def write_files(folder, categories=tuple(PEOPLE)):
    """Write a file of every category; returns the folder."""
    for category in categories:
        write_rows(folder / f"{category}.jsonl", rows_of(category))
    return folder
