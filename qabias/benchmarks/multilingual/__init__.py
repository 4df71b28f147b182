"""Sets of BBQ's form in other languages: one module each, with cards in `cards` and words in `languages`."""

MODULES = {
    "kobbq": "kobbq:BENCHMARK",
    "esbbq": "esbbq:SPANISH",
    "cabbq": "esbbq:CATALAN",
    "mbbq": "mbbq:BENCHMARK",
    "ggbbq": "ggbbq:BENCHMARK",
    "basqbbq": "basqbbq:BENCHMARK",
    "jbbq": "jbbq:BENCHMARK",
}
"""The modules of this folder that hold a benchmark, by its name."""
