"""A category that training never had

The diagnosis names the new category. Of the models, one fitted to both tables together is as
good as giw's.

Flights from New York: is the aircraft a large one? Training has no flight of United Airlines
(UA); where the model will be used, one flight in five is United's. 150 of those flights have
labels.
"""

# %%
# `giw example` writes three tables: training, validation, and new rows to predict.
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd

folder = Path(tempfile.mkdtemp())
command = [sys.executable, "-m", "giw", "example", "new-category", "-o", folder, "--quiet"]
subprocess.run(command, check=True)
train, val, new = (pd.read_csv(folder / f"{part}.csv") for part in ("train", "val", "new"))
y, y_val, y_new = (table.pop("large") for table in (train, val, new))
print(train.head(3))

# %%
# What differs? The category is named, with the rows that have it.
import giw

found = giw.diagnose(train, y, val, y_val, random_state=0)
print(found.summary().split("\n\nColumns")[0])

# %%
# Boosted trees in a pipeline that turns text into numbers, fitted in five ways.
import numpy as np
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

text = ["airport", "airline", "weekday"]
numbers = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
trees = make_pipeline(
    make_column_transformer((numbers, text), remainder="passthrough"),
    HistGradientBoostingClassifier(max_iter=50, random_state=0),
)
both, label = pd.concat([train, val]), pd.concat([y, y_val])
equal = np.r_[np.ones(len(y)), np.full(len(y_val), len(y) / len(y_val))]  # half of the weight each
models = {
    "training alone": clone(trees).fit(train, y),
    "validation alone": clone(trees).fit(val, y_val),
    "both tables": clone(trees).fit(both, label),
    "both, balanced": clone(trees).fit(
        both, label, histgradientboostingclassifier__sample_weight=equal
    ),
    "giw": giw.ReweightedClassifier(trees, random_state=0).fit(train, y, X_val=val, y_val=y_val),
}
united = new["airline"] == "UA"
scores = {
    name: (model.score(new[united], y_new[united]), model.score(new[~united], y_new[~united]))
    for name, model in models.items()
}
print(f"{'accuracy':<18}{'United':>8}{'others':>8}")
for name, (of_united, of_others) in scores.items():
    print(f"{name:<18}{of_united:>8.3f}{of_others:>8.3f}")

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots()
axes.plot([s[0] for s in scores.values()], list(scores), "o", label="United, not in training")
axes.plot([s[1] for s in scores.values()], list(scores), "s", label="other airlines")
axes.set_xlabel("accuracy on 1,500 new flights")
figure.legend(loc="outside upper left", ncols=2)

# %%
# A single look at 150 labelled rows is enough for every model that may use them. When trees can
# tell the new category apart by a column, nothing more than both tables is needed.
