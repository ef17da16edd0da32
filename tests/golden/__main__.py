"""``python -m tests.golden``: make the goldens that are not there yet, or replace some."""

import argparse
from collections.abc import Sequence

from tests.golden.cases import CASES
from tests.golden.files import FOLDER, differences, plain, read, versions, write

import giw


def main(arguments: Sequence[str] | None = None) -> None:
    """Make what is missing; what is there is replaced only where it differs and with a reason."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=main.__doc__)
    parser.add_argument("names", nargs="*", help="which goldens; all if none is named")
    parser.add_argument("--reason", default="", help="why the old answers are no longer wanted")
    chosen = parser.parse_args(arguments)
    unknown = sorted(set(chosen.names) - set(CASES))
    if unknown:
        parser.error(f"no golden is called {', '.join(unknown)}")
    names = [name for name in CASES if not chosen.names or name in chosen.names]
    refused = [name for name in names if not _made(name, chosen.reason)]
    if refused:
        parser.error(f'{", ".join(refused)}: there and different; replace with --reason "..."')


def _made(name: str, reason: str) -> bool:
    """Whether the golden is there now and as the package answers today."""
    case, history = CASES[name], []
    values = plain(case.answer(), case.digits)
    if (FOLDER / f"{name}.json").exists():
        golden, history = read(name)
        if not (apart := differences(values, golden, case.tolerance)):
            return True
        print(f"{name}:", *apart[:5], sep="\n  ")
        if not reason:
            return False
    said = {"giw": giw.__version__, "reason": reason or "made before the rooms were rebuilt"}
    write(name, values, [*history, said | versions()])
    print(f"written: {name}")
    return True


if __name__ == "__main__":
    main()
