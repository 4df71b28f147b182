"""A model of inspect_ai that says what a test wants it to say."""

import inspect_ai
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    modelapi,
)

SAYS = {}
"""What it says to a prompt: a text, an output, or an exception that it raises; a list is said one after the other."""


@modelapi(name="scripted")
class Scripted(ModelAPI):
    """Says what stands in `SAYS`; found again by its name when an evaluation is retried."""

    async def generate(self, input, tools, tool_choice, config):
        said = SAYS[input[-1].text]
        said = said.pop(0) if isinstance(said, list) else said
        if isinstance(said, Exception):
            raise said
        return output(said) if isinstance(said, str) else said


def output(content, finish="stop"):
    """An output with its usage, which inspect would otherwise count with files from the network."""
    choice = ChatCompletionChoice(message=ChatMessageAssistant(content=content), stop_reason=finish)
    return ModelOutput(model="scripted", choices=[choice], usage=ModelUsage(input_tokens=1, output_tokens=1))


def evaluate(task, says, folder, **options):
    """Let the model answer a task by what it says to each question's key; return the log."""
    SAYS.clear()
    SAYS.update({sample.input: says[sample.id] for sample in task.dataset})
    (log,) = inspect_ai.eval(
        task, model="scripted/model", log_dir=str(folder), display="none", score_display=False, **options
    )
    return log


def metrics_of(log):
    """The metrics of a log by name."""
    (score, *_) = log.results.scores
    return {name: metric.value for name, metric in score.metrics.items()}
