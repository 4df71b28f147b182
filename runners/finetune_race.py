"""Train a model for multiple choice on RACE, as Parrish et al. (2022) do before BBQ.

Example: python runners/finetune_race.py --model FacebookAI/roberta-base --output models/roberta-base-race; then
qabias run bbq --model models/roberta-base-race. Files have the columns article, question, options (a list) and answer
(A to D). Settings are those of the paper (3 epochs, rate 1e-5, batches of 16) and of the recipe that its repository
links to (github.com/zphang/lrqa): 512 tokens, a tenth of the steps warms up, the answer stands behind the question, and
the best checkpoint on the validation split is kept. The same command again continues a run that was interrupted.
"""

from functools import partial

from qabias.errors import QabiasError
from qabias.finetuning import race
from qabias.finetuning.arguments import EXIT_USER_ERROR, finetune, make_parser


def main() -> None:
    """Train and print the accuracy on the development rows."""
    parser = make_parser(
        __doc__,
        "FacebookAI/roberta-base",
        "ehovy/race",
        "all",
        epochs=3,
        learning_rate=1e-5,
        batch_size=16,
        max_length=512,
        warmup_ratio=0.1,
        keep="best",
        save_steps=1000,
    )
    parser.add_argument(
        "--gaps",
        choices=race.GAPS,
        default=race.GAPS[0],
        help="where an answer to a question with a gap stands: behind the question, or in the gap",
    )
    arguments = parser.parse_args()
    parse = partial(race.parse, gaps=arguments.gaps)
    noted = {"gaps": arguments.gaps}
    try:
        score = finetune(arguments, "race", "AutoModelForMultipleChoice", parse, race.make_task, noted)
    except QabiasError as error:
        parser.exit(EXIT_USER_ERROR, f"finetune_race: error: {error}\n")
    print(f"{arguments.output}: accuracy {100 * score['accuracy']:.1f} % on {score['n']:,} questions")


if __name__ == "__main__":
    main()
