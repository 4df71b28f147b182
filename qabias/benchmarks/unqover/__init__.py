"""UnQover (Li et al. 2020): underspecified questions about pairs of subjects."""
