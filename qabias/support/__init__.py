"""Small tools that know nothing of bias: files, Arrow columns, suggestions for a name that is not there."""
