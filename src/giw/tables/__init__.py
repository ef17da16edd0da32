"""Rows from files and frames: read, sampled and encoded as numbers."""

from giw.tables.chunks import Chunks
from giw.tables.encoder import Encoder
from giw.tables.reading import read_table
from giw.tables.sampling import read_within, sample_file
from giw.tables.table import Table, as_table, table_from_frame

__all__ = [
    "Chunks",
    "Encoder",
    "Table",
    "as_table",
    "read_table",
    "read_within",
    "sample_file",
    "table_from_frame",
]
