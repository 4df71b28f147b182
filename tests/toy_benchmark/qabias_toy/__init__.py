"""A benchmark of two templates: does a model blame, or praise, the cook who is named first?"""

NAME = "toy"
