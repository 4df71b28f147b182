"""The report in a browser: nothing is loaded, and people can sort, search, copy and print."""

import dataclasses
import html
import json
import re
import shutil
import subprocess

import pytest

from qabias.report.page import FOLDED
from qabias.report.writing import write_combined_report, write_report_of
from qabias.runs.arguments import RunArguments
from qabias.runs.run import run
from qabias.tables.model import Analysis

from .kit.pages import fill_folder, named_everywhere, run_of, table_of

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def browse(path, *options):
    with_profile = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"]
    quiet = ["--disable-background-networking", "--disable-component-update", "--enable-logging=stderr", "--v=0"]
    profile = f"--user-data-dir={path.parent / 'profile'}"
    command = [*with_profile, *quiet, profile, "--virtual-time-budget=5000", *options, path.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)


def with_driver(source, driver):
    """The page with a script that uses it; the policy must go, because it would refuse the script."""
    source = re.sub(r"<meta http-equiv=\"Content-Security-Policy\"[^>]*>", "", source)
    return source.replace("</body>", f"<script>{driver}</script></body>")


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_a_browser_shows_the_page_without_an_error_and_as_text(tmp_path):
    hostile = "<script>document.title = 'run'; console.error('run')</script>"
    fill_folder(tmp_path / "run", run=run_of(model=hostile), analysis=named_everywhere(hostile))
    result = browse(write_report_of(tmp_path / "run"), "--dump-dom")
    assert "CONSOLE" not in result.stderr
    assert '<html lang="en" class="scripted">' in result.stdout
    assert "<title>run</title>" not in result.stdout


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_a_browser_sorts_copies_searches_and_opens_the_guide_by_its_links(tmp_path):
    source = write_report_of(fill_folder(tmp_path / "run")).read_text(encoding="utf-8")
    driver = """
    (async () => {
    const body = document.querySelector("table[data-title]").tBodies[0];
    const first = () => Array.from(body.rows, (row) => row.cells[0].textContent);
    const heading = document.querySelectorAll("[data-title] th > button")[2];
    const said = [];
    heading.click(); said.push(first().join());
    heading.click(); said.push(first().join());
    const labels = document.querySelector("[data-title] th > button");
    const direction = () => labels.parentNode.getAttribute("aria-sort");
    labels.click(); said.push(first().join(), direction());
    labels.click(); said.push(first().join(), direction());
    const list = await explorer("c1-examples");
    list.apply(new Map());
    const box = document.querySelector(".examples");
    const select = Array.from(box.querySelectorAll("select")).find((one) => one.textContent.includes("disambig"));
    select.value = "ambig"; select.dispatchEvent(new Event("change"));
    said.push(box.querySelector("output").textContent);
    list.words.value = "no such words"; list.words.dispatchEvent(new Event("input"));
    said.push(box.querySelector("output").textContent);
    said.push(asTabs(document.querySelectorAll("table[data-title]")[0]));
    const guide = document.getElementById("c1-reading").closest("details");
    const place = (element) => element.getBoundingClientRect().top + scrollY;
    said.push(place(document.querySelector("table[data-title]")) < place(guide), guide.open);
    document.querySelector('a[href="#c1-reading"]').click();
    said.push(guide.open);
    document.title = JSON.stringify(said);
    })();
    """
    page = tmp_path / "driven.html"
    page.write_text(with_driver(source, driver), encoding="utf-8")
    result = browse(page, "--dump-dom")
    assert "CONSOLE" not in result.stderr
    downwards, upwards, *by_name, some, none, tabs, is_first, was_open, is_open = json.loads(
        html.unescape(re.search(r"<title>(.*?)</title>", result.stdout)[1])
    )
    assert downwards == "Age,All,Religion"  # by s_DIS: 11.1, −3.1, and undefined last
    assert upwards == "All,Age,Religion"
    assert by_name == ["Age,All,Religion", "ascending", "Religion,All,Age", "descending"]
    assert (some, none) == ("2 of 4", "0 of 4")
    assert (is_first, was_open, is_open) == (True, False, True)
    lines = [line.split("\t") for line in tabs.splitlines()]
    ends = ("", "_low", "_high")
    assert lines[0] == ["name", *(f"bias_{name}{end}" for name in ("ambig", "disambig") for end in ends), "n"]
    assert ["Religion", "-0.0711", "-0.1211", "-0.0211", "", "", "", "600"] in lines


WIDTHS = [420, 820, 1280]


@pytest.fixture(scope="module")
def whole_page(tmp_path_factory):
    """One report of runs of all benchmarks."""
    where = tmp_path_factory.mktemp("runs")
    configs = {"bbq": "all", "unqover": "all", "bbnli": "all", "bbq_nli": "all_nli", "bbq_qa": "all_qa"}
    folders = [
        run(RunArguments(name, "baseline:random", config, limit=400), where / name).folder
        for name, config in configs.items()
    ]
    return write_combined_report(folders, where / "report.html")


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
@pytest.mark.parametrize("dark", [False, True])
def test_a_page_of_all_benchmarks_fits_its_window_and_asks_for_nothing(whole_page, tmp_path, dark):
    driver = """
    for (const fold of document.querySelectorAll("details")) fold.open = true;
    stack();
    const wide = (box) => box.scrollWidth > box.clientWidth + 1;
    const paper = getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).map(Number);
    parent.postMessage(JSON.stringify({
      width: innerWidth,
      content: document.documentElement.scrollWidth,
      loaded: performance.getEntriesByType("resource").map((entry) => entry.name),
      light: Math.min(...paper),
      wide: Array.from(document.querySelectorAll(".scroll, thead button")).filter(wide).map((box) => box.textContent),
      figures: Array.from(document.querySelectorAll("figure"), (figure) => figure.clientWidth),
    }), "*");
    """
    (tmp_path / "driven.html").write_text(with_driver(whole_page.read_text(encoding="utf-8"), driver), encoding="utf-8")
    # In frames, because no window is narrower than 500 pixels.
    page = tmp_path / "frames.html"
    frames = "".join(
        f'<iframe src="driven.html" style="border: 0; height: 900px; width: {width}px"></iframe>' for width in WIDTHS
    )
    page.write_text(
        "<script>const all = []; onmessage = (message) => {"
        f"all.push(JSON.parse(message.data)); document.title = JSON.stringify(all); }}</script>{frames}",
        encoding="utf-8",
    )
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    options = ("--window-size=1600,1000", "--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND")
    result = browse(page, *options, scheme, "--dump-dom")
    assert "CONSOLE" not in result.stderr
    shown = json.loads(html.unescape(re.search(r"<title>(.*?)</title>", result.stdout)[1]))
    assert sorted(found["width"] for found in shown) == WIDTHS
    for found in shown:
        assert found["content"] <= found["width"]
        assert found["loaded"] == []
        assert found["wide"] == [] or found["width"] < 1280  # narrower screens scroll a table in its box
        assert (found["light"] < 64) == dark
        assert len(found["figures"]) > 40
        assert all(0 < of_figure <= found["width"] for of_figure in found["figures"])


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_on_paper_folded_tables_are_open(tmp_path):
    rows = [(f"row {n}", n / 1000) for n in range(80)]
    long = dataclasses.replace(table_of("bars", [("x", "X", "share")], rows, ["x"]), figure=None)
    short = dataclasses.replace(long, rows=long.rows[:FOLDED])
    pages = []
    for name, table in (("long", long), ("short", short)):
        folder = fill_folder(tmp_path / name, analysis=Analysis((table,)))
        browse(write_report_of(folder), f"--print-to-pdf={folder / 'report.pdf'}", "--no-pdf-header-footer")
        pages.append((folder / "report.pdf").read_bytes().count(b"/Type /Page\n"))
    assert pages[0] > pages[1] > 0
