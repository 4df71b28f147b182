"""`inspect eval` of our tasks with inspect's own provider writes the very answers that `qabias run` writes."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("inspect_ai", reason="inspect_ai is not installed (pip install '.[inspect]')")

from inspect_ai.log import read_eval_log

from qabias.runs.arguments import RunArguments
from qabias.runs.folder import read_answers, read_run
from qabias.runs.question import read_question
from qabias.runs.run import run

from .conftest import ROOT
from .inspect_models import metrics_of
from .test_chat import chat_model
from .tiny_models import make_model

LIMIT, TOKENS = 40, 6


@pytest.mark.slow
def test_a_model_of_inspect_writes_what_it_writes_in_a_run(tmp_path, one_thread):
    # The tokenizer puts a start token before every text and the template writes one too, as Llama's do.
    model = str(tmp_path / "model")
    make_model("llama", max_position_embeddings=2048).save_pretrained(model)
    chat_model(adds_bos=True).tokenizer.save_pretrained(model)
    options = {"mode": "generate", "chat": "yes", "max_new_tokens": str(TOKENS)}
    arguments = RunArguments(
        "bbq", model, "Age", format="letters", scorer="causal", limit=LIMIT, options=options, dtype="float32"
    )
    ours = run(arguments, tmp_path / "run")
    question = read_question(read_run(tmp_path / "run"))
    answers, _ = read_answers(read_run(tmp_path / "run"), question.benchmark, question.parts)
    expected = {
        f"{row['category']}/{row['example_id']}": (of["outputs"][0], of["prediction"])
        for row, of in zip(question.table.to_pylist(), answers.to_pylist(), strict=True)
    }
    command = [
        *(sys.executable, "-m", "inspect_ai", "eval", f"{ROOT}/integrations/inspect/tasks.py@qabias_bbq"),
        *("--model", "hf/local", "-M", f"model_path={model}", "-M", "device=cpu", "-M", "do_sample=false"),
        *("-M", 'tokenizer_call_args={"add_special_tokens": false}'),
        *("-T", "config=Age", "-T", f"limit={LIMIT}", "--max-tokens", str(TOKENS), "--max-connections", str(LIMIT)),
        *("--log-dir", str(tmp_path / "logs"), "--display", "none", "--no-score-display"),
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    log = read_eval_log(str(next((tmp_path / "logs").glob("*.eval"))))
    found = {
        sample.id: (sample.output.completion, sample.scores["qabias"].metadata["prediction"]) for sample in log.samples
    }
    assert found == expected
    assert len({text for text, _ in found.values()}) > 1
    assert metrics_of(log)["unparsed_share"] == ours.scores["unparsed_share"]
