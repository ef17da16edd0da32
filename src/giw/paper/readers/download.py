"""Fetching data sets, with checksums, where a network allows it."""

from __future__ import annotations

import os
from pathlib import Path

from giw.paper.readers.files import KNOWN_FILES, KnownFile, checked, data_folder, find_file

FETCHED_EDITIONS = {"mnist": "gz", "cifar100": "python archive"}


def fetch(
    dataset: str,
    data_dir: str | os.PathLike[str] | None = None,
    *,
    base_url: str | None = None,
) -> tuple[Path, ...]:
    """Download the files of a data set that are not there yet, and check their md5 sums.

    A download appears under its name only when it is whole and its checksum is right. Needs the
    package pooch (``pip install 'giw[data]'``).

    Parameters
    ----------
    dataset : {"mnist", "cifar100"}
    data_dir : path, optional
        Data folder, see :func:`giw.paper.readers.catalogue`; files go into its folder ``mnist`` or
        ``cifar100``.
    base_url : str, optional
        A mirror that has the files under their own names; left out, the publishers' addresses.
    """
    if dataset not in FETCHED_EDITIONS:
        raise ValueError(f"dataset is one of {', '.join(FETCHED_EDITIONS)}; got {dataset!r}")
    wanted = (dataset, FETCHED_EDITIONS[dataset])
    files = [known for known in KNOWN_FILES if (known.dataset, known.edition) == wanted]
    return tuple(_fetch_one(known, data_dir, base_url) for known in files)


def _fetch_one(
    known: KnownFile, data_dir: str | os.PathLike[str] | None, base_url: str | None
) -> Path:
    present = find_file(known, data_dir)
    if present is not None:
        return checked(present, known.md5)
    pooch = _pooch()
    url = known.url if base_url is None else f"{base_url.rstrip('/')}/{known.name}"
    folder = data_folder(data_dir) / known.dataset
    try:
        found = pooch.retrieve(url, f"md5:{known.md5}", known.name, folder)
    except OSError as error:  # requests' errors are of this kind, a full disk too
        raise ConnectionError(
            f"could not fetch {url} into {folder}: {error}. Without a network, copy the file there "
            "by hand, or run `giw demo`, which needs no files"
        ) from error
    except ValueError as error:  # pooch names the file and both checksums
        raise ValueError(f"what came from {url} is not {known.name}: {error}") from error
    return Path(found)


def _pooch():  # type: ignore[no-untyped-def]
    try:
        import pooch
    except ImportError:
        raise ImportError(
            "fetching data needs pooch: pip install 'giw[data]'; or copy the files into the data "
            "folder by hand, or run `giw demo`, which needs no files"
        ) from None
    return pooch
