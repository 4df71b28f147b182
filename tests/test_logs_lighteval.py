"""Files of lighteval are recognised by what they hold, and refused with what they lack."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qabias.errors import QabiasError
from qabias.logs.recognise import logs_in, read_log

# One row as lighteval 0.13 keeps it: dataclasses.asdict of a Detail.
DOC = {"query": "Passage: ...\nA. x\nB. y", "choices": ["A", "B"], "gold_index": 1, "task_name": "bbq|0", "id": "0"}
RESPONSE = {"text": ["B"], "logprobs": [], "input": "Passage: ..."}
DETAILS = (
    {"doc": DOC, "metric": {"em": 1.0}, "model_response": RESPONSE},
    {"__doc__": DOC, "__metric__": {"em": 1.0}, "__model_response__": RESPONSE},
    {
        "choices": ["A", "B"],
        "example": "",
        "full_prompt": "",
        "gold": ["B"],
        "metrics": {"em": 1},
        "predictions": ["B"],
    },
)
GENERAL = {"lighteval_sha": "0" * 40, "num_fewshot_seeds": 1, "max_samples": None, "model_name": "made/up"}


@pytest.mark.parametrize("detail", DETAILS)
def test_details_are_refused_with_what_they_lack(detail, tmp_path):
    path = tmp_path / "details_bbq_2026-01-01.parquet"
    pq.write_table(pa.Table.from_pylist([detail]), path)
    with pytest.raises(QabiasError, match=r"neither its number nor the groups of its answers.*qabias run"):
        read_log(path)


def test_results_are_refused(tmp_path):
    path = tmp_path / "results_2026-01-01.json"
    results = {"config_general": GENERAL, "results": {"bbq:0": {"em": 0.5}}, "versions": {}, "config_tasks": {}}
    path.write_text(json.dumps(results, indent=2), "utf-8")
    with pytest.raises(QabiasError, match="lighteval's scores, without the answers"):
        read_log(path)


def test_other_tables_are_left_alone(tmp_path):
    pq.write_table(pa.table({"doc": ["a"], "metric": [1]}), tmp_path / "other.parquet")
    whole = (tmp_path / "other.parquet").read_bytes()
    (tmp_path / "torn.parquet").write_bytes(whole[:-20])
    (tmp_path / "garbled.parquet").write_bytes(whole[:-40] + bytes(32) + whole[-8:])
    (tmp_path / "results.json").write_text('{"config_general": {"name": "x"}, "results": {}}', "utf-8")
    assert [log for _, log in logs_in(tmp_path, "run.json")] == [None] * 4
