"""The clean images and points that the paper starts from."""

from giw.paper.readers.cifar100 import cifar20, cifar_edition
from giw.paper.readers.digits import digits
from giw.paper.readers.download import fetch
from giw.paper.readers.files import FileStatus, KnownFile, catalogue, data_folder
from giw.paper.readers.four_squares import four_squares
from giw.paper.readers.mnist import colored, mnist
from giw.paper.readers.sample import Sample

__all__ = [
    "FileStatus",
    "KnownFile",
    "Sample",
    "catalogue",
    "cifar20",
    "cifar_edition",
    "colored",
    "data_folder",
    "digits",
    "fetch",
    "four_squares",
    "mnist",
]
