"""What measures and studies qabias, outside the wheel: `python -m lab.NAME` runs each part from a checkout."""
