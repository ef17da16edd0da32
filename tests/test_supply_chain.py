"""Nothing in the package runs code from a file or a command line from a string."""

import ast
from pathlib import Path

import pytest

import giw

SOURCE = Path(giw.__file__).parent
CALLS = {"eval", "exec", "compile", "__import__", "torch.load", "np.load", "numpy.load"}
CALLS |= {"os.system", "os.popen", "joblib.load", "pickle.load", "pickle.loads", "yaml.load"}
MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "ctypes"}
# One edition of CIFAR-100 is a pickle; it is opened only where its checksum is the publisher's.
ALLOWED = {("paper/cifar.py", "pickle"), ("paper/cifar.py", "pickle.loads")}


def dotted(node):
    """``a.b.c`` of a call's function; what is no name stands as a question mark."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return "?"


def dangers(source):
    """What a text of Python calls or imports that can run what somebody else wrote."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.split(".")[0] in MODULES)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in MODULES:
            yield node.module
        elif isinstance(node, ast.Call):
            called = dotted(node.func)
            if called in CALLS and not any(
                k.arg == "allow_pickle" and getattr(k.value, "value", True) is False
                for k in node.keywords
            ):
                yield called
            if any(k.arg == "shell" and getattr(k.value, "value", True) for k in node.keywords):
                yield f"{called}(shell=True)"


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("eval(x)", ["eval"]),
        ("import pickle", ["pickle"]),
        ("from pickle import Unpickler", ["pickle"]),
        ("import torch\ntorch.load(f)", ["torch.load"]),
        ("np.load(f, allow_pickle=True)", ["np.load"]),
        ("np.load(f, allow_pickle=False)", []),
        ("subprocess.run(c, shell=True)", ["subprocess.run(shell=True)"]),
        ("subprocess.run(c, shell=False)", []),
        ("re.compile(x)\nmodel.eval()\ncopy(model).eval()", []),
    ],
)
def test_a_danger_is_seen(code, found):
    assert list(dangers(code)) == found


def test_the_package_has_none():
    found = {
        (path.relative_to(SOURCE).as_posix(), danger)
        for path in SOURCE.rglob("*.py")
        for danger in dangers(path.read_text("utf-8"))
    }
    assert found - ALLOWED == set()
