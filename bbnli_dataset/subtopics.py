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
