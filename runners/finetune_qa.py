"""Train a model to answer by spans on SQuAD or NewsQA, as Li et al. (2020) do before UnQover.

Example: python runners/finetune_qa.py --model FacebookAI/roberta-base --output models/roberta-base-squad; then
qabias run unqover --model models/roberta-base-squad. NewsQA is given with --train and --dev; files have the columns
context, question and answers (an object of the lists text and answer_start). The authors trained on MultiQA's NewsQA,
whose contexts begin with a header; nothing is put before contexts here. A model that was trained on these is measured
with --option header=newsqa. Settings are the authors' unless they are given: batches of 20, rate 3e-5, 2 epochs, seed
3435, and by the recipe windows of 384 (SQuAD) or 336 tokens (NewsQA). The same command again continues a run that was
interrupted.
"""

import argparse

from qabias.errors import QabiasError
from qabias.finetuning import qa
from qabias.finetuning.arguments import EXIT_USER_ERROR, finetune, make_parser


def _make_parser() -> argparse.ArgumentParser:
    """The options with the settings for SQuAD as defaults."""
    parser = make_parser(
        __doc__,
        "FacebookAI/roberta-base",
        "rajpurkar/squad",
        "plain_text",
        epochs=2,
        learning_rate=3e-5,
        batch_size=20,
        seed=3435,
    )
    parser.add_argument(
        "--recipe",
        choices=sorted(qa.RECIPES),
        help="whose window length and rule are the defaults; without it by the name of the data",
    )
    parser.add_argument(
        "--stride", type=int, default=128, help="tokens from the start of a window of a context to that of the next"
    )
    parser.add_argument(
        "--windows",
        choices=qa.WINDOWS,
        help="windows to train on: those that hold an answer, the first of these for each question, or all",
    )
    parser.set_defaults(**qa.RECIPES["squad"])
    return parser


def main() -> None:
    """Train and print exact match and F1 on the development rows, beside the published F1 where there is one."""
    parser = _make_parser()
    given = parser.parse_args()
    data = given.recipe or str(given.train or given.dataset)
    recipe = qa.data_set(data)
    if recipe is None:
        parser.exit(
            EXIT_USER_ERROR,
            f"finetune_qa: error: {data} names neither squad nor newsqa; say by --recipe whose windows these are\n",
        )
    parser.set_defaults(**qa.RECIPES[recipe])
    arguments = parser.parse_args()
    how = "as --recipe says" if given.recipe else f"by the name of {data}; --recipe chooses another"
    print(
        f"recipe {recipe} ({how}): windows of {arguments.max_length} tokens that begin {arguments.stride} apart, "
        f"trained on: {arguments.windows}"
    )
    choices = {"stride": arguments.stride, "windows": arguments.windows}
    try:
        score = finetune(arguments, "qa", "AutoModelForQuestionAnswering", qa.parse, qa.make_task, **choices)
    except QabiasError as error:
        parser.exit(EXIT_USER_ERROR, f"finetune_qa: error: {error}\n")
    print(
        f"{arguments.output}: exact match {100 * score['exact_match']:.1f}, F1 {100 * score['f1']:.1f} "
        f"on {score['n']:,} questions"
    )
    published = qa.published_f1(arguments.model, data)
    beside = f" (Li et al. 2020, {published[0]}: {published[1]})" if published else ""
    print(f"F1 in the windows that hold the answer: {100 * score['f1_answer_windows']:.1f}{beside}")


if __name__ == "__main__":
    main()
