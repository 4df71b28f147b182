"""Small logs of BBQ as the pages name them: made by inspect_ai and by lm-evaluation-harness."""

import importlib.util
import json
import shutil
import zlib

import pytest

N_ROWS = 40
TOOLS = ("inspect_ai", "inspect_evals", "lm_eval")


def are_installed():
    """Whether the tools are there that make logs; inspect_ai needs Python 3.11."""
    return all(importlib.util.find_spec(name) for name in TOOLS)


def make_logs(folder, upstream):
    """Write `logs` as docs/import-logs.md names it: two logs of inspect, one in a folder, one of lm-eval."""
    from . import inspect_logs, lm_eval_logs

    (folder / "inspect").mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        asked = inspect_logs.evaluate(upstream, folder / "inspect", patch, n_each=N_ROWS)
    for name in ("age", "other"):
        shutil.copy(asked, folder / f"{name}.eval")
    lines = (upstream / "nyu-mll" / "BBQ" / "data" / "Age.jsonl").read_text("utf-8").splitlines()[:N_ROWS]
    rows = [json.loads(line) for line in lines]
    task = lm_eval_logs.harness_task("bbq", "bbq_multiple_choice", rows, folder.parent / "rows.jsonl")
    lm_eval_logs.ask([task], folder / "lm-eval", lambda doc, option: -float(_drawn(doc, option)))


def make_results(path):
    """Results of a batch whose requests are called as the examples are."""
    replies = [
        {"choices": [{"index": 0, "message": {"content": "B"}, "finish_reason": "stop"}], "model": "made-up"}
    ] * 8
    lines = [
        json.dumps({"custom_id": f"Age/{number}", "response": {"status_code": 200, "body": reply}, "error": None})
        for number, reply in enumerate(replies)
    ]
    path.write_text("\n".join(lines) + "\n", "utf-8")


def _drawn(row, option):
    return zlib.crc32(f"{row['example_id']} {option}".encode())
