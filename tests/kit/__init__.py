"""What several test files build: rows and tables of benchmarks, runs, servers, logs."""
