"""The questions of BBQ as other tools ask them: one module for each tool, which reads its logs."""
