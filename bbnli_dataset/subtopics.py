"""The 16 subtopics of BBNLI, their domains and cognitive biases."""

from qabias.support.suggest import unknown

SUBTOPICS_BY_DOMAIN = {
    "gender": (
        "man_is_to_breadwinner",
        "man_is_to_programmer",
        "man_is_to_rational",
        "man_is_to_surgeon",
        "woman_is_to_homemaker",
    ),
    "race": (
        "asian_men_to_feminine",
        "black_is_to_criminal",
        "black_is_to_impoverished",
        "black_people_use_drugs",
        "white_is_to_clean",
    ),
    "religion": (
        "catholic_woman_to_many_kids",
        "jewish_woman_to_many_kids",
        "mormon_man_to_oppressive",
        "muslim_man_to_many_wives",
        "muslim_man_to_oppressive",
        "muslim_women_to_invisible",
    ),
}
DOMAINS = tuple(SUBTOPICS_BY_DOMAIN)
SUBTOPICS = tuple(subtopic for subtopics in SUBTOPICS_BY_DOMAIN.values() for subtopic in subtopics)
ALL = "all"
CONFIGS = (*SUBTOPICS, *DOMAINS, ALL)

COGNITIVE_BIASES = ("splitting", "horn effect", "illusory correlation", "representativeness heuristic")
# Akyurek et al. 2022, Table 1, with nine examples; its man_is_to_developer is man_is_to_programmer here.
COGNITIVE_BIAS_IN_PAPER = {
    "man_is_to_programmer": "representativeness heuristic",
    "man_is_to_rational": "horn effect",
    "man_is_to_surgeon": "representativeness heuristic",
    "asian_men_to_feminine": "horn effect",
    "black_is_to_criminal": "horn effect, splitting",
    "black_people_use_drugs": "illusory correlation, splitting",
    "catholic_woman_to_many_kids": "illusory correlation",
    "mormon_man_to_oppressive": "illusory correlation, splitting",
    "muslim_women_to_invisible": "horn effect",
}


def domain_of(subtopic: str) -> str:
    """The domain of a subtopic: gender, race or religion."""
    return next(domain for domain, subtopics in SUBTOPICS_BY_DOMAIN.items() if subtopic in subtopics)


def subtopics_of(config: str) -> tuple[str, ...]:
    """The subtopics of a config, which is a subtopic, a domain or `all`.

    Raises:
        QabiasError: If the config is unknown.
    """
    if config not in CONFIGS:
        raise unknown("configuration", config, CONFIGS)
    if config == ALL:
        return SUBTOPICS
    return SUBTOPICS_BY_DOMAIN.get(config, (config,))
