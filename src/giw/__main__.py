"""``python -m giw`` is ``giw``."""

from giw.cli import app

app(prog_name="giw")
