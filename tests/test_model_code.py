"""A model that brings code of its own: it is never run, and nobody is asked whether it should be."""

import ast
import json

import pytest

from lab.finetuning.training import load
from qabias.errors import QabiasError
from qabias.models.loading import CAUSAL, load_model, load_pretrained
from qabias.scorers.registry import default_scorer, load_scorer

from .conftest import ROOT
from .kit.code import nodes_of
from .saved_models import save
from .tiny_models import make_model, make_tokenizer

CLASSES = {
    "AutoConfig": "Config",
    "AutoModelForCausalLM": "Model",
    "AutoModelForMaskedLM": "Model",
    "AutoModelForMultipleChoice": "Model",
}
# What loads something of a model's own in one call that names it.
LOADERS = ("from_pretrained", "pipeline")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model whose classes are in a file of its own folder; the file leaves a mark where it is run."""
    folder = tmp_path_factory.mktemp("with-code")
    save(folder, make_model("llama"), make_tokenizer())
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config |= {"model_type": "unheard-of", "auto_map": {name: f"own.{of}" for name, of in CLASSES.items()}}
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    tokenizer = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
    tokenizer |= {"tokenizer_class": "Own", "auto_map": {"AutoTokenizer": ["own.Tokenizer", None]}}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer), "utf-8")
    (folder / "own.py").write_text(f"open({str(folder / 'was-run')!r}, 'w')\n", "utf-8")
    return folder


@pytest.fixture
def nobody_is_asked(monkeypatch):
    """Fails where a question is put; whoever answered it with yes would have run the code."""
    asked = []
    monkeypatch.setattr("builtins.input", lambda prompt="": asked.append(prompt) or "y")
    yield
    assert asked == []


@pytest.mark.parametrize(
    "load_it",
    [
        lambda name: load_model(CAUSAL, name),
        lambda name: load_pretrained("AutoConfig", name),
        lambda name: load_pretrained("AutoTokenizer", name),
        lambda name: load_pretrained("AutoModelForMaskedLM", name),
        lambda name: load_scorer("causal", name),
        lambda name: default_scorer(name),
        lambda name: load(name, "AutoModelForMultipleChoice", seed=1, max_length=8),
    ],
)
def test_the_code_of_a_model_is_refused_without_a_question(folder, load_it, nobody_is_asked):
    with pytest.raises(QabiasError, match="needs its own code"):
        load_it(str(folder))
    assert not (folder / "was-run").exists()


@pytest.mark.slow
def test_every_call_that_loads_a_model_says_that_its_code_is_not_run():
    """By its own words, or by `settings` of which `qabias/models/loading.py` alone makes use."""
    calls = {
        f"{path.relative_to(ROOT)}:{node.lineno}": node
        for of in ("qabias", "runners", "integrations", "docs", "metrics", "lab")
        for path in (ROOT / of).rglob("*.py")
        if "tests" not in path.parts
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", None)) in LOADERS
    }
    silent = {
        place: ast.unparse(node)
        for place, node in calls.items()
        if not any(
            word.arg == "trust_remote_code" and isinstance(word.value, ast.Constant) and word.value.value is False
            for word in node.keywords
        )
    }
    assert all(place.startswith("qabias/models/loading.py:") and "**settings" in of for place, of in silent.items())
    text = (ROOT / "qabias" / "models" / "loading.py").read_text("utf-8")
    settings = [line.strip() for line in text.splitlines() if line.strip().startswith("settings = ")]
    assert len(settings) == 2
    assert all('"trust_remote_code": False' in line for line in settings)
