"""Clean samples, before any shift."""

from giw.data.augmentation import Augmentation
from giw.data.chunks import Chunks
from giw.data.cifar100 import cifar20, cifar_edition
from giw.data.digits import digits
from giw.data.download import fetch
from giw.data.files import FileStatus, KnownFile, catalogue, data_folder
from giw.data.four_squares import four_squares
from giw.data.images import resize_images, unit_pixels
from giw.data.mnist import colored, mnist
from giw.data.ray_chunks import ray_chunks, ray_column
from giw.data.sample import Sample
from giw.data.table_encoder import TableEncoder
from giw.data.table_sample import TableSample, read_within, sample_csv, sample_parquet
from giw.data.tables import Table, read_table, table_from_frame

__all__ = [
    "Augmentation",
    "Chunks",
    "FileStatus",
    "KnownFile",
    "Sample",
    "Table",
    "TableEncoder",
    "TableSample",
    "catalogue",
    "cifar20",
    "cifar_edition",
    "colored",
    "data_folder",
    "digits",
    "fetch",
    "four_squares",
    "mnist",
    "ray_chunks",
    "ray_column",
    "read_table",
    "read_within",
    "resize_images",
    "sample_csv",
    "sample_parquet",
    "table_from_frame",
    "unit_pixels",
]
