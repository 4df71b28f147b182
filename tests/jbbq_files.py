"""Invented files in the form of JBBQ's, which may not be passed on: nothing in them is of JBBQ."""

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


def rows_of(category):
    """Six sets of four of every template, one for each order of the answers."""
    groups, member, other = PEOPLE[category]
    rows = []
    for number in range(N_TEMPLATES):
        for order in permutations((member, other, UNKNOWNS[number % 2])):
            for negative in (True, False):
                for ambiguous in (True, False):
                    right = order.index(UNKNOWNS[number % 2] if ambiguous else member if negative else other)
                    rows.append(
                        {
                            "example_id": len(rows),
                            "question_index": str(number // 2 + 1),
                            "question_polarity": "neg" if negative else "nonneg",
                            "context_condition": "ambig" if ambiguous else "disambig",
                            "category": category,
                            "answer_info": {f"ans{place}": list(info) for place, info in enumerate(order)},
                            "additional_metadata": {"stereotyped_groups": groups, "version": "ab"[number % 2]},
                            "context": f"{number}番の部屋に二人がいた。" + ("" if ambiguous else "一人が話した。"),
                            "question": "話したのは誰か？" if negative else "黙っていたのは誰か？",
                            **{f"ans{place}": f"{text}の人" for place, (text, _) in enumerate(order)},
                            "label": right,
                            "is_additional": 0,
                        }
                    )
    return rows


def write_rows(file, rows):
    """Write rows as JSONL."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def write_files(folder, categories=tuple(PEOPLE)):
    """Write a file of every category; returns the folder."""
    for category in categories:
        write_rows(folder / f"{category}.jsonl", rows_of(category))
    return folder
