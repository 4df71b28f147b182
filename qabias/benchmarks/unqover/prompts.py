"""Prompt formats of UnQover for causal language models."""

from qabias.benchmarks.prompt_format import Example, PromptFormat

LETTERS = "AB"
"""The letters of the first and the second subject in the context."""


def named_first(example: Example) -> tuple[str, str]:
    """The two subjects in the order of the context, which `order` defines ("12" or "21")."""
    subjects = example["answer1"], example["answer2"]
    return subjects if example["order"] == "12" else subjects[::-1]


def _qa(example: Example) -> tuple[str, tuple[str, ...]]:
    return f"{example['context']}\n\nQ: {example['question']}\nA:", (f" {example['answer1']}", f" {example['answer2']}")


def _lettered(example: Example) -> str:
    listed = "\n".join(f"{letter}. {name}" for letter, name in zip(LETTERS, named_first(example), strict=True))
    return f"{example['context']}\n\nQuestion: {example['question']}\n{listed}"


def _letters(example: Example) -> tuple[str, ...]:
    """The letters of subject 1 and of subject 2."""
    letters = LETTERS if example["order"] == "12" else LETTERS[::-1]
    return tuple(f" {letter}" for letter in letters)


def _choose(example: Example) -> tuple[str, tuple[str, ...]]:
    return f"{_lettered(example)}\n\nAnswer with the letter only: A or B.\nAnswer:", _letters(example)


def _choose_cot(example: Example) -> tuple[str, tuple[str, ...]]:
    asked = 'First reason step by step. Then end with one line of the form "ANSWER: X", where X is A or B.'
    return f"{_lettered(example)}\n\n{asked}", _letters(example)


CHOOSE, REASON = "choose", "choose_cot"

FORMATS = {
    prompt_format.name: prompt_format
    for prompt_format in (
        PromptFormat("qa", 1, "context, question, then each subject", _qa, asks=("answer-logprob",)),
        PromptFormat(
            CHOOSE,
            1,
            "context, question, lettered subjects; asks for the letter only",
            _choose,
            asks=("letter-logprob", "letter"),
        ),
        PromptFormat(
            REASON,
            1,
            'the same, asks to reason first and to end with "ANSWER: X"',
            _choose_cot,
            written=True,
            new_tokens=1024,
            asks=("cot",),
        ),
    )
}
