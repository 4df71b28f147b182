"""A model that was trained on published texts with their answers is found out, and the same model before is not."""

import json
import random
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from qabias.benchmarks import ALL, load_benchmark
from qabias.comparison import compare
from qabias.comparison.familiarity import Familiarity, FamiliarStereotype, FormOfStereotype, familiarity_tables
from qabias.models.loading import CAUSAL, load_model
from qabias.runs.arguments import Machine, RunArguments
from qabias.runs.question import load_examples
from qabias.suites.familiarity import measure_familiarity
from qabias.suites.forms import run_forms
from qabias.tables.model import find

from . import tiny_models
from .compared_runs import called, refused
from .saved_models import make_t5, save

pytestmark = pytest.mark.usefixtures("one_thread")

BBQ = load_benchmark("bbq")
VOCABULARY_SIZE = 1500
# Four sets of four for each of the 25 stereotypes: 100 contexts that hold the answer.
ASKED = {"config": "Religion", "limit": 400}
EPOCHS = 30


def published(upstream):
    """The published examples of the sample that answer their question."""
    examples = load_examples(RunArguments("bbq", "any", source="official", **ASKED), str(upstream)).table
    return [row for row in examples.to_pylist() if row["context_condition"] == "disambig"]


def tokenizer_of(upstream):
    """A byte-level BPE tokenizer that knows both forms equally well."""
    both = [
        load_examples(RunArguments("bbq", "any", source=source, **ASKED), str(upstream)).table
        for source in ("official", "bundled")
    ]
    texts = sorted({text for table in both for name in ("context", "question") for text in table[name].to_pylist()})
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")


def network(seed):
    """A small network with random weights."""
    torch.manual_seed(seed)
    size = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY_SIZE, bos_token_id=0, eos_token_id=1, pad_token_id=1, max_position_embeddings=512, **size
    )
    return transformers.LlamaForCausalLM(config)


def train(model, tokenizer, rows):
    """Train a model on examples with their right answers, as a prompt shows them."""
    texts = []
    for row in rows:
        prefix, options = BBQ.formats["qa"].render(row)
        texts.append([0, *tokenizer(prefix + options[row["label"]], add_special_tokens=False)["input_ids"]])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
    order = random.Random(0)
    model.train()
    for _ in range(EPOCHS):
        order.shuffle(texts)
        for start in range(0, len(texts), 16):
            batch = texts[start : start + 16]
            length = max(map(len, batch))
            tokens = torch.tensor([text + [1] * (length - len(text)) for text in batch])
            real = torch.tensor([[True] * len(text) + [False] * (length - len(text)) for text in batch])
            model(input_ids=tokens, attention_mask=real, labels=tokens.where(real, -100)).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    model.eval()


@pytest.fixture(scope="module")
def measured(upstream, tmp_path_factory):
    """By "untouched" and "tuned": the model's folder, its familiarity and the comparison of its two runs."""
    folder = tmp_path_factory.mktemp("contamination")
    machine = Machine(upstream_dir=str(upstream))
    tokenizer = tokenizer_of(upstream)
    rows = published(upstream)
    assert len({row["context"] for row in rows}) == 100
    model = network(0)
    found = {}
    for name in ("untouched", "tuned"):
        if name == "tuned":
            train(model, tokenizer, rows)
        saved = save(folder / name, model, tokenizer)
        arguments = RunArguments("bbq", saved, source="official,bundled", **ASKED)
        reference = found["untouched"][0] if found else None
        familiarity, _ = measure_familiarity(arguments, reference, output=folder / f"{name}-runs", machine=machine)
        runs = run_forms(arguments, folder / f"{name}-runs", machine)
        found[name] = (saved, familiarity, runs.comparison)
    return found


def over_all(tables, name):
    """Difference and p of all stereotypes in a table."""
    table = find(tables, name)
    columns = [column.name for column in table.columns]
    row = next(row for row in table.rows if row[0] == ALL)
    return row[columns.index("difference")], row[columns.index("p")]


def overall(comparison):
    """Difference, p and p adjusted for the number of scores, by score."""
    rows = find(comparison.analysis.tables, "forms_overall").rows
    return {measure.name: row[3:6] for measure, row in zip(comparison.measures, rows, strict=True)}


@pytest.mark.slow
def test_the_trained_model_is_found_out(measured):
    _, familiarity, comparison = measured["tuned"]
    difference, p, adjusted = overall(comparison)["accuracy_disambig"]
    assert difference.value > 0.2
    assert difference.low > 0
    assert p <= adjusted < 0.01
    for name in ("familiarity", "familiarity_equal", "familiarity_reference"):
        difference, p = over_all(familiarity_tables(familiarity), name)
        assert difference.value > 1
        assert difference.low > 0
        assert p < 0.01


@pytest.mark.slow
def test_the_untouched_model_is_not(measured):
    _, _, comparison = measured["untouched"]
    assert {name: adjusted for name, (_, _, adjusted) in overall(comparison).items() if adjusted < 0.01} == {}


@pytest.mark.slow
def test_networks_that_were_not_trained_are_not_familiar_beside_another_one(measured, upstream, tmp_path):
    """The seeds are the first twelve after that of the reference, none left out."""
    reference, _, _ = measured["untouched"]
    tokenizer = tokenizer_of(upstream)
    p_values = []
    for seed in range(1, 13):
        saved = save(tmp_path / f"network-{seed}", network(seed), tokenizer)
        arguments = RunArguments("bbq", saved, source="official,bundled", **ASKED)
        output = tmp_path / f"{seed}-runs"
        found, _ = measure_familiarity(arguments, reference, output=output, machine=Machine(upstream_dir=str(upstream)))
        p_values.append(over_all(familiarity_tables(found), "familiarity_reference")[1])
    # Without a reference more of them are small than chance alone would have: docs/contamination.md.
    assert min(p_values) >= 0.01
    assert sum(p < 0.05 for p in p_values) <= 1


def test_the_view_says_that_without_a_reference_familiarity_is_no_finding():
    alone, beside = (
        find(familiarity_tables(replace(of, reference=name)), "familiarity_equal").note
        for of, name in ((made_up(0.0), ""), (made_up(0.0, -3.0), "other"))
    )
    assert "Without a reference model a small p-value is no finding" in alone
    assert "small p-value" not in beside


@pytest.mark.slow
def test_the_view_shows_familiarity_where_it_was_measured(measured, upstream, tmp_path):
    _, familiarity, comparison = measured["tuned"]
    tables = [table for table in comparison.analysis.tables if table.name.startswith("familiarity")]
    assert tables == familiarity_tables(familiarity)
    assert "familiarity_reference" in [table.name for table in tables]
    # Of another model it is left out, and this is said.
    folders = [run.folder for run in comparison.runs]
    both = [tmp_path / folder.name for folder in folders]
    for folder, copy in zip(folders, both, strict=True):
        shutil.copytree(folder, copy)
    path = folders[0].parent / "familiarity.json"
    content = json.loads(path.read_text("utf-8"))
    (tmp_path / "familiarity.json").write_text(json.dumps({**content, "model": "other"}), "utf-8")
    other = compare(both, upstream_dir=str(upstream))
    assert not [table for table in other.analysis.tables if table.name.startswith("familiarity")]
    assert any(note.startswith("Familiarity is left out") for note in other.analysis.notes)
    (tmp_path / "familiarity.json").unlink()
    alone = compare(both, upstream_dir=str(upstream))
    assert other.analysis.tables == alone.analysis.tables


@pytest.mark.slow
def test_familiarity_is_the_mean_of_log_likelihoods_that_the_network_gives(measured, upstream):
    """One stereotype by the plainest call of the model: the start token, then the text."""
    saved, familiarity, _ = measured["untouched"]
    loaded = load_model(CAUSAL, saved, device="cpu", dtype="float32")
    (found,) = (of for of in familiarity.stereotypes if of.name == "Religion-05")
    texts = {row["context"] for row in published(upstream) if row["template_id"] == "Religion-05"}
    assert found.published.n_texts == len(texts) == 4

    def of(text):
        tokens = torch.tensor([[0, *loaded.tokenizer(text, add_special_tokens=False)["input_ids"]]])
        with torch.inference_mode():
            logits = loaded.model(tokens).logits[0, :-1].log_softmax(-1)
        return logits.gather(1, tokens[0, 1:, None]).sum().item(), tokens.shape[1] - 1

    scored = [of(text) for text in texts]
    assert found.published.per_token == pytest.approx(np.mean([value / n for value, n in scored]), abs=1e-5)
    assert found.published.log_tokens == pytest.approx(np.mean([np.log(n) for _, n in scored]))
    words = [[word.strip(".,;:?!\"'") for word in text.replace('"', " ").split()] for text in texts]
    alone = np.mean([np.mean([of(f" {word}")[0] for word in of_text]) for of_text in words])
    assert found.published.per_word == pytest.approx(alone, abs=1e-4)


def made_up(gap, reference=None):
    """25 stereotypes whose published texts are likelier by a gap, and differ from the parallel ones at random."""
    rng = np.random.default_rng(0)

    def form(more):
        values = rng.normal([-3 + more, 3.5, -9], [0.1, 0.1, 0.3])
        return FormOfStereotype(5, *values.tolist(), reference)

    stereotypes = [
        FamiliarStereotype(
            f"Age-{number:02d}", "old", "memory", "Age" if number < 12 else "Religion", form(gap), form(0)
        )
        for number in range(25)
    ]
    return Familiarity("bbq", "bbq|", ("official@1", "bundled@1"), "all", "m", "", tuple(stereotypes))


@pytest.mark.parametrize(("gap", "is_found"), [(0.3, True), (0.0, False)])
def test_a_gap_is_found_and_no_gap_is_not(gap, is_found):
    for name in ("familiarity", "familiarity_equal"):
        table = find(familiarity_tables(made_up(gap)), name)
        assert [row[0] for row in table.rows] == ["Age", "Religion", ALL]
        assert [row[-2:] for row in table.rows] == [(12, 120), (13, 130), (25, 250)]
        for row in table.rows:
            assert (row[4] < 0.01) == is_found
            assert (row[3].low > 0) == is_found


# The command


def test_the_command_writes_what_the_comparison_of_both_runs_shows(upstream, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("QABIAS_UPSTREAM", str(upstream))
    monkeypatch.chdir(tmp_path)
    model = save(
        tmp_path / "model", tiny_models.make_model("llama", max_position_embeddings=2048), tiny_models.make_tokenizer()
    )
    common = ("--model", model, "--config", "Religion", "--limit", "100", "--source", "official,bundled")
    output = called(capsys, monkeypatch, "familiarity", "bbq", *common, "--reference-model", model, "--texts", "2")
    assert "Familiarity at equal length and words" in output
    assert "Familiarity minus that of the reference" in output
    # By default both commands have the same folder.
    shown = called(capsys, monkeypatch, "run", "bbq", *common)
    assert "Published minus parallel: Accuracy, ambiguous contexts" in shown
    assert "Familiarity minus that of the reference" in shown
    (folder,) = (tmp_path / "runs").iterdir()
    assert {path.name for path in folder.iterdir()} == {"familiarity.json", "official", "bundled", "comparison"}
    page = (folder / "comparison" / "compare.html").read_text("utf-8")
    assert "Familiarity with the published texts" in page
    # A model has no familiarity beyond its own.
    reference = find(familiarity_tables(_read(folder)), "familiarity_reference")
    assert [row[3].value for row in reference.rows] == [0, 0]
    assert reference.rows[-1][4] == 1


def _read(folder):
    from qabias.comparison.familiarity import read_familiarity

    return read_familiarity(folder / "familiarity.json")


def test_what_cannot_be_measured_is_refused(upstream, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("QABIAS_UPSTREAM", str(upstream))
    t5 = save(tmp_path / "t5", make_t5(), tiny_models.make_tokenizer())
    capsys.readouterr()  # saving shows its progress
    line = refused(capsys, monkeypatch, "familiarity", "bbq", "--model", t5, "--config", "Religion")
    assert "causal language models" in line
    assert "seq2seq" in line
    assert "scorer baseline" in refused(capsys, monkeypatch, "familiarity", "bbq", "--model", "baseline:random")
    assert "bbnli has no parallel form" in refused(capsys, monkeypatch, "familiarity", "bbnli", "--model", t5)
    assert "at least 1" in refused(capsys, monkeypatch, "familiarity", "bbq", "--model", t5, "--texts", "0")
    (tmp_path / "familiarity.json").write_text("{}", "utf-8")
    with pytest.raises(Exception, match=r"familiarity\.json is damaged: .*measure it again"):
        _read(tmp_path)
