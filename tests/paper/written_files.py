"""Small files in each format, written here as their publishers write them."""

import gzip
import hashlib
import io
import pickle
import struct
import tarfile
from dataclasses import replace

import numpy as np

from giw.paper import files
from giw.paper.cifar import FINE_NAMES, SUPERCLASSES
from giw.paper.files import KNOWN_FILES

FINE_TO_COARSE = np.array(
    [next(i for i, five in enumerate(SUPERCLASSES.values()) if fine in five) for fine in FINE_NAMES]
)


def accept(monkeypatch, root):
    """The files under a folder take the place of the published ones of the same name."""
    sums = {
        path.relative_to(root).as_posix(): hashlib.md5(path.read_bytes()).hexdigest()
        for path in root.rglob("*")
        if path.is_file()
    }
    known = tuple(
        replace(file, md5=next((s for n, s in sums.items() if n.endswith(file.name)), file.md5))
        for file in KNOWN_FILES
    )
    monkeypatch.setattr(files, "KNOWN_FILES", known)


def idx_bytes(array):
    """An idx file."""
    header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(np.uint8).tobytes()


def write_mnist(folder, *, n=30, packed=True, seed=0):
    """All four files, with n training and n // 2 test images; gives the training arrays."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    for prefix, size in (("t10k", n // 2), ("train", n)):
        images = rng.integers(0, 256, (size, 28, 28), dtype=np.uint8)
        labels = (np.arange(size) % 10).astype(np.uint8)
        for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
            raw = idx_bytes(array)
            name = f"{prefix}-{kind}-ubyte" + ".gz" * packed
            (folder / name).write_bytes(gzip.compress(raw) if packed else raw)
    return images, labels


def cifar_arrays(n=200, seed=0):
    """Images as planes (n, 3072), fine and coarse labels."""
    rng = np.random.default_rng(seed)
    fine = (np.arange(n) % 100).astype(np.uint8)
    planes = rng.integers(0, 256, (n, 3072), dtype=np.uint8)
    return planes, fine, FINE_TO_COARSE[fine].astype(np.uint8)


def python2_pickle(planes, fine, coarse):
    """The dictionary as Python 2 pickled it: protocol 2, text as byte strings."""

    def text(value):
        return b"U" + bytes([len(value)]) + value  # SHORT_BINSTRING

    def integer(value):
        return b"J" + struct.pack("<i", value)  # BININT

    def integers(values):
        return b"](" + b"".join(integer(int(v)) for v in values) + b"e"

    def pair(*items):
        return b"(" + b"".join(items) + b"t"

    dtype = b"cnumpy\ndtype\n" + pair(text(b"u1"), integer(0), integer(1)) + b"R"
    dtype += pair(integer(3), text(b"|"), b"N", b"N", b"N", *[integer(-1)] * 2, integer(0)) + b"b"
    body = planes.astype(np.uint8).tobytes()
    values = b"T" + struct.pack("<i", len(body)) + body  # BINSTRING
    array = b"cnumpy.core.multiarray\n_reconstruct\n"
    array += pair(b"cnumpy\nndarray\n", pair(integer(0)), text(b"b")) + b"R"
    array += pair(integer(1), pair(*map(integer, planes.shape)), dtype, b"\x89", values) + b"b"
    items = {b"batch_label": text(b"training batch 1 of 1"), b"data": array}
    items |= {b"fine_labels": integers(fine), b"coarse_labels": integers(coarse)}
    return b"\x80\x02}(" + b"".join(text(k) + v for k, v in items.items()) + b"u."


def python3_pickle(planes, fine, coarse):
    """The same from Python 3."""
    content = {"data": planes, "fine_labels": fine.tolist(), "coarse_labels": coarse.tolist()}
    return pickle.dumps(content, protocol=2)


def archive(members):
    """A tar.gz with the given files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def write_npz(path, planes, fine, coarse):
    images = planes.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    np.savez_compressed(path, images=np.ascontiguousarray(images), fine=fine, coarse=coarse)
