"""Rows from files and frames: read, sampled and encoded as numbers."""

from giw.tables.chunks import Chunks
from giw.tables.encoder import Encoder, encoded
from giw.tables.ray_chunks import ray_chunks, ray_column
from giw.tables.reading import Table, as_table, read_table, table_from_frame
from giw.tables.table_sample import TableSample, read_within, sample_csv, sample_parquet

__all__ = [
    "Chunks",
    "Encoder",
    "Table",
    "TableSample",
    "as_table",
    "encoded",
    "ray_chunks",
    "ray_column",
    "read_table",
    "read_within",
    "sample_csv",
    "sample_parquet",
    "table_from_frame",
]
