"""Train a model to answer by spans on SQuAD or NewsQA, as Li et al. (2020) do before UnQover.

Example: python runners/finetune_qa.py --model FacebookAI/roberta-base --output models/roberta-base-squad; then
qabias run unqover --model models/roberta-base-squad. NewsQA is given with --train and --dev. Files have the columns
context, question and answers (an object of the lists text and answer_start). A model that was trained on NewsQA is
measured with --option header=newsqa. The same command again continues a run that was interrupted.
"""

from qabias.errors import QabiasError
from qabias.finetuning import qa
from qabias.finetuning.arguments import EXIT_USER_ERROR, finetune, make_parser


def main() -> None:
    """Train and print exact match and F1 on the development rows, beside the published F1 where there is one."""
    parser = make_parser(
        __doc__,
        "FacebookAI/roberta-base",
        "rajpurkar/squad",
        "plain_text",
        epochs=2,
        learning_rate=3e-5,
        batch_size=12,
        max_length=384,
    )
    parser.add_argument("--stride", type=int, default=128, help="tokens that neighbouring windows of a context share")
    parser.add_argument(
        "--windows",
        choices=("answer", "all"),
        default="answer",
        help="windows to train on: that hold an answer, or all",
    )
    arguments = parser.parse_args()
    choices = {"stride": arguments.stride, "windows": arguments.windows}
    try:
        score = finetune(arguments, "qa", "AutoModelForQuestionAnswering", qa.parse, qa.make_task, **choices)
    except QabiasError as error:
        parser.exit(EXIT_USER_ERROR, f"finetune_qa: error: {error}\n")
    print(
        f"{arguments.output}: exact match {100 * score['exact_match']:.1f}, F1 {100 * score['f1']:.1f} "
        f"on {score['n']:,} questions"
    )
    published = qa.published_f1(arguments.model, str(arguments.train or arguments.dataset))
    beside = f" (Li et al. 2020, {published[0]}: {published[1]})" if published else ""
    print(f"F1 in the windows that hold the answer: {100 * score['f1_answer_windows']:.1f}{beside}")


if __name__ == "__main__":
    main()
