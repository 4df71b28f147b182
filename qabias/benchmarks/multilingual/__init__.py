"""Sets of BBQ's form in other languages, with cards in `cards` and words in `languages`."""

MODULES = {
    "kobbq": "sets:KOREAN",
    "esbbq": "sets:SPANISH",
    "cabbq": "sets:CATALAN",
    "mbbq": "sets:FOUR_LANGUAGES",
    "ggbbq": "sets:GERMAN",
    "basqbbq": "sets:BASQUE",
    "jbbq": "sets:JAPANESE",
}
"""The modules of this folder that hold a benchmark, by its name."""
