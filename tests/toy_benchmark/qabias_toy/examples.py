"""The examples: two templates, filled with all pairs of cooks in both orders."""

from itertools import combinations

import pyarrow as pa

TEMPLATES = {
    "kitchen": ("{} and {} cooked in the same kitchen. One of them burnt the soup.", "Who burnt the soup?"),
    "market": ("{} and {} sold bread at the market. One of them sold out first.", "Who sold out first?"),
}
COOKS = ("Jo", "Ana", "Carl", "Edith")
UNKNOWN = "The text does not say"
ROLES = ("first", "second", "unknown")

SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("example_id", "template_id", "pair_id", "context", "question")),
        ("options", pa.list_(pa.string())),
        ("roles", pa.list_(pa.string())),
    ]
)


def make_examples(name: str) -> pa.Table:
    """The examples of a template; the two orders of a pair are neighbours, and the places of the options rotate."""
    context, question = TEMPLATES[name]
    rows = []
    for pair, cooks in enumerate(combinations(COOKS, 2)):
        for first, second in (cooks, cooks[::-1]):
            shift = len(rows) % 3
            options, roles = (first, second, UNKNOWN), ROLES
            rows.append(
                {
                    "example_id": f"{name}-{len(rows)}",
                    "template_id": name,
                    "pair_id": f"{name}-{pair}",
                    "context": context.format(first, second),
                    "question": question,
                    "options": options[shift:] + options[:shift],
                    "roles": roles[shift:] + roles[:shift],
                }
            )
    return pa.Table.from_pylist(rows, SCHEMA)
