"""The licences of what giw brings."""

from importlib.metadata import distribution

import pytest
from tools.licences import OPEN, licence_of, walk


def test_everything_that_giw_requires_here_has_an_open_licence():
    there, _ = walk("giw", {"torch", "data"})

    assert {"numpy", "torch", "skops", "joblib"} <= set(there)
    assert [name for name, found in there.items() if not OPEN.search(licence_of(found))] == []


@pytest.mark.parametrize(
    ("about", "licence"),
    [
        ({"License-Expression": "MIT"}, "MIT"),
        ({"Classifier": "License :: OSI Approved :: BSD License"}, "BSD License"),
        ({"License": "ISC\nand a text"}, "ISC"),
        ({"License": "Proprietary"}, "Proprietary"),
    ],
)
def test_where_a_licence_is_stated(about, licence, tmp_path):
    folder = tmp_path / "some-1.0.dist-info"
    folder.mkdir()
    lines = ["Metadata-Version: 2.4", "Name: some", "Version: 1.0"]
    lines += [f"{key}: {value.replace(chr(10), chr(10) + ' ')}" for key, value in about.items()]
    (folder / "METADATA").write_text("\n".join(lines))

    found = licence_of(type(distribution("giw")).at(folder))

    assert found == licence
    assert bool(OPEN.search(found)) == (licence != "Proprietary")
