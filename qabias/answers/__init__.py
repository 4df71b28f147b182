"""From what a model gave to what it answered: likelihoods of options, and texts that are read."""

from qabias.answers.choice import parse_choice as parse_choice
from qabias.answers.named import parse_named as parse_named
from qabias.answers.outcomes import NO_ANSWER as NO_ANSWER
from qabias.answers.phrases import Phrases as Phrases
