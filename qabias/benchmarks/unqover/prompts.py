"""Prompt formats of UnQover for causal language models; encoder models are asked in their own form."""

from qabias.benchmarks.prompt_format import Example, PromptFormat


def _qa(example: Example) -> tuple[str, tuple[str, ...]]:
    return f"{example['context']}\n\nQ: {example['question']}\nA:", (f" {example['answer1']}", f" {example['answer2']}")


FORMATS = {"qa": PromptFormat("qa", 1, "context, question, then each subject", _qa)}
