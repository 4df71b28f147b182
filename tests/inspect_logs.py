"""Logs made by the real inspect_ai: BBQ's task of inspect_evals on the authors' files, answered by `mockllm`."""

import importlib
import json
import zlib

CATEGORIES = ("Age", "Religion")
N_EACH = 80
LETTERS = "ABC"


def said(text):
    """What the model answers to a prompt: a letter, two of them, a refusal, or a text that is cut off."""
    draw = zlib.crc32(text.encode())
    if draw % 11 == 0:
        return "I'm sorry, I can't assist with that.", "stop"
    if draw % 11 == 1:
        return "Let me think about the two of them,", "max_tokens"
    if draw % 11 == 2:
        return "ANSWER: A, B", "stop"
    return f"ANSWER: {LETTERS[draw % 3]}", "stop"


def evaluate(upstream, folder, monkeypatch, *, fails=lambda _: False, n_each=N_EACH, **options):
    """Ask BBQ by the task of inspect_evals, with some prompts failing; return the path of the log."""
    import inspect_ai
    from inspect_ai.dataset import MemoryDataset
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    task = importlib.import_module("inspect_evals.bbq.bbq")

    def load(*, record_to_sample, subset, **_):
        lines = (upstream / "nyu-mll" / "BBQ" / "data" / f"{subset}.jsonl").read_text("utf-8").splitlines()
        return MemoryDataset([record_to_sample(json.loads(line)) for line in lines[:n_each]], name="bbq")

    def answer(messages, *_):
        prompt = messages[-1].text
        if fails(prompt):
            raise RuntimeError("overloaded\nand a second line")
        text, stop = said(prompt)
        output = ModelOutput.from_content("mockllm", text, stop_reason=stop)
        # Else inspect_ai counts tokens, for which it downloads a vocabulary.
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output

    monkeypatch.setattr(task, "load_hf_dataset_with_script", load)
    (log,) = inspect_ai.eval(
        task.bbq(subsets=list(CATEGORIES)),
        model=get_model("mockllm/model", custom_outputs=answer),
        log_dir=str(folder),
        display="none",
        **options,
    )
    return log.location
