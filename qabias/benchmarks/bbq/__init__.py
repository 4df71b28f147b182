"""BBQ (Parrish et al. 2022): questions about two people with three answers."""
