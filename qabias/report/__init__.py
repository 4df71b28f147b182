"""What people read: pages, notebook cards, and terminal output."""
