"""An audit: one answer per question over all benchmarks, within a budget, resumed to the same bytes."""

import json
import re
import shlex
import shutil
from dataclasses import replace
from functools import partialmethod

import pytest

import qabias
from lab.simulations.audits import Model, choose
from qabias.errors import QabiasError
from qabias.runs import run as running
from qabias.scorers.baseline import BaselineScorer
from qabias.studies import audit as auditing
from qabias.studies.audit import AUDIT_FILE, AUDIT_PAGE, read_audit

from .kit.commands import command, refused

KNOWS, CONTRADICTED, ABSTAINS, CHOOSES, ASSOCIATES, INFERS = (
    "Does it follow stereotypes when it cannot know?",
    "Is it less accurate when facts contradict stereotypes?",
    "Does it abstain more when facts contradict stereotypes?",
    "What does it prefer if it must choose?",
    "Does it associate groups with jobs or conduct?",
    "Does it draw unsupported conclusions more often if they fit a stereotype?",
)


def audited(folder=None, budget=2000, **model):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaselineScorer, "_choose", partialmethod(choose, model=Model(**model), seed=0))
        return qabias.audit("baseline:oracle", output=folder, budget=budget, progress=False)


def by_question(audit):
    return {answer.question: answer for answer in audit.answers}


@pytest.fixture(scope="module")
def accurate(tmp_path_factory):
    return audited(tmp_path_factory.mktemp("audits") / "accurate", errs=0.003)


@pytest.fixture(scope="module")
def biased(tmp_path_factory):
    return audited(tmp_path_factory.mktemp("audits") / "biased", bias=0.6, category="Age", errs=0.003)


@pytest.mark.slow
def test_an_accurate_model_has_no_bias_above_the_threshold(accurate):
    answers = by_question(accurate)
    # It chooses UNKNOWN in nearly all ambiguous contexts, so it is also asked without.
    assert set(answers) == {KNOWS, CONTRADICTED, ABSTAINS, CHOOSES, ASSOCIATES, INFERS}
    states = [auditing.STATES.index(answer.state) for answer in answers.values()]
    assert states == sorted(states)  # the worst first
    for question in (KNOWS, CONTRADICTED, ABSTAINS):
        assert answers[question].state != "yes"
    assert answers[KNOWS].text.endswith("groups.")
    assert answers[ASSOCIATES].state == "not detected"
    assert accurate.state in ("no", "not detected", "undecided")
    assert accurate.facts["about"] == "questions"
    assert accurate.facts["asked"] <= 2000


@pytest.mark.slow
def test_every_answer_rests_on_runs_that_everything_else_reads(accurate):
    page = (accurate.folder / AUDIT_PAGE).read_text("utf-8")
    first = page.index(accurate.answers[0].text.replace("±", "±")[:20])
    assert all(question in page for question in by_question(accurate))
    assert page.index("with qabias ") < first  # which model, and when
    folded = page.split('<details class="chapter">')[1:]
    assert len(folded) == len(accurate.runs)
    names = [chapter.split('">')[1].partition("<")[0] for chapter in folded]  # plain ones, not those of folders
    assert len({*names}) == len(names)
    for name in ("BBNLI", "BBQ without UNKNOWN", "UnQover, gender", "BBQ: bias, ambiguous"):
        assert name in names
        assert page.index(f">{name}</a>") < page.index(folded[0])
    for folder in accurate.runs.values():
        assert qabias.read(folder).scores
        assert command("verify", folder).code == 0
    assert read_audit(accurate.folder) == accurate


@pytest.mark.slow
def test_what_follows_is_a_command_that_works(accurate, biased):
    lines = accurate.notes["Next"].splitlines()
    (wider,) = [shlex.split(line.partition(": ")[2]) for line in lines if "audit" in line]
    assert wider[:2] == ["qabias", "audit"]
    named = dict(zip(wider[2::2], wider[3::2], strict=True))
    assert named.pop("--output") == f"{accurate.folder}-8000"
    assert named == {"--model": "baseline:oracle", "--budget": "8000"}
    assert all(f"{'':10}{line}" in f"{str(accurate).replace('Next', '    ')}" for line in lines)  # in one line each
    assert f"<code>{shlex.join(wider)}</code>" in (accurate.folder / AUDIT_PAGE).read_text("utf-8")
    shown = shlex.split(biased.notes["Next"].splitlines()[0].partition(": ")[2])
    assert command(*shown[1:]).code == 0
    page = biased.page.read_text("utf-8")  # the finding with an example, and its run open
    example = page[page.index('class="one"') : page.index('id="runs"')]
    assert re.search(r"stereotyped</span>.*Right answer: .*#c1-examples&amp;example=Age%2F", example, re.DOTALL)
    assert page.count('<details class="chapter" open>') == 1
    assert "--ask letter " in replace(accurate, facts={**accurate.facts, "ask": "letter"}).notes["Next"]
    assert str(accurate).startswith("Audit of ")


@pytest.mark.slow
def test_stereotypes_in_one_category_are_named(biased):
    answers = by_question(biased)
    assert answers[KNOWS].state == "yes"
    assert "Age" in answers[KNOWS].text
    assert "Religion" not in answers[KNOWS].text


@pytest.mark.slow
def test_a_model_that_always_abstains_is_asked_without_unknown():
    answers = by_question(audited(role="unknown"))
    assert CHOOSES in answers
    assert "abstains" in answers[KNOWS].text


@pytest.mark.slow
def test_a_guessing_model_gets_no_verdict_on_what_it_cannot_do():
    audit = audited(errs=1.0)
    answers = by_question(audit)
    assert "Chance is 33%." in answers[KNOWS].text
    unskilled = (KNOWS, CONTRADICTED, ABSTAINS, INFERS)
    assert {answers[question].state for question in unskilled} == {"not interpretable"}
    assert audit.state == "not interpretable"
    assert "4 of 5 checks not interpretable, none found bias or associations" in str(audit)


def test_a_model_that_writes_nonsense_gets_no_verdict():
    audit = qabias.audit(lambda prompts: ["zxqv"] * len(prompts), name="nonsense", budget=300, progress=False)
    answers = by_question(audit)
    assert "100% of its answers cannot be read" in answers[KNOWS].text
    assert {answer.state for answer in audit.answers} == {"not interpretable"}
    assert "cannot be read" in answers[ASSOCIATES].text
    assert audit.facts["about"] == "templates"


@pytest.mark.slow
def test_a_killed_audit_ends_with_the_same_bytes(tmp_path, monkeypatch):
    audited(tmp_path / "whole", 300, errs=0.003)
    folder, write, n_parts = tmp_path / "killed", running.write_part, 0

    def killed(*args):
        nonlocal n_parts
        write(*args)
        n_parts += 1
        if n_parts in (2, 5, 9):
            raise KeyboardInterrupt

    monkeypatch.setattr(running, "write_part", killed)
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            audited(folder, 300, errs=0.003)
    audited(folder, 300, errs=0.003)
    assert (folder / AUDIT_FILE).read_bytes() == (tmp_path / "whole" / AUDIT_FILE).read_bytes()
    for path in sorted((tmp_path / "whole").rglob("scores.json")):
        assert (folder / path.relative_to(tmp_path / "whole")).read_bytes() == path.read_bytes()


def test_the_command_line_exits_as_check_does(tmp_path):
    ended = command("audit", "--model", "baseline:random", "--budget", "300", "--output", tmp_path / "one")
    assert ended.code == 3
    assert ended.out.count("?") >= 5
    assert "at most 5%" in ended.out
    assert json.loads((tmp_path / "one" / AUDIT_FILE).read_text("utf-8"))["verdict"] == "not interpretable"
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    compared = command("compare", tmp_path / "one", tmp_path / "two")
    assert compared.code == 0
    assert compared.out.count("interpretable") >= 2
    assert "Give two or more" in refused("compare", tmp_path / "one")


@pytest.mark.parametrize(
    ("wrong", "token"),
    [
        (("--threshold", "10"), "threshold"),
        (("--budget", "5"), "budget"),
        (("--model", "baseline:randm"), "randm"),
        (("--ask", "lettr"), "lettr"),
    ],
)
def test_a_wrong_argument_is_named(tmp_path, wrong, token):
    base = () if wrong[0] == "--model" else ("--model", "baseline:random")
    assert token in refused("audit", *base, *wrong, "--output", tmp_path / "run")


def test_a_damaged_audit_is_refused(tmp_path):
    (tmp_path / AUDIT_FILE).write_text('{"answers": [{"question": 1}]}', "utf-8")
    with pytest.raises(QabiasError, match="damaged"):
        read_audit(tmp_path)
    assert read_audit(tmp_path / "none") is None
    assert auditing.STATES[0] == "yes"
