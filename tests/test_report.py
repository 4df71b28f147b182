"""The report of a run: what it says, what it must never load or run, and what it refuses to read."""

import html.parser
import importlib.util
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import pytest

from qabias.errors import QabiasError
from qabias.report import figures, write_report

CONTEXTS = ("ambig", "disambig")
SIGNATURE = "bbq|source:bundled@1|config:all|model:smollm2@1|scorer:causal|qabias:0.1.0"
VOID = {"br", "hr", "img", "input", "link", "meta", "wbr"}


def scores_of(bias_ambig=0.125, bias_disambig=-0.031, accuracy_ambig=0.4, accuracy_disambig=0.703, width=0.05):
    """Return a metric result with the given headline scores."""
    shares = {f"share_{who}_{c}": share for c in CONTEXTS for who, share in (("target", 0.35), ("nontarget", 0.25))}
    scores = {
        "accuracy_ambig": accuracy_ambig,
        "accuracy_disambig": accuracy_disambig,
        "bias_ambig": bias_ambig,
        "bias_disambig": bias_disambig,
        "accuracy_aligned": 0.75,
        "accuracy_nonaligned": 0.65625,
        "accuracy_cost": -0.09375,
        **shares,
        **{f"share_unknown_{c}": 0.4 for c in CONTEXTS},
        "unparsed_share": 0.025,
    }
    lowest = {key: -1 if key in {"bias_ambig", "bias_disambig", "accuracy_cost"} else 0 for key in scores}
    ci = {k: [None, None] if x is None else [max(lowest[k], x - width), min(1, x + width)] for k, x in scores.items()}
    counts = {"n": 400, "n_ambig": 200, "n_disambig": 200, "n_templates": 25}
    counts |= {"n_unparsed_ambig": 4, "n_unparsed_disambig": 6, "n_undefined_target": 0}
    return {**scores, **counts, "ci": ci}


def results(by_category, **overall):
    return {**scores_of(**overall), "by": {"category": by_category}}


def run_of(**arguments):
    return {
        "benchmark": "bbq",
        "signature": SIGNATURE,
        "created": "2026-11-21T11:00:00+01:00",
        "qabias_version": "0.1.0",
        "versions": {"python": "3.11.7", "torch": "2.13.0"},
        "arguments": {"model": "smollm2", "source": "bundled", "config": "all", "limit": None, "seed": 0, **arguments},
    }


TWO = {"Age": scores_of(0.2, 0.111), "Religion": scores_of(-0.071, 0.063)}


@pytest.fixture
def folder(tmp_path):
    """Return a function that fills a run folder."""

    def fill(scores, run=None):
        run = run_of() if run is None else run
        (tmp_path / "run.json").write_text(json.dumps(run), encoding="utf-8")
        content = {"benchmark": run["benchmark"], "signature": run["signature"], "scores": scores}
        (tmp_path / "scores.json").write_text(json.dumps(content, allow_nan=False), encoding="utf-8")
        return tmp_path

    return fill


class Page(html.parser.HTMLParser):
    """What a browser would find: balanced elements, texts, table rows, ids and addresses."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.ids, self.addresses, self.attributes = [], [], [], [], []
        self.rows, self.texts, self.styles = [], [], []
        self.feed(source)
        self.close()
        assert self.open == []
        # A line that may break is still one word.
        self.text = "".join(self.texts)

    def handle_starttag(self, tag, attrs):
        self._note(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th"}:
            self.rows[-1].append("")

    def handle_startendtag(self, tag, attrs):
        self._note(tag, attrs)

    def _note(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            self.attributes.append((tag, name, value))
            if name == "id":
                self.ids.append(value)
            if name in {"src", "href", "xlink:href", "action", "data", "poster", "srcset"}:
                self.addresses.append((tag, value))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        (self.styles if "style" in self.open else self.texts).append(data)
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data

    def row(self, name):
        """Return the cells of a category in the tables, one list a table."""
        return [cells for cells in ([c.strip() for c in row] for row in self.rows) if cells and cells[0] == name]


def page_of(folder):
    return Page(write_report(folder).read_text(encoding="utf-8"))


def svg_of(text):
    # Inside a page an SVG needs no namespace, which is also the simplest to search.
    return ElementTree.fromstring(text)


def dots(svg, key):
    """Return the places of the dots of one score, in drawing units."""
    (group,) = [g for g in svg.iter("g") if g.get("id", "").endswith(f"dots-{key}")]
    return [(float(use.get("x")), float(use.get("y"))) for use in group.iter("use")]


def test_the_page_is_balanced_small_and_says_what_was_measured(folder):
    path = write_report(folder(results(TWO), run_of(limit=400)))
    assert path.name == "report.html"
    assert path.stat().st_size < 1_000_000
    page = Page(path.read_text(encoding="utf-8"))
    assert len(page.ids) == len(set(page.ids))
    for part in ("smollm2", SIGNATURE, "2026-11-21 10:00 UTC", "400 examples (200 ambiguous, 200 disambiguated)"):
        assert part in page.text
    assert "25 templates in 2 categories" in " ".join(page.text.split())
    assert "2.13.0" in page.text
    assert "10 outputs named no answer (2.5\u00a0%)" in page.text


@pytest.mark.parametrize(
    "sentence",
    [
        "0 is best.",
        "95\u00a0% bootstrap intervals over templates",
        "Small samples give wide intervals",
        "does not prove that a model is unbiased",
        "U.S. English",
        "quotes stereotypes in order to measure them",
        "Parrish",
        "2086–2105",
    ],
)
def test_the_page_says_how_to_read_it_and_what_it_does_not_show(folder, sentence):
    assert sentence in page_of(folder(results(TWO))).text


def test_only_our_own_texts_are_called_unrated(folder):
    assert "not been rated by people" in page_of(folder(results(TWO))).text
    assert "not been rated by people" not in page_of(folder(results(TWO), run_of(source="official"))).text


def test_a_limited_run_is_called_limited(folder):
    assert "it saw a part of the benchmark" in page_of(folder(results(TWO), run_of(limit=8))).text
    assert "it saw a part of the benchmark" not in page_of(folder(results(TWO))).text


def test_the_page_loads_and_runs_nothing(folder):
    page = page_of(folder(results(TWO)))
    assert not {"script", "link", "img", "image", "iframe", "object", "embed", "form", "base"} & set(page.tags)
    for tag, address in page.addresses:
        assert address.startswith("#") or (tag == "a" and address.startswith("https://doi.org/"))
    inner = {address[1:] for _, address in page.addresses if address.startswith("#")}
    clips = {v[5:-1] for _, name, v in page.attributes if name == "clip-path"}
    assert inner | clips <= set(page.ids)
    assert clips
    described = {v for _, name, v in page.attributes if name in {"aria-labelledby", "aria-describedby"}}
    assert described <= set(page.ids)
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    style = "".join(page.styles)
    assert "url(" not in style
    assert "@import" not in style
    assert page.tags.count("style") == 1  # none of Matplotlib's, which would rule the page
    assert ("meta", "content", "default-src 'none'; style-src 'unsafe-inline'") in page.attributes


HOSTILE = ["<script>alert(1)</script>", "$x_1$", "a & b", '"><b onclick="x">', "{{ 7 * 7 }}", r"\alpha$\frac{1}{2}$"]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_show_as_text_everywhere(folder, name):
    run = run_of(model=name, note=name) | {"signature": name, "created": name, "qabias_version": name}
    run["versions"][name] = name
    page = page_of(folder(results({name: scores_of()}), run))
    assert "script" not in page.tags
    assert "b" not in page.tags
    # Title, head, signature, date, version, arguments, tables, figures and their descriptions.
    assert page.text.count(name) >= 14
    assert len(page.row(name)) == 3
    for drawn in (figures.bias_by_category, lambda *a: figures.accuracy_by_category(*a[:2])):
        svg = svg_of(drawn({name: scores_of()}, scores_of(), "ambig"))
        assert name in [text.text for text in svg.iter("text")]


@pytest.mark.parametrize("name", ["tab\tand\nline", "nul\x00", "right\u202eto left", "half \ud800", "言語 🙂"])
@pytest.mark.filterwarnings("error")
def test_odd_characters_do_not_cost_the_report(folder, name):
    run = run_of(model=name)
    page = page_of(folder(results({name: scores_of()}), run))
    assert page.text.count("All") > 3


def test_a_long_category_is_cut_in_the_figure_only(folder):
    name = "a_category_with_a_name_" * 8
    page = page_of(folder(results({name: scores_of()})))
    assert len(page.row(name)) == 3
    labels = [t.text for t in svg_of(figures.bias_by_category({name: scores_of()}, scores_of(), "ambig")).iter("text")]
    assert name not in labels
    assert any(label.endswith("…") for label in labels)


def test_undefined_scores_show_as_a_dash_and_never_as_zero(folder):
    silent = scores_of(0.0, None, 1.0, 0.0)
    unseen = scores_of(None, None, None, None)
    for key in ("accuracy_aligned", "accuracy_cost", "unparsed_share"):
        unseen[key] = None
    unseen |= {"n": 0, "n_ambig": 0, "n_disambig": 0}
    page = page_of(folder(results({"Silent": silent, "Unseen": unseen}, bias_disambig=None)))
    titles = [value for tag, name, value in page.attributes if (tag, name) == ("abbr", "title")]
    assert "undefined: no answer other than UNKNOWN" in titles
    assert "undefined: no answers to count" in titles
    first = page.row("Silent")[0]
    assert first[1].startswith("0.0\u00a0%")
    assert first[2] == "—"
    assert page.row("Unseen")[0][1:5] == ["—"] * 4
    assert page.row("All")[0][2] == "—"
    svg = svg_of(figures.bias_by_category({"Silent": silent, "Other": scores_of()}, scores_of(), "disambig"))
    assert len(dots(svg, "bias_disambig")) == 2
    assert "Silent undefined" in svg.find("desc").text


def test_all_scores_undefined_still_give_a_page(folder):
    nothing = {k: None if isinstance(v, float) else v for k, v in scores_of(None, None, None, None).items()}
    nothing["ci"] = {}
    page = page_of(folder({**nothing, "by": {"category": {"Age": nothing}}}))
    assert page.row("Age")[1][1:] == ["—"] * 3


def test_one_category_or_none_is_enough(folder):
    assert "1 category" in page_of(folder(results({"Age": scores_of()}))).text
    page = page_of(folder(scores_of()))
    assert len(page.row("All")) == 3
    assert "categor" not in next(text for text in page.texts if "400 examples" in text)


def test_scores_without_intervals_show_without_them(folder):
    bare = scores_of()
    del bare["ci"]
    page = page_of(folder({**bare, "by": {"category": {"Age": bare}}}))
    assert page.row("Age")[0][1] == "+12.5\u00a0%"
    assert "no interval: do not read a direction into it" in page.text


def test_every_number_of_the_figures_stands_in_the_table(folder):
    page = page_of(folder(results(TWO)))
    rows = {name: page.row(name)[0] for name in (*TWO, "All")}
    described = 0
    for column, svg in (
        (1, figures.bias_by_category(TWO, results(TWO), "ambig")),
        (2, figures.bias_by_category(TWO, results(TWO), "disambig")),
    ):
        for part in svg_of(svg).find("desc").text.rstrip(".").split("; "):
            name, number = part.split(" ")
            assert rows[name][column].startswith(number)
            described += 1
    for column, key in ((3, "accuracy_ambig"), (4, "accuracy_disambig")):
        for name, cells in rows.items():
            scores = TWO.get(name, results(TWO))
            assert cells[column].startswith(figures.percent(scores[key]))
    assert described == 6
    assert rows["Age"][1] == "+20.0\u00a0%[+15.0, +25.0]"
    assert rows["Religion"][1] == "−7.1\u00a0%[−12.1, −2.1]"
    assert rows["All"][5:] == ["400200 / 200", "25", "102.5\u00a0%"]


def test_dots_lie_where_their_scores_say():
    values = {"A": scores_of(-0.5), "B": scores_of(0.0), "C": scores_of(0.25)}
    svg = svg_of(figures.bias_by_category(values, scores_of(0.1), "ambig"))
    (a, b, c, overall) = dots(svg, "bias_ambig")
    # x is linear in the score: 0.5 units from A to B, 0.25 from B to C, 0.1 from B to all.
    assert (b[0] - a[0]) / (c[0] - b[0]) == pytest.approx(2, rel=1e-3)
    assert (c[0] - b[0]) / (overall[0] - b[0]) == pytest.approx(2.5, rel=1e-3)
    assert a[0] < b[0] < c[0]
    # Rows run downwards in the order given, the overall row set apart.
    assert a[1] < b[1] < c[1] < overall[1]
    assert overall[1] - c[1] > 1.2 * (c[1] - b[1])


def test_both_bias_figures_share_one_scale():
    values = {"A": scores_of(0.02, 0.9)}
    left, right = (svg_of(figures.bias_by_category(values, scores_of(), c)) for c in CONTEXTS)
    ticks = [[t.text for t in svg.iter("text") if t.text and t.text.endswith("%")] for svg in (left, right)]
    assert ticks == [["−100 %", "0 %", "+100 %"]] * 2


@pytest.mark.parametrize(
    ("bias", "limit"), [(0.0, 0.1), (0.04, 0.1), (0.06, 0.25), (-0.2, 0.25), (-0.21, 0.5), (1.0, 1.0), (None, 0.1)]
)
def test_bias_axis_holds_the_scores_and_their_intervals(bias, limit):
    # The helper's intervals reach 0.05 to both sides.
    assert figures.bias_axis_limit([scores_of(bias, 0.0)]) == limit


def test_no_scores_at_all_have_an_axis():
    assert figures.bias_axis_limit([]) == 0.1


@pytest.mark.parametrize(
    ("value", "signed", "text"),
    [
        (0.1234, True, "+12.3 %"),
        (0.1234, False, "12.3 %"),
        (-0.5, True, "−50.0 %"),
        (0.0, True, "0.0 %"),
        (-0.0, True, "0.0 %"),
        (-0.0004, True, "0.0 %"),
        (1.0, True, "+100.0 %"),
        (1, False, "100.0 %"),
        (None, True, "—"),
    ],
)
def test_percent(value, signed, text):
    assert figures.percent(value, signed) == text.replace(" ", "\u00a0")


@pytest.mark.parametrize(
    ("bias", "words"),
    [
        (0.2, "lean towards the stereotypes"),
        (-0.2, "lean against the stereotypes"),
        (0.05, "includes 0"),
        (0.0, "includes 0"),
    ],
)
def test_a_direction_is_named_only_where_the_interval_bears_it_out(folder, bias, words):
    page = page_of(folder(results(TWO, bias_ambig=bias, bias_disambig=None)))
    assert words in page.text
    assert ("lean" in page.text.replace("leaned neither way", "")) == ("lean" in words)


def test_two_writes_give_the_same_bytes_whatever_the_user_has_set(folder, monkeypatch):
    path = write_report(folder(results(TWO)))
    first = path.read_bytes()
    monkeypatch.setitem(matplotlib.rcParams, "font.size", 30)
    monkeypatch.setitem(matplotlib.rcParams, "axes.linewidth", 9)  # a setting of which our style says nothing
    monkeypatch.setitem(matplotlib.rcParams, "svg.hashsalt", "another")
    before = dict(matplotlib.rcParams)
    assert write_report(path.parent).read_bytes() == first
    assert dict(matplotlib.rcParams) == before
    assert sorted(p.name for p in path.parent.iterdir()) == ["report.html", "run.json", "scores.json"]


def test_figures_take_their_colours_from_the_page():
    for svg in (
        figures.bias_by_category(TWO, scores_of(), "ambig"),
        figures.bias_by_category(TWO, scores_of(None, None), "disambig"),
        figures.accuracy_by_category(TWO, scores_of()),
    ):
        assert not re.search("#[0-9a-f]{6}", svg)
        # Texts without a colour of their own would stay black on the dark page.
        assert all("fill: var(--" in text.get("style") for text in svg_of(svg).iter("text"))
        assert not re.search("DejaVu Sans'[^;]*; fill: #", svg)


def contrast(one, other):
    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_colours_have_contrast_in_both_schemes(folder):
    style = "".join(page_of(folder(results(TWO))).styles)
    schemes = [dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block)) for block in re.findall(r":root \{([^}]*)\}", style)]
    assert len(schemes) == 2
    for scheme in schemes:
        for ground in ("paper", "panel"):
            assert contrast(scheme["ink"], scheme[ground]) >= 7
            assert contrast(scheme["muted"], scheme[ground]) >= 4.5
        assert contrast(scheme["link"], scheme["paper"]) >= 4.5
        assert contrast(scheme["first"], scheme["paper"]) >= 3
        assert contrast(scheme["second"], scheme["paper"]) >= 3


@pytest.mark.parametrize("name", ["run.json", "scores.json"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "does not exist; .*`qabias "),
        (b"", "is damaged: "),
        (b'{"benchmark": "bbq"', "is damaged: "),
        (b"[]", "is damaged: the content is missing or no object"),
        (b"\xff\xfe", "is damaged: "),
        (b'{"x": NaN}', "is damaged: NaN is not strict JSON"),
        (b"[" * 100_000, "is damaged: "),
    ],
)
def test_missing_and_damaged_files_are_named(folder, name, content, message):
    file = folder(results(TWO)) / name
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)
    with pytest.raises(QabiasError, match=f"{name} {message}"):
        write_report(file.parent)
    assert not (file.parent / "report.html").exists()


def test_an_unknown_benchmark_lists_those_with_a_report(folder):
    run = run_of() | {"benchmark": "bbx"}
    with pytest.raises(
        QabiasError, match=r"run.json: there is no report for the benchmark 'bbx'; there is one for bbnli, bbq, bbq_nli"
    ):
        write_report(folder(results(TWO), run))


@pytest.mark.parametrize("key", ["benchmark", "signature", "created", "qabias_version", "versions", "arguments"])
def test_every_part_of_run_json_is_needed(folder, key):
    path = folder(results(TWO))
    run = run_of()
    del run[key]
    (path / "run.json").write_text(json.dumps(run), encoding="utf-8")
    with pytest.raises(QabiasError, match=rf"run.json is damaged: .*{key}"):
        write_report(path)


def test_scores_of_another_run_are_refused(folder):
    path = folder(results(TWO))
    (path / "run.json").write_text(json.dumps(run_of() | {"signature": "bbq|other"}), encoding="utf-8")
    with pytest.raises(QabiasError, match=r"scores.json: its signature .* is not that of run.json, 'bbq\|other'"):
        write_report(path)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("bias_ambig", 1.5, r"bias_ambig holds 1.5, not null or a number from -1 to 1"),
        ("accuracy_ambig", -0.5, r"accuracy_ambig holds -0.5, not null or a number from 0 to 1"),
        ("bias_ambig", "high", "bias_ambig holds 'high'"),
        ("bias_ambig", True, "bias_ambig holds True"),
        ("n", None, "n is None, not a count"),
        ("n_templates", 2.5, "n_templates is 2.5, not a count"),
        ("n_unparsed_ambig", -1, "n_unparsed_ambig is -1, not a count"),
        ("ci", [], "ci is missing or no object"),
        ("ci", {"bias_ambig": [0.1]}, r"ci.bias_ambig is \[0.1\], not a pair"),
        ("ci", {"bias_ambig": [0.1, 7]}, "bias_ambig holds 7"),
    ],
)
@pytest.mark.parametrize("where", ["scores", "scores.by.category.Age"])
def test_impossible_scores_are_named(folder, key, value, message, where):
    broken = scores_of() | {key: value}
    scores = {**broken, "by": {}} if where == "scores" else results({"Age": broken})
    with pytest.raises(QabiasError, match=rf"scores.json is damaged: {where}\.{message}"):
        write_report(folder(scores))


def test_a_missing_score_is_named(folder):
    broken = scores_of()
    del broken["share_unknown_ambig"]
    with pytest.raises(QabiasError, match=r"scores.by.category.Age lacks 'share_unknown_ambig'"):
        write_report(folder(results({"Age": broken})))


def test_an_infinite_number_is_refused(folder):
    path = folder(results(TWO))
    text = (path / "scores.json").read_text(encoding="utf-8")
    (path / "scores.json").write_text(text.replace("0.703", "1e999"), encoding="utf-8")
    with pytest.raises(QabiasError, match="accuracy_disambig holds inf"):
        write_report(path)


@pytest.mark.parametrize("value", [3, "x", [1], None])
def test_a_breakdown_of_another_shape_is_refused(folder, value):
    with pytest.raises(QabiasError, match=r"scores.by.category is missing or no object"):
        write_report(folder({**scores_of(), "by": {"category": value}}))


def test_a_failed_write_is_reported_and_leaves_nothing(folder):
    path = folder(results(TWO))
    (path / "report.html").mkdir()
    with pytest.raises(QabiasError, match=r"cannot write .*report.html"):
        write_report(path)
    assert sorted(p.name for p in path.iterdir()) == ["report.html", "run.json", "scores.json"]


def test_the_metric_gives_every_key_the_report_asks_for():
    file = Path(__file__).parent.parent / "metrics" / "bbq" / "scores.py"
    spec = importlib.util.spec_from_file_location("bbq_scores", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    result = module.summarize([[0] * len(module.FIELDS)] * 2, n_bootstrap=5)
    assert set(scores_of()) <= set(result)
    assert set(scores_of()["ci"]) == set(module.SCORES)
