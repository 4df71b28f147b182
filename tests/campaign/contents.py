"""What a folder of results holds, without what may differ between two equal runs."""

import json
import re

from qabias.building.folder import MARK

_TIMES = re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2} UTC")


def contents(folder):
    """The files of a folder by their path there: `run.json` without its time, pages without times, else the bytes."""
    return {path.relative_to(folder).as_posix(): _content(path) for path in sorted(folder.rglob("*")) if path.is_file()}


def hidden(folder):
    """The files that a killed command has left; the mark by which `build` knows its folder is none."""
    return [path for path in folder.rglob(".*") if path.is_file() and path.name != MARK]


def _content(path):
    if path.name == "run.json":
        return {name: value for name, value in json.loads(path.read_text("utf-8")).items() if name != "created"}
    if path.suffix == ".html":
        return _TIMES.sub("TIME", path.read_text("utf-8"))
    if path.name == "requests.jsonl":
        return answers(path)
    return path.read_bytes()


def answers(journal):
    """The answers of a journal, as JSON, by their request; a torn line holds none."""
    found = {}
    for line in journal.read_text("utf-8", errors="replace").splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        found[entry["request"]] = json.dumps(entry["answer"])
    return found
