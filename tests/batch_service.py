"""A batch service on this machine: takes request files, gives result files."""

import json
from pathlib import Path

from .loopback_server import chat_reply


def result(name, status, body):
    """A line of a result file."""
    response = {"status_code": status, "request_id": "r", "body": body}
    return {"id": f"batch_req_{name[:6]}", "custom_id": name, "response": response, "error": None}


def failed(name, code="batch_expired", message="This request could not be executed in time."):
    """A line of a file of errors."""
    error = {"code": code, "message": message}
    return {"id": f"batch_req_{name[:6]}", "custom_id": name, "response": None, "error": error}


def lines_of(path):
    return [json.loads(line) for line in Path(path).read_bytes().splitlines()]


def write(path, results):
    """Write a file of lines; its name."""
    Path(path).write_text("".join(json.dumps(line) + "\n" for line in results), "utf-8")
    return str(path)


def answer_files(paths, output):
    """Answer all requests of some files as the loopback server would."""
    requests = [request for path in paths for request in lines_of(path)]
    return write(output, (result(r["custom_id"], 200, chat_reply(r["url"], r["body"])) for r in requests))
