"""Records of Every Eval Ever, schema 0.3.0: an aggregate, and an instance per example.

Source: the schema files of the package `every_eval_ever` 0.3.0.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import re
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from qabias.answers.outcomes import ANSWERED
from qabias.evidence.content import DIGITS, Evidence, bounds
from qabias.runs.signature import COLLECTED, scorer_name, signature_fields
from qabias.support.files import json_text

SCHEMA = "0.3.0"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def records(evidence: Evidence, render: Callable[..., str]) -> dict[str, bytes]:
    """The aggregate, after the instances if the benchmark has right answers, by path in the store."""
    run = evidence.run
    owner, _, name = run.arguments.model.strip("/").rpartition("/")
    owner = owner.rpartition("/")[2]
    parts = (evidence.benchmark.name, owner or "unknown", name)
    folder = "/".join(["data", *(_UNSAFE.sub("-", part).strip(".-") or "unknown" for part in parts)])
    number = uuid.UUID(bytes=hashlib.sha256(run.digest.encode()).digest()[:16], version=4)
    path = f"{folder}/{number}"
    record = _aggregate(evidence, render)
    written: dict[str, bytes] = {}
    if evidence.benchmark.facts.instance is not None:
        lines = [json.dumps(one, ensure_ascii=False) for one in _instances(evidence, record["evaluation_id"])]
        content = "".join(f"{line}\n" for line in lines).encode("utf-8", errors="backslashreplace")
        written[f"{path}_samples.jsonl"] = content
        record["detailed_evaluation_results"] = {
            "format": "jsonl",
            "file_path": f"{path}_samples.jsonl",
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256(content).hexdigest(),
            "total_rows": len(lines),
        }
    return {**written, f"{path}.json": json_text(record).encode("utf-8", errors="backslashreplace")}


def _aggregate(evidence: Evidence, render: Callable[..., str]) -> dict[str, Any]:
    run = evidence.run
    text = render(
        schema=SCHEMA,
        evaluation_id=f"{evidence.benchmark.name}/{run.arguments.model}/{run.digest[:DIGITS]}",
        seconds=str(int(datetime.datetime.fromisoformat(run.created).timestamp())),
        fields=signature_fields(run.signature),
        bounds=bounds,
        looks=", repeated over the looks" if run.stopped_early else "",
    )
    record: dict[str, Any] = json.loads(text.encode("utf-8", errors="backslashreplace"))
    return record


def _instances(evidence: Evidence, evaluation_id: str) -> Iterator[dict[str, Any]]:
    """One record per example, part by part."""
    question, run, start = evidence.run.question, evidence.run, 0
    read = evidence.benchmark.facts.instance
    assert read is not None
    how = f"parser {run.arguments.parser}" if "outputs" in evidence.run.answers.column_names else "most likely choice"
    if scorer_name(run.signature) == COLLECTED:
        how = "read from a file of answers"
    for part in question.parts:
        answers = evidence.run.answers.slice(start, part.num_rows)
        start += part.num_rows
        form = question.format_of(part) if question.prompt_format is not None else None
        shown = form if form is not None and form.orders == 1 and not form.pairs else None
        for row, answer in zip(part.to_pylist(), answers.to_pylist(), strict=True):
            one, place = read(row), answer["prediction"]
            place = -1 if place is None else place
            chosen = one.choices[place] if 0 <= place < len(one.choices) else ""
            outputs = [text for text in answer.get("outputs") or [chosen] if isinstance(text, str)]
            name = "/".join(str(row[column]) for column in (*evidence.benchmark.key, "run") if column in row)
            right = one.choices[one.right]
            became = answer.get("outcome")
            missing = None if chosen else (became if became and became != ANSWERED else "no answer")
            yield {
                "schema_version": SCHEMA,
                "evaluation_id": evaluation_id,
                "model_id": run.arguments.model,
                "evaluation_name": evidence.benchmark.name,
                "sample_id": name,
                "sample_hash": hashlib.sha256(f"{one.text}{right}".encode()).hexdigest(),
                "interaction_type": "single_turn",
                "input": {
                    "raw": one.text,
                    "formatted": shown.render(row)[0] if shown is not None else None,
                    "reference": [right],
                    "choices": list(one.choices),
                },
                "output": {
                    "raw": outputs,
                    "reasoning_trace": [answer["thinking"]] if answer.get("thinking") else None,
                },
                "messages": None,
                "answer_attribution": [
                    {
                        "turn_idx": 0,
                        "source": "output.raw",
                        "extracted_value": chosen,
                        "extraction_method": how,
                        "is_terminal": True,
                    }
                ],
                "evaluation": {"score": float(place == one.right), "is_correct": place == one.right},
                "error": missing,
            }
