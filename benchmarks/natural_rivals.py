"""Peers as they ship, on the draws of benchmarks/natural.py.

Their packages want other versions of scikit-learn, so this runs in an environment of its own,
without giw; a peer that is not installed is skipped with a reason. Test predictions are written
beside the cached ones, and benchmarks/natural.py reports them then. Classification, natural shift.

    pip install biquality-learn skada MRCpy pandas pyarrow 'scikit-learn<1.6'
    python benchmarks/natural_rivals.py --data DIR --half report --n-val 100
    python benchmarks/natural.py --data DIR --half report --n-val 100 --draws 1
"""

# ruff: noqa: E402  (threads are limited before numpy is loaded)
from __future__ import annotations

import argparse
import os
import signal
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from natural_tasks import CHOOSE, REPORT, Job, base_named, draw, numbers, tasks_of


class Numbers:
    """A draw as arrays, both tables through one encoding of the training rows."""

    def __init__(self, data: Any, job: Job) -> None:
        encode = numbers().fit(data.X)
        self.z, self.z_val, self.z_test = map(encode.transform, (data.X, data.X_val, data.X_test))
        self.classes = np.unique(np.r_[data.y, data.y_val])
        self.y, self.y_val = (np.searchsorted(self.classes, y) for y in (data.y, data.y_val))
        base = base_named(job.base, True, job.draw)
        self.base = base.steps[-1][1] if isinstance(base, Pipeline) else base
        self.seed = job.draw

    def biquality(self, model: Any) -> np.ndarray:
        """Trained with training rows as untrusted and validation rows as trusted ones."""
        quality = np.r_[np.zeros(len(self.y)), np.ones(len(self.y_val))]
        model.fit(np.vstack([self.z, self.z_val]), np.r_[self.y, self.y_val], quality)
        return self.probabilities(model)

    def probabilities(self, model: Any, z_test: np.ndarray | None = None) -> np.ndarray:
        """Of all classes; a class that the model never saw gets none."""
        z_test = self.z_test if z_test is None else z_test
        found = np.zeros((len(self.z_test), len(self.classes)))
        known = np.asarray(model.classes_, dtype=int)
        said = model.predict_proba(z_test)
        found[:, known] = np.asarray(said)[:, : len(known)]
        return found


def irbl(data: Numbers) -> np.ndarray:
    """Importance reweighting for biquality learning."""
    from bqlearn.irbl import IRBL

    return data.biquality(IRBL(clone(data.base), clone(data.base)))


def k_pdr(data: Numbers) -> np.ndarray:
    """A probabilistic density ratio for each class."""
    from bqlearn.density_ratio import KPDR

    return data.biquality(KPDR(clone(data.base)))


def k_kmm(data: Numbers) -> np.ndarray:
    """Kernel mean matching for each class."""
    from bqlearn.density_ratio import KKMM

    return data.biquality(KKMM(clone(data.base)))


def easy_adapt(data: Numbers) -> np.ndarray:
    """Columns for both tables and for each alone."""
    from bqlearn.ea import EasyADAPT

    expand = EasyADAPT().fit(data.z)
    of_train, of_target = np.zeros(len(data.z)), np.ones(len(data.z_val))
    both = expand.transform(np.vstack([data.z, data.z_val]), np.r_[of_train, of_target])
    model = clone(data.base).fit(both, np.r_[data.y, data.y_val])
    return data.probabilities(model, expand.transform(data.z_test, np.ones(len(data.z_test))))


def tradaboost(data: Numbers, rounds: int = 10) -> np.ndarray:
    """Boosting that weighs wrong training rows down and wrong validation rows up.

    That of biquality-learn fails with its own scikit-learn, so this is ours.
    """
    n = len(data.y)
    z, y = np.vstack([data.z, data.z_val]), np.r_[data.y, data.y_val]
    weight, down = np.ones(len(y)), 1 / (1 + np.sqrt(2 * np.log(n) / rounds))
    votes = np.zeros((len(data.z_test), len(data.classes)))
    for at in range(rounds):
        model = clone(data.base).fit(z, y, sample_weight=weight / weight.mean())
        wrong = model.predict(z) != y
        error = np.clip(np.average(wrong[n:], weights=weight[n:]), 0.01, 0.49)
        if at >= rounds // 2:  # the first half has not weighed enough yet
            said = model.predict(data.z_test)
            votes[np.arange(len(said)), said] += np.log((1 - error) / error)
        weight[:n] *= np.where(wrong[:n], down, 1.0)
        weight[n:] *= np.where(wrong[n:], (1 - error) / error, 1.0)
    return votes


def skada_reweight(data: Numbers) -> np.ndarray:
    """Training rows weighted by a density ratio; validation labels are not used."""
    from skada import DensityReweight

    base = clone(data.base).set_fit_request(sample_weight=True)
    domain = np.r_[np.ones(len(data.y)), -2 * np.ones(len(data.y_val))].astype(int)
    label = np.r_[data.y, np.full(len(data.y_val), -1)]
    model = DensityReweight(base)
    model.fit(np.vstack([data.z, data.z_val]), label, sample_domain=domain)
    found = np.zeros((len(data.z_test), len(data.classes)))
    found[:, np.unique(data.y)] = model.predict_proba(data.z_test)
    return found


def double_weighting(data: Numbers) -> np.ndarray:
    """Minimax risk with weights in both tables; validation labels are not used."""
    from MRCpy import DWGCS

    model = DWGCS(loss="log", random_state=data.seed).fit(data.z, data.y, data.z_val)
    return data.probabilities(model)


PEERS: dict[str, Callable[[Numbers], np.ndarray]] = {
    "TrAdaBoost": tradaboost,
    "IRBL": irbl,
    "K-PDR": k_pdr,
    "K-KMM": k_kmm,
    "EasyADAPT": easy_adapt,
    "skada, density reweighting": skada_reweight,
    "MRCpy, double weighting": double_weighting,
}


class TooSlow(Exception):
    """A peer has used up its processor time."""


def stop(*_: Any) -> None:
    raise TooSlow("its processor time is used up")


def predictions_of_all(
    data: Numbers, peers: list[str], seconds: float = 100.0
) -> tuple[list[str], np.ndarray]:
    """Test predictions of the peers that can be fitted; the others say why not.

    A peer that takes more processor time than ``seconds`` is skipped.
    """
    found: dict[str, np.ndarray] = {}
    signal.signal(signal.SIGPROF, stop)
    for name in peers:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            said = PEERS[name](data)
            if not np.isfinite(said).all():
                raise ValueError("predictions are not finite")
            said = np.maximum(said, 1e-3)  # as for the candidates of the stack
            found[name] = said / said.sum(axis=1, keepdims=True)
        except Exception as error:  # whatever a package makes of a table
            text = " ".join(str(error).split())[:150]
            print(f"  {name} skipped: {type(error).__name__}: {text}", file=sys.stderr)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    return list(found), np.stack([*found.values()]) if found else np.empty((0, 0, 0))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("data/natural"))
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "giw" / "natural")
    parser.add_argument("--half", choices=("choose", "report"), default="report")
    parser.add_argument("--base", nargs="*", default=["logistic", "trees"])
    parser.add_argument("--n-val", type=int, nargs="*", default=[100])
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--task", nargs="*", help="some tasks")
    parser.add_argument("--peer", nargs="*", default=list(PEERS), choices=list(PEERS))
    options = parser.parse_args()
    files = CHOOSE if options.half == "choose" else REPORT
    for at in range(options.draws):
        for base in options.base:
            for n_val in options.n_val:
                for name, task in tasks_of(options.data).items():
                    job = Job(name, "natural", base, n_val, at)
                    path = options.cache / f"peers_{job.file}"
                    wanted = task["file"].split(".")[0] in files and name in (
                        options.task or [name]
                    )
                    if task["kind"] != "classification" or not wanted or path.exists():
                        continue
                    data = draw(options.data, task, job)
                    if data is None:
                        continue
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        names, test = predictions_of_all(Numbers(data, job), options.peer)
                    np.savez(path, names=np.array(names), test=test.astype("f4"))
                    print(job, names, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
