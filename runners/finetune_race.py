"""Train a model for multiple choice on RACE, as Parrish et al. (2022) do before BBQ.

Example: python runners/finetune_race.py --model FacebookAI/roberta-base --output models/roberta-base-race; then
qabias run bbq --model models/roberta-base-race. Files have the columns article, question, options (a list) and answer
(A to D). The same command again continues a run that was interrupted.
"""

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
    )
    arguments = parser.parse_args()
    try:
        score = finetune(arguments, "race", "AutoModelForMultipleChoice", race.parse, race.make_task)
    except QabiasError as error:
        parser.exit(EXIT_USER_ERROR, f"finetune_race: error: {error}\n")
    print(f"{arguments.output}: accuracy {100 * score['accuracy']:.1f} % on {score['n']:,} questions")


if __name__ == "__main__":
    main()
