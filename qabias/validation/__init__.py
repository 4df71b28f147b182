"""Validation by people: items to rate (`items`), and what the ratings say of templates and raters (`ratings`).

The procedure is that of Parrish et al. (2022, section 4 and appendix D): one item per condition of every template, five
raters each, filler items that break the pattern of BBQ, and a template passes when at least four of five agree with
the right answer on each of its items.
"""
