"""Everything that may go wrong, done on purpose and at length: `make campaign`."""
