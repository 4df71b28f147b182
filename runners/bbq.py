"""Measure a model on BBQ in plain `datasets` and `evaluate`: `python -m runners.bbq --config Age`.

`qabias run bbq` asks and scores in the same way. It can also resume, use several machines and write a report.
"""

from qabias.benchmarks.bbq.benchmark import BENCHMARK
from runners.mapping import asking, errors_in_one_line, load_rows, make_parser, scores_as_json


def main() -> None:
    """Map the model over the examples of a config and print the scores as JSON."""
    parser = make_parser(__doc__, BENCHMARK, "Age")
    options = parser.parse_args()
    with errors_in_one_line(parser):
        rows = load_rows(BENCHMARK, options)
        answers = rows.map(**asking(BENCHMARK, rows, options))
        print(scores_as_json(BENCHMARK, rows, answers))


if __name__ == "__main__":
    main()
