"""Loading models and tokenizers, with one readable error."""
