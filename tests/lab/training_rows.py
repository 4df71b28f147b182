"""Small models, rows with a rule to learn, and calls of the fine-tuning runners."""

import json
import random
import sys

from lab.finetuning import qa

from ..tiny_models import make_encoder, make_encoder_tokenizer

NAMES = ("Mary", "James", "Ann", "Mali", "Somalia")
JOBS = ("a senator", "a boy", "a girl", "a man", "a team")
TOKENIZERS = {"bert": "wordpiece", "roberta": "bytes", "deberta-v2": "metaspace"}


def save_pretrained(folder, kind):
    """Write a small language model without a head for what it is about to learn."""
    positions = {"bert": 320, "roberta": 321, "deberta-v2": 320}[kind]
    make_encoder(kind, "AutoModelForMaskedLM", max_position_embeddings=positions).save_pretrained(folder)
    make_encoder_tokenizer(TOKENIZERS[kind]).save_pretrained(folder)
    return str(folder)


def race_rows(n):
    """Questions whose right answer is always the nurse."""
    draw = random.Random(0)
    for _ in range(n):
        name = draw.choice(NAMES)
        options = [*draw.sample(JOBS, 3), "a nurse"]
        draw.shuffle(options)
        question = draw.choice(("Who was this?", f"{name} was _ ."))
        answer = "ABCD"[options.index("a nurse")]
        yield {"article": f"{name} got off the flight.", "question": question, "options": options, "answer": answer}


def qa_rows(n):
    """Questions whose answer is always the one who is visited."""
    draw = random.Random(0)
    for number in range(n):
        guest, host = draw.sample(NAMES, 2)
        context = f"{guest} got off the flight to visit {host}."
        answers = {"text": [host], "answer_start": [context.rindex(host)]}
        yield {"id": str(number), "context": context, "question": "Who was a nurse?", "answers": answers}


def write_lines(path, rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def command(data, model, output, **options):
    """Options of a runner that trains and scores on the same rows."""
    merged = {"train": data, "dev": data, "model": model, "output": output, "max_length": 64, **options}
    return [part for name, value in merged.items() for part in (f"--{name.replace('_', '-')}", str(value))]


def call(runner, options, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [f"{runner.__name__}.py", *options])
    runner.main()
    return capsys.readouterr().out


def windows_of(examples, kind="wordpiece", max_length=64, stride=8):
    return qa.make_windows(examples, make_encoder_tokenizer(kind), ["input_ids"], max_length, stride)
