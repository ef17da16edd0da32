"""LightGBM and GridSearchCV

Any model that takes `sample_weight` goes into `ReweightedClassifier`, also inside
`GridSearchCV`. A search on training folds chooses for training data; `giw.select` judges
settings on validation rows.

Flights from New York, more than 15 minutes late? Summer is training, autumn is where the model
will be used. Needs `pip install lightgbm`.
"""

# %%
# LightGBM reads categories of pandas by itself, so no encoder is needed.
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd

folder = Path(tempfile.mkdtemp())
command = [sys.executable, "-m", "giw", "example", "time-drift", "-o", folder, "--quiet"]
subprocess.run(command, check=True)
tables = [pd.read_csv(folder / f"{part}.csv") for part in ("train", "val", "new")]
for column in ("airport", "airline", "weekday"):
    values = pd.concat([table[column] for table in tables]).unique()
    for table in tables:
        table[column] = pd.Categorical(table[column], categories=values)
(y, y_val, y_new), (X, X_val, X_new) = [t.pop("late") for t in tables], tables

# %%
# The usual way: five folds of the training table choose the size of the trees.
from lightgbm import LGBMClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV

import giw

trees = LGBMClassifier(n_estimators=60, n_jobs=1, verbose=-1, random_state=0)
leaves = [4, 15, 63]
usual = GridSearchCV(trees, {"num_leaves": leaves}, scoring="neg_log_loss").fit(X, y)

# %%
# The search around the stack. `X_val` and `y_val` go to every fit; folds are still folds of
# training, so this shows that the parts fit together and not how to choose.
stack = giw.ReweightedClassifier(trees, random_state=0)
around = GridSearchCV(
    stack, {"estimator__num_leaves": leaves}, scoring="neg_log_loss", cv=3, n_jobs=1
).fit(X, y, X_val=X_val, y_val=y_val)

# %%
# Choosing by validation rows that a fit has not seen.
candidates = {
    f"{kind}, {size} leaves": made
    for size in leaves
    for kind, made in {
        "LightGBM": LGBMClassifier(**{**trees.get_params(), "num_leaves": size}),
        "giw": giw.ReweightedClassifier(
            LGBMClassifier(**{**trees.get_params(), "num_leaves": size}), random_state=0
        ),
    }.items()
}
chosen = giw.select(candidates, X, y, X_val, y_val, n_folds=3, random_state=0)
both = LGBMClassifier(**trees.get_params()).fit(pd.concat([X, X_val]), pd.concat([y, y_val]))
scores = {
    "LightGBM, searched on training": usual.best_estimator_,
    "LightGBM, both tables": both,
    "giw, searched on training": around.best_estimator_,
    f"giw.select: {chosen.name}": chosen.model,
}
for name, model in scores.items():
    loss = log_loss(y_new, model.predict_proba(X_new))
    print(f"{name:<34}accuracy {model.score(X_new, y_new):.3f}  log-loss {loss:.3f}")

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots()
axes.barh(
    list(scores), [log_loss(y_new, m.predict_proba(X_new)) for m in scores.values()],
    color=["C1", "C1", "C0", "C0"], height=0.6,
)  # fmt: skip
axes.set_xlabel("log-loss in autumn; less is better")
