"""``giw paper data`` as a person meets it."""

import functools
import json

import pytest
from tests.cli import tables

run = functools.partial(tables.run, "paper", "data")


def test_an_empty_folder_is_no_error_and_the_way_out_is_named(tmp_path):
    result = run("--data", tmp_path)

    assert result.exit_code == 0, result.output
    assert str(tmp_path) in result.output
    assert "giw paper data --fetch mnist" in result.output
    assert "train-images-idx3-ubyte.gz" in result.output


def test_the_folder_comes_from_the_environment(tmp_path):
    told = json.loads(run("--json", GIW_DATA=str(tmp_path)).stdout)

    assert told["folder"] == str(tmp_path)
    assert {found["state"] for found in told["files"]} == {"missing"}
    assert {found["file"]["dataset"] for found in told["files"]} == {"mnist", "cifar100"}


def test_a_file_that_is_there_is_present_until_its_checksum_is_asked_for(tmp_path):
    (tmp_path / "mnist").mkdir()
    path = tmp_path / "mnist" / "train-images-idx3-ubyte.gz"
    path.write_bytes(b"something else")

    assert run("--data", tmp_path).exit_code == 0
    result = run("--data", tmp_path, "--verify", "-q")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert str(path) in result.stderr
    assert "f68b3c2dcbeaaa9fbdd348bbdeb94873" in result.stderr  # the published checksum


def test_fetching_without_a_network_fails_in_one_line(tmp_path, monkeypatch):
    import giw.paper.files

    def unreachable(*_):
        raise ConnectionError("could not fetch: no network")

    monkeypatch.setattr(giw.paper.files, "fetch", unreachable)
    result = run("--fetch", "mnist", "--data", tmp_path)
    assert result.exit_code == 1
    assert "giw paper data: could not fetch: no network\n" in result.stderr


def test_an_altered_download_is_a_failure_and_no_mistake_of_the_user(tmp_path, monkeypatch):
    import giw.paper.files

    def altered(*_):
        raise ValueError("what came is not it")

    monkeypatch.setattr(giw.paper.files, "fetch", altered)
    assert run("--fetch", "mnist", "--data", tmp_path, "-q").exit_code == 1


@pytest.mark.parametrize("arguments", [("--fetch", "imagenet"), ("--nonsense",)])
def test_wrong_usage_has_exit_code_2(arguments):
    assert run(*arguments).exit_code == 2
