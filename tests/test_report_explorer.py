"""The list of examples in a browser: addresses, figures, differences, marks, and all of BBQ."""

import html
import json
import re

import pytest

from qabias.comparison import compare
from qabias.report.writing import write_comparison, write_report_of
from qabias.runs.arguments import RunArguments
from qabias.runs.run import run
from qabias.tables.model import Analysis

from .kit.pages import BIAS, EXAMPLES, fill_folder, named_everywhere, read_page, run_of
from .test_report_browser import CHROMIUM, browse, with_driver

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")]

# The page as people see it, and a pause until it is.
HELPERS = """
const box = () => document.querySelector(".examples");
const all = (selector) => Array.from(document.querySelectorAll(selector));
const texts = (selector) => all(selector).map((element) => element.textContent);
const count = () => box().querySelector("output").textContent;
const until = async (ready) => { while (!ready()) await new Promise((done) => setTimeout(done, 10)); };
const listed = () => until(() => box().querySelector("output")?.textContent.includes(" of "));
const press = (name) => all("button").find((one) => one.textContent === name).click();
const pause = () => new Promise((done) => setTimeout(done, 100));
const visit = async (hash) => { location.hash = hash; await pause(); await listed(); };
const saved = [];
URL.createObjectURL = (blob) => { saved.push(blob.text()); return "#"; };
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two runs on the same sample."""
    where = tmp_path_factory.mktemp("explored")
    names = ("random", "unknown")
    return [
        run(RunArguments("bbq", f"baseline:{name}", "Age,Religion", limit=200), where / name).folder for name in names
    ]


def driven(page, tmp_path, script):
    """What a script in the page collects in `seen`."""
    driver = f"{HELPERS} (async () => {{ const seen = {{}}; {script}; document.title = JSON.stringify(seen); }})();"
    path = tmp_path / "driven.html"
    path.write_text(with_driver(page.read_text(encoding="utf-8"), driver), encoding="utf-8")
    for _ in range(3):  # on a busy machine the page may be written before the script has ended
        result = browse(path, "--dump-dom", "--host-resolver-rules=MAP * ~NOTFOUND")
        assert "CONSOLE" not in result.stderr
        title = html.unescape(re.search(r"<title>(.*?)</title>", result.stdout)[1])
        if title.startswith("{"):
            break
    return json.loads(title)


def test_an_address_opens_an_example_and_filters_are_in_it(folders, tmp_path):
    page = write_report_of(folders[0])
    examples = read_page(page).examples
    chosen = examples[17]
    name = f"{chosen['category']}/{chosen['example_id']}"
    seen = driven(
        page,
        tmp_path,
        f"""
        await visit("#c1-examples&example={name}");
        seen.name = texts(".example h4")[0];
        seen.texts = texts(".example p, .example pre, .example td");
        await visit("#c1-examples&category=Religion&outcome=stereotyped&condition=ambig");
        seen.count = count();
        seen.select = all("select").map((one) => one.value).filter(Boolean);
        seen.shown = texts("select option:checked");
        const search = box().querySelector("input[type=search]");
        search.value = "{chosen["context"].split()[3]}"; search.dispatchEvent(new Event("input"));
        seen.words = location.hash;
        await visit("#c1-examples&confidence=50-80");
        seen.confident = count();
        seen.rows = all(".item").length;
        box().querySelector(".list").dispatchEvent(new KeyboardEvent("keydown", {{ key: "ArrowDown", bubbles: true }}));
        seen.after = location.hash;
        await visit("#c1-examples&category=nothing+such");
        seen.none = count();
        document.body.dispatchEvent(new KeyboardEvent("keydown", {{ key: "/", bubbles: true }}));
        await pause();
        seen.focused = document.activeElement === box().querySelector("input[type=search]");
        """,
    )
    assert seen["name"] == name
    for text in (chosen["prompt"], *chosen["options"]):
        assert text in seen["texts"]
    assert any(chosen["context"] in text for text in seen["texts"])
    assert any(chosen["question"] in text for text in seen["texts"])
    fits = [
        one
        for one in examples
        if one["category"] == "Religion" and "stereotyped" in one["outcome"] and one["condition"] == "ambig"
    ]
    assert seen["count"] == f"{len(fits)} of {len(examples)}"
    assert set(seen["select"]) == {"Religion", "stereotyped", "ambig"}
    assert "ambiguous" in seen["shown"]  # in words, whatever the data set calls it
    assert "category=Religion" in seen["words"]
    assert "words=" in seen["words"]
    sure = [one for one in examples if 0.5 <= one["probabilities"][one["options"].index(one["answer"])] < 0.8]
    assert seen["confident"] == f"{len(sure)} of {len(examples)}"
    assert seen["none"] == f"0 of {len(examples)}"
    assert seen["focused"]
    if sure:
        assert f"example={sure[0]['category']}/{sure[0]['example_id']}" in seen["after"]


def test_a_link_scrolls_to_its_example_and_the_list_keeps_the_focus(folders, tmp_path):
    page = write_report_of(folders[0])
    examples = read_page(page).examples
    names = [f"{one['category']}/{one['example_id']}" for one in examples[:5]]
    seen = driven(
        page,
        tmp_path,
        f"""
        await visit("#c1-examples&example={names[1]}");
        seen.top = box().querySelector(".example").getBoundingClientRect().top / innerHeight;
        seen.bar = all(".bar")[0].getBoundingClientRect().top;
        seen.chosen = texts(".example tr.chosen td:first-child");
        seen.signs = Object.fromEntries(all(".example td .sign").map((one) =>
          [one.textContent, one.closest("tr").cells[0].textContent]));
        const focused = () => document.activeElement === box().querySelector(".list");
        all(".item")[2].click(); seen.clicked = [focused(), location.hash];
        press("Next"); seen.next = [focused(), location.hash];
        document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {{ key: "ArrowDown", bubbles: true }}));
        seen.down = [focused(), location.hash];
        """,
    )
    one = examples[1]
    assert 0 <= seen["top"] < 0.5
    assert seen["bar"] == 0  # it stays in view
    assert seen["chosen"] == [one["answer"]]
    assert seen["signs"]["✓ right"] == one["right_answer"]
    assert seen["signs"]["▲ stereotyped"] == one["stereotyped_answer"]
    for step, name in (("clicked", names[2]), ("next", names[3]), ("down", names[4])):
        is_focused, address = seen[step]
        assert is_focused
        assert address.endswith(f"example={name}")


def test_a_point_and_a_row_lead_to_their_examples(folders, tmp_path):
    page = write_report_of(folders[0])
    examples = read_page(page).examples
    seen = driven(
        page,
        tmp_path,
        """
        const points = all("figure a").map((one) => one.getAttribute("href"));
        seen.point = points.find((one) => one.includes("category=Religion") && one.includes("condition=ambig"));
        await visit(seen.point); seen.points = count();
        const rows = all("tbody th a").map((one) => one.getAttribute("href"));
        seen.template = rows.find((one) => one.includes("template_id="));
        await visit(seen.template); seen.rows = count();
        """,
    )
    ambiguous = [one for one in examples if one["category"] == "Religion" and one["condition"] == "ambig"]
    assert seen["points"] == f"{len(ambiguous)} of {len(examples)}"
    template = re.search(r"template_id=([\w-]+)", seen["template"])[1]
    of_template = [one for one in examples if one["template_id"] == template]
    assert seen["rows"] == f"{len(of_template)} of {len(examples)}"


def test_answers_that_differ_are_counted_and_shown_side_by_side(folders, tmp_path):
    page = write_comparison(compare(folders), tmp_path / "compared")
    one, other = (read_page(write_report_of(folder)).examples for folder in folders)
    differ = [pair for pair in zip(one, other, strict=True) if pair[0]["answer"] != pair[1]["answer"]]
    right = [pair for pair in differ if "right" in {*pair[1]["outcome"]} - {*pair[0]["outcome"]}]
    assert right
    name = f"{right[0][0]['category']}/{right[0][0]['example_id']}"
    seen = driven(
        page,
        tmp_path,
        f"""
        const row = all("tbody tr").find((one) => one.cells[0].textContent === "became right");
        seen.counted = Number(row.cells[1].dataset.v);
        await visit(row.querySelector("a").getAttribute("href") + "&example={name}");
        seen.count = count();
        seen.cells = texts(".example td");
        seen.prompt = texts(".example pre");
        seen.signs = texts(".example td .sign");
        seen.chosen = texts(".example tr.chosen td:first-child");
        """,
    )
    assert seen["counted"] == len(right)
    assert seen["count"] == f"{len(right)} of {len(differ)}"
    assert any("wrong" in cell for cell in seen["cells"])
    assert any("right" in cell and "UNKNOWN" in cell for cell in seen["cells"])
    chosen = {f"● chosen by baseline:{name}" for name in ("random", "unknown")}
    assert chosen | {"✓ right"} <= set(seen["signs"])
    assert sorted(seen["chosen"]) == sorted({pair["answer"] for pair in right[0]})
    assert {one["answer"] for one in right[0]} <= set(seen["cells"])
    assert seen["prompt"] == [right[0][0]["prompt"]]


def test_marks_are_kept_and_saved(folders, tmp_path):
    page = write_report_of(folders[0])
    examples = read_page(page).examples
    names = [f"{one['category']}/{one['example_id']}" for one in examples[:2]]
    seen = driven(
        page,
        tmp_path,
        f"""
        const mark = async (name, kind, note) => {{
          await visit("#c1-examples&example=" + name);
          const [select, input] = document.querySelectorAll(".example select, .example input");
          select.value = kind; input.value = note; input.dispatchEvent(new Event("change"));
        }};
        await mark("{names[0]}", "odd", "=1+1"); await mark("{names[1]}", "", "a, \\"b\\"");
        await visit("#c1-examples&mark=any"); seen.marked = count();
        await visit("#c1-examples&mark=odd"); seen.odd = count();
        press("Marks as CSV"); press("Marks as JSON lines");
        seen.saved = await Promise.all(saved);
        seen.stored = Object.values(localStorage).filter((text) => text.includes("odd")).length;
        """,
    )
    assert seen["marked"].startswith(f"2 of {len(examples)}, 2 marked")
    assert seen["odd"].startswith("1 of")
    assert seen["stored"] == 1
    csv, lines = seen["saved"]
    rows = [json.loads(line) for line in lines.splitlines()]
    assert [(row["example"], row["mark"], row["note"]) for row in rows] == [
        (names[0], "odd", "=1+1"),
        (names[1], "note", 'a, "b"'),
    ]
    assert rows[0]["context"] == examples[0]["context"]
    assert f"{names[0]},odd,'=1+1," in csv
    assert f'{names[1]},note,"a, ""b""",' in csv


def test_hostile_texts_stay_texts_in_the_list(tmp_path):
    run_it = "console.error('run')"
    hostile = f'<img src=https://example.org/x onerror="{run_it}"></template><script>{run_it}</script>'
    analysis = named_everywhere(hostile)
    fill_folder(tmp_path / "run", run=run_of(model=hostile), analysis=analysis)
    page = write_report_of(tmp_path / "run")
    seen = driven(
        page,
        tmp_path,
        """
        await visit("#c1-examples"); all(".item")[0].click();
        await pause();
        seen.texts = texts(".example *").join(" ");
        seen.elements = all("img, .examples script").length;
        seen.loaded = performance.getEntriesByType("resource").length;
        """,
    )
    assert hostile in seen["texts"]
    assert (seen["elements"], seen["loaded"]) == (0, 0)
    frame = tmp_path / "frame.html"  # the page with its policy
    frame.write_text(f'<iframe src="{page.as_uri()}#c1-examples&words=img"></iframe>', encoding="utf-8")
    assert "CONSOLE" not in browse(frame, "--dump-dom").stderr
    fill_folder(tmp_path / "empty", analysis=Analysis(()))
    assert read_page(write_report_of(tmp_path / "empty")).packed == []


def test_codes_are_in_words_and_what_a_model_wrote_stays_as_it_is(tmp_path):
    options = ["ambig", "neg", "constructor"]
    wrote = [{**one, "options": options, "generated": "disambig", "answer": "neg"} for one in EXAMPLES]
    fill_folder(tmp_path / "run", analysis=Analysis((BIAS,), tuple(wrote), "Four."))
    seen = driven(
        write_report_of(tmp_path / "run"),
        tmp_path,
        """
        await visit("#c1-examples"); all(".item")[0].click();
        await pause();
        seen.texts = texts(".example td, .example pre, .example dd");
        """,
    )
    assert {*options, "disambig", "disambiguated"} <= set(seen["texts"])


def test_all_of_bbq_is_small_and_drawn_in_part(tmp_path):
    page = write_report_of(run(RunArguments("bbq", "baseline:random", "all"), tmp_path / "run").folder)
    assert page.stat().st_size < 4e6
    seen = driven(
        page,
        tmp_path,
        """
        seen.before = document.querySelectorAll(".item").length;
        await visit("#c1-examples&words=grandmother"); seen.words = count();
        await visit("#c1-examples"); seen.count = count();
        const list = box().querySelector(".list");
        list.scrollTop = list.scrollHeight; list.dispatchEvent(new Event("scroll"));
        seen.items = all(".item").length; seen.last = all(".item strong").at(-1).textContent;
        """,
    )
    examples = read_page(page).examples
    assert len(examples) == 58_492
    assert seen["count"] == "58,492 of 58,492"
    assert seen["before"] == 0 < seen["items"] < 60
    assert seen["last"] == f"{examples[-1]['category']}/{examples[-1]['example_id']}"
    n_words = sum("grandmother" in " ".join(map(str, one.values())).lower() for one in examples)
    assert seen["words"] == f"{n_words:,} of 58,492"
