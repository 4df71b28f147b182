"""Files that every metric has; its folder holds a relative link to each."""
