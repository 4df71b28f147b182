"""What people read: pages, cards of notebooks, and scores, tables and comparisons in the terminal."""
