"""Training the models that the papers measure: multiple choice on RACE, spans on SQuAD and NewsQA."""
