"""Prompt formats: pure functions from an example to a text and its options."""

from qabias.benchmarks.prompt_format import Example, PromptFormat


def _qa(example: Example) -> tuple[str, tuple[str, ...]]:
    return f"{example['context']}\n\nQ: {example['question']}\nA:", tuple(f" {text}" for text in example["options"])


def _listed(example: Example) -> tuple[str, tuple[str, ...]]:
    listed = "\n".join(f"- {text}" for text in example["options"])
    return f"{example['context']}\n{example['question']}\n{listed}\nAnswer:", tuple(
        f" {text}" for text in example["options"]
    )


FORMATS = {
    prompt_format.name: prompt_format
    for prompt_format in (
        PromptFormat("qa", 1, "context, question, then each option", _qa),
        PromptFormat("listed", 1, "context, question, list of options; then each option", _listed),
    )
}
