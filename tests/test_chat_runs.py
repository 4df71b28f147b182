"""Runs that ask a chat model in its own form."""

import json

import numpy as np
import pytest
import torch

from qabias.benchmarks.bbq.benchmark import BENCHMARK as BBQ
from qabias.benchmarks.bbq.prompts import FORMATS
from qabias.models.loading import CAUSAL, load_model
from qabias.runs.arguments import RunArguments
from qabias.runs.question import load_examples
from qabias.runs.run import run
from qabias.scorers.causal import CausalScorer
from qabias.scorers.chat import ChatTemplate
from qabias.scorers.generation import GenerationScorer

from .test_chat import folders as folders
from .test_chat import turns, written_one_at_a_time

pytestmark = pytest.mark.usefixtures("one_thread")


def test_a_run_says_in_its_signature_that_it_chatted(folders, tmp_path):
    arguments = RunArguments(
        "bbq", folders["chat"], config="Age", format="letters", limit=8, options={"chat": "yes", "system": "Be brief."}
    )
    result = run(arguments, tmp_path / "run")
    assert (
        "|scorer:causal+chat=yes+system=Be brief.|"
        in json.loads((tmp_path / "run" / "run.json").read_text())["signature"]
    )
    assert sum(result.scores[f"share_position_{place}"] for place in range(3)) == pytest.approx(1)


@pytest.mark.slow
def test_smollm2_answers_by_letters_as_one_at_a_time():
    pytest.importorskip("gguf")
    loaded = load_model(CAUSAL, "smollm2", device="cpu")
    table = load_examples(RunArguments("bbq", config="Age", limit=12)).table
    examples = table.to_pylist()
    requests = [BBQ.request(example, FORMATS["letters"]) for example in examples]
    assert len(requests) == 12
    template = ChatTemplate(loaded)
    scores = CausalScorer(loaded, template=template).score(requests)
    # A letter is one token, so that one pass a question gives all three.
    letters = [loaded.tokenizer.convert_tokens_to_ids(letter) for letter in "ABC"]
    for request, score in zip(requests, scores, strict=True):
        with torch.no_grad():
            logits = loaded.model(torch.tensor([turns(loaded.tokenizer, request.prefix)])).logits[0, -1].double()
        expected = logits.log_softmax(dim=-1)[letters]
        np.testing.assert_allclose(score.loglikelihoods, expected, rtol=0, atol=1e-4)
        assert score.n_tokens.tolist() == [1, 1, 1]
    prompts = [request.prefix for request in requests]
    scorer = GenerationScorer(loaded, template=template, max_new_tokens=2)
    answers = scorer.generate(prompts, [request.key for request in requests])
    assert answers[:2] == written_one_at_a_time(loaded, prompts[:2], 2)
    # A letter that it writes is the likeliest of the three, and is read as that answer.
    lettered = [place for place, (text,) in enumerate(answers) if text.rstrip(".") in ("A", "B", "C")]
    assert len(lettered) > 6
    for place in lettered:
        assert BBQ.read(answers[place][0], "none", examples[place]) == int(scores[place].loglikelihoods.argmax())
