"""The README's Python runs as it stands."""

import re

from .conftest import ROOT


def test_python_blocks_run(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(block, {})
    assert capsys.readouterr().out.splitlines()[-1] == "1.0 [1.0, 1.0]"


def test_named_files_exist():
    text = (ROOT / "README.md").read_text("utf-8")
    for path in re.findall(r"\]\(([^)#]+)\)", text):
        if not path.startswith("http"):
            assert (ROOT / path).exists(), path
