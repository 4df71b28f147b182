"""A model that was trained on published texts with their answers is found out, and the same model before is not."""

import random

import pytest
import torch

from qabias.benchmarks import load_benchmark
from qabias.runs.arguments import Machine, RunArguments
from qabias.runs.question import load_examples
from qabias.studies.contamination import run_forms
from qabias.tables.model import find

from .saved_models import save
from .trained_models import make_model, train_tokenizer

pytestmark = pytest.mark.usefixtures("one_thread")

BBQ = load_benchmark("bbq")
# Two sets of four for each of the 25 stereotypes: 50 contexts that hold the answer.
ASKED = {"config": "Religion", "limit": 200}
EPOCHS = 20


def published(upstream):
    """The published examples of the sample that answer their question."""
    examples = load_examples(RunArguments("bbq", "any", source="official", **ASKED)).table
    return [row for row in examples.to_pylist() if row["context_condition"] == "disambig"]


def tokenizer_of(upstream):
    """A byte-level BPE tokenizer that knows both forms equally well."""
    both = [
        load_examples(RunArguments("bbq", "any", source=source, **ASKED)).table for source in ("official", "bundled")
    ]
    texts = sorted({text for table in both for name in ("context", "question") for text in table[name].to_pylist()})
    return train_tokenizer(texts)


def train(model, tokenizer, rows):
    """Train a model on examples with their right answers, as a prompt shows them."""
    texts = []
    for row in rows:
        prefix, options = BBQ.formats["qa"].render(row)
        asked, said = tokenizer([prefix, options[row["label"]]], add_special_tokens=False)["input_ids"]
        learned = [False] * len(asked) + [True] * len(said)
        texts.append((torch.tensor([0, *asked, *said]), torch.tensor(learned)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.0)
    order = random.Random(0)
    model.train()
    for _ in range(EPOCHS):
        order.shuffle(texts)
        for start in range(0, len(texts), 16):
            tokens, learned = (
                torch.nn.utils.rnn.pad_sequence(part, batch_first=True)
                for part in zip(*texts[start : start + 16], strict=True)
            )
            # Only the answers are learned; the logits of all other tokens would take most of the time.
            logits = model.lm_head(model.model(tokens).last_hidden_state[:, :-1][learned])
            torch.nn.functional.cross_entropy(logits, tokens[:, 1:][learned]).backward()
            optimizer.step()
            optimizer.zero_grad()
    model.eval()


@pytest.fixture(scope="module")
def measured(upstream, tmp_path_factory):
    """By "untouched" and "tuned" the comparison of the two runs of a model."""
    folder = tmp_path_factory.mktemp("contamination")
    machine = Machine()
    tokenizer = tokenizer_of(upstream)
    rows = published(upstream)
    assert len({row["context"] for row in rows}) == 50
    model = make_model(vocab_size=len(tokenizer), num_hidden_layers=1)
    found = {}
    for name in ("untouched", "tuned"):
        if name == "tuned":
            train(model, tokenizer, rows)
        saved = save(folder / name, model, tokenizer)
        arguments = RunArguments("bbq", saved, source="official,bundled", **ASKED)
        found[name] = run_forms(arguments, folder / f"{name}-runs", machine).comparison
    return found


def overall(comparison):
    """Difference, p and p adjusted for the number of scores, by score."""
    rows = find(comparison.analysis.tables, "forms_overall").rows
    return {measure.name: row[3:6] for measure, row in zip(comparison.measures, rows, strict=True)}


@pytest.mark.slow
def test_the_trained_model_is_found_out_and_the_untouched_one_is_not(measured):
    difference, p, adjusted = overall(measured["tuned"])["accuracy_disambig"]
    assert difference.value > 0.2
    assert difference.low > 0
    assert p <= adjusted < 0.01
    assert all(adjusted >= 0.01 for _, _, adjusted in overall(measured["untouched"]).values())
