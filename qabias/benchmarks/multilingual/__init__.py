"""Sets of BBQ's form in other languages: what they share. Each set is a folder of its own beside this one."""
