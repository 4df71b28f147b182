"""Hostile texts in everything that is shown: none becomes a script, a formula, a macro or a command of a terminal."""

import itertools
import re
import shutil
import unicodedata
from xml.etree import ElementTree

import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import yaml

from qabias.runs.arguments import Machine, RunArguments
from qabias.runs.run import run
from qabias.support.files import read_json
from tests.kit.pages import HALF, SIGNATURE, Page, fill_folder, named_everywhere, run_of

from ..conftest import ROOT
from .helpers import chosen, command

OWN = "document.title='owned'"
PAYLOADS = (
    f"<script>{OWN}</script>",
    f"</script><script>{OWN}</script>",
    f'<img src=x onerror="{OWN}">',
    f'" autofocus onfocus="{OWN}" x="',
    f"' onmouseover='{OWN}' style='position:fixed;inset:0' x='",
    f'<iframe srcdoc="<script>parent.{OWN}</script>"></iframe>',
    f"javascript:{OWN}//",
    "</style><style>*{display:none;background:url(http://127.0.0.1:9/)}</style>",
    '<meta http-equiv="Content-Security-Policy" content="script-src *"><base href="http://127.0.0.1:9/">',
    f"&lt;script&gt;{OWN}&lt;/script&gt;&#60;b&#62;",
    "{{ 7*7 }}{% for x in ().__class__.__base__.__subclasses__() %}{{ x }}{% endfor %}",
    "$(touch owned); `touch owned` | touch owned && touch owned",
    '=HYPERLINK("http://127.0.0.1:9/";"owned")',
    "+cmd|' /C calc'!A0",
    "\t=1+1",
    '\r-1+1,"two"\rcells',
    r"\input{/etc/passwd}\write18{touch owned}\immediate\end{document}$x^2$ % & # _ ~ [1] ^^M",
    "[owned](javascript:alert(1)) ![x](http://127.0.0.1:9/) | **b** | `c` <b>x</b>\n# head",
    "\x1b]0;owned\x07\x1b[31mred\x1b[2J\x9b1m\x08\x7f",
    "a\0b\x01c",
    "\u202egnp.\u2066exe\u2069\u200f",
    f"half {HALF}",
    "[bold red]owned[/bold red][link=http://127.0.0.1:9/]x[/link][/]",
    "m|config:Age|seed:9\nerror: made up",
)
QUIET = Machine(shows_progress=False)
RESULTS = ("--to", "me/model", "--dataset", "me/set", "--sample")
PUSHED = ("--to", "me/model", "--dataset", "me/set", "--sample", "--dry-run")
BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f"


def named(payload):
    """The text itself; half of a surrogate pair as a program holds it."""
    return payload.replace(HALF, "\ud83d")


@pytest.fixture(scope="module")
def small_run(tmp_path_factory):
    return run(RunArguments("bbq", "baseline:random", limit=40), tmp_path_factory.mktemp("runs") / "run", QUIET)


@pytest.fixture(scope="module")
def answers(small_run, tmp_path_factory):
    """A file of predictions."""
    folder = tmp_path_factory.mktemp("answers")
    table = pq.read_table(small_run.folder / "predictions")
    pyarrow.csv.write_csv(table.select(["example_id", "category", "prediction"]), folder / "answers.csv")
    return folder / "answers.csv"


@pytest.fixture(scope="module")
def plain(answers, tmp_path_factory):
    """A run and its comparison with itself, of a harmless name."""
    folder = tmp_path_factory.mktemp("plain")
    scored = _scored("plain", answers, folder / "run")
    assert command("report", scored).code == 0
    return scored


@pytest.fixture(scope="module")
def plain_page(small_run, tmp_path_factory):
    """The page of a made-up run of harmless texts."""
    folder = _made_up("plain", small_run, tmp_path_factory.mktemp("made up") / "run")
    assert command("report", folder).code == 0
    return _page(folder / "report.html")


def _made_up(text, small_run, folder):
    """A run that has a text in every place of its files."""
    made = run_of(model=text) | {"signature": f"{SIGNATURE}|norm:none|model:{text}", "created": text}
    scores = read_json(small_run.folder / "scores.json")["scores"]
    return fill_folder(folder, run=made, scores=scores, analysis=named_everywhere(text))


def _scored(name, answers, folder):
    """A run of collected answers whose model has a name."""
    of_bbq = ("--benchmark", "bbq", "--config", "all")
    ended = command("score", answers, *of_bbq, "--model", name, "--output", folder)
    _is_harmless(ended)
    return folder


def _is_harmless(ended):
    """A command went well or was refused in one line, and tells a terminal nothing."""
    assert ended.is_clean, ended.err[-500:]
    for text in (ended.out, re.sub(r"\rbbq: [^\r\n]*", "", ended.err)):  # without bars
        text.encode("utf-8")
        controls = {letter for letter in text if unicodedata.category(letter) == "Cc" and letter not in "\n\t"}
        assert not controls | (set(text) & set(BIDI)), (controls, text[:500])


def _page(path):
    return Page(path.read_text("utf-8"))


def _is_dead(path, like):
    """A page has no element, script, style, address or attribute of another kind than one of harmless texts."""
    page = _page(path)
    assert page.scripts == like.scripts
    assert set(page.tags) <= {*like.tags, "wbr"}  # where a long word may be broken
    assert page.styles == like.styles
    assert {name for _, name, _ in page.attributes} <= {name for _, name, _ in like.attributes}
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    foreign = {address for _, address in page.addresses} - {address for _, address in like.addresses}
    assert all(address.startswith("#") for address in foreign), foreign


@pytest.mark.parametrize("payload", chosen(PAYLOADS, quick=4), ids=itertools.count())
def test_hostile_texts_in_the_files_of_a_run_stay_texts(payload, small_run, plain_page, tmp_path):
    folder = _made_up(payload, small_run, tmp_path / "run")
    written = tmp_path / "written"
    for arguments in (
        ("report", folder),
        ("show", folder),
        ("show", folder, "--table", f"bars{named(payload)}"),
        *(("export", folder, "--format", kind, "--output", written) for kind in ("csv", "md", "latex", "svg")),
        ("push", "results", folder, *RESULTS, "--write-to", tmp_path / "results"),
        ("push", "results", folder, *PUSHED),
        ("compare", folder, shutil.copytree(folder, tmp_path / "again")),
    ):
        _is_harmless(command(*arguments))
    _is_dead(folder / "report.html", plain_page)
    files = [path for path in written.iterdir() if path.suffix != ".svg"]
    assert len(files) == 18  # six tables
    for path in written.glob("*.svg"):
        assert not [element for element in ElementTree.parse(path).iter() if element.tag.endswith("script")]
    for path in (tmp_path / "results").rglob("*.yaml"):
        assert yaml.safe_load(path.read_text("utf-8"))
    assert not list(tmp_path.rglob("owned"))


@pytest.mark.parametrize("payload", chosen(PAYLOADS, quick=2), ids=itertools.count())
def test_a_hostile_name_of_a_model_stays_a_name(payload, answers, plain, tmp_path):
    folder = _scored(named(payload), answers, tmp_path / "run")
    if not folder.exists():
        return  # refused in one line
    for arguments in (
        ("show", folder),
        ("compare", folder, plain, "--output", tmp_path / "compared"),
        ("report", folder),
        ("push", "results", folder, *RESULTS, "--write-to", tmp_path / "results"),
        ("push", "results", folder, *PUSHED),
    ):
        ended = command(*arguments)
        _is_harmless(ended)
        assert ended.code == 0, ended
    shutil.copytree(plain, tmp_path / "again")
    assert command("compare", plain, tmp_path / "again", "--output", tmp_path / "harmless").code == 0
    _is_dead(tmp_path / "compared" / "compare.html", _page(tmp_path / "harmless" / "compare.html"))
    _is_dead(folder / "report.html", _page(plain / "report.html"))
    lines = command("show", folder).out.splitlines()
    assert "config:Age" not in next(line for line in lines if line.startswith("Cite")).split("|")
    assert not [line for line in lines if line.startswith("error")]
    assert not list(tmp_path.rglob("owned"))


FIELDS = ("title", "society", "purpose", "authors", "making", "citation")
MARKUP = re.compile(r"(?<!\\)(?:<[a-z/!][^>\s]*|\]\()", re.IGNORECASE)


def _of_templates(text, folder):
    """A report and a card of a folder of templates that has a text in every field; None if it is refused."""
    shutil.copytree(ROOT / "docs" / "examples" / "templates_it", folder / "mine")
    paths = [folder / "mine" / name for name in ("benchmark.yaml", "templates/Eta.yaml")]
    fields, templates = (yaml.safe_load(path.read_text("utf-8")) for path in paths)
    fields |= {**dict.fromkeys(FIELDS, text), "limitations": [text]}
    templates["templates"][0] |= {"bias": text.strip(), "sources": [text], "subcategory": text.strip()}
    for path, content in zip(paths, (fields, templates), strict=True):
        path.write_text(yaml.safe_dump(content), "utf-8")
    for arguments in (
        ("run", folder / "mine", "--model", "baseline:stereotyped", "--output", folder / "run"),
        ("report", folder / "run"),
        ("build", folder / "mine", "--output", folder / "built"),
    ):
        ended = command(*arguments)
        assert ended.is_clean, ended
        if ended.code:
            return None
    card = (folder / "built" / "README.md").read_text("utf-8").split("---\n", 2)[2]
    return folder / "run" / "report.html", MARKUP.findall("".join(card.split("```")[::2]))


@pytest.mark.parametrize("payload", chosen(PAYLOADS, quick=4), ids=itertools.count())
def test_hostile_texts_of_a_folder_of_templates_stay_texts(payload, tmp_path):
    harmless, made = _of_templates("plain", tmp_path / "plain"), _of_templates(payload, tmp_path / "hostile")
    assert harmless is not None
    if any(letter not in "\t\n\u200f" and unicodedata.category(letter)[0] == "C" for letter in payload):
        assert made is None
    if made is not None:
        _is_dead(made[0], _page(harmless[0]))
        assert made[1] == harmless[1]
