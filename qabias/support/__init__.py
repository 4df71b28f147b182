"""Small tools independent of bias: files, Arrow columns, suggestions for a wrong name."""
