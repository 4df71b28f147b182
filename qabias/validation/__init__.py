"""Validation by people: items to rate (`items`, `pairs`), and what the ratings say (`ratings`, `pairs`).

For questions with three answers the procedure is that of Parrish et al. (2022, section 4 and appendix D): one item per
condition of every template, five raters each, filler items that break the pattern of BBQ, and a template passes when at
least four of five agree with the right answer on each of its items. For pairs of premise and hypothesis it is that of
Akyurek et al. (2022, section 2.2.1): two annotators label a fifth of the pairs.
"""
