"""BBNLI and BBQ as inference (Akyurek et al. 2022): premises and hypotheses."""
