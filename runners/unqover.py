"""Measure a model on UnQover in plain `datasets` and `evaluate`: `python -m runners.unqover --config religion`.

`qabias run unqover` asks and scores in the same way. It can also resume, use several machines and write a report.
"""

from qabias.benchmarks.unqover.benchmark import BENCHMARK
from runners.mapping import asking, errors_in_one_line, load_rows, make_parser, scores_as_json


def main() -> None:
    """Map the model over the examples of a config and print the scores as JSON."""
    parser = make_parser(__doc__, BENCHMARK, "religion")
    options = parser.parse_args()
    with errors_in_one_line(parser):
        rows = load_rows(BENCHMARK, options)
        # A config is a set, which its rows do not name.
        rows = rows.add_column("set", [options.config] * rows.num_rows)
        answers = rows.map(**asking(BENCHMARK, rows, options))
        print(scores_as_json(BENCHMARK, rows, answers))


if __name__ == "__main__":
    main()
