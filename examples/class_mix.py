"""Other class shares

Where only class shares differ, a model with its shares corrected by hand is as good as giw.

Breast tumours again: a tenth of the 250 training rows is malignant, and more than half of the 50
validation rows. Nothing else differs.
"""

# %%
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd

folder = Path(tempfile.mkdtemp())
command = [sys.executable, "-m", "giw", "example", "class-mix", "-o", folder, "--quiet"]
subprocess.run(command, check=True)
train, val, new = (pd.read_csv(folder / f"{part}.csv") for part in ("train", "val", "new"))
y, y_val, y_new = (table.pop("finding") for table in (train, val, new))
for name, label in {"training": y, "validation": y_val, "new": y_new}.items():
    print(f"{name:<11}{len(label):>4} rows, {(label == 'malignant').mean():.0%} malignant")

# %%
# The diagnosis finds the shares and nothing besides.
import giw

found = giw.diagnose(train, y, val, y_val, random_state=0)
print(found.summary().split("\n\n")[0])

# %%
# The rival: training rows weighted so that their classes have the shares of validation. That is
# the textbook's answer to a class-prior shift, and three lines.
import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

linear = make_pipeline(StandardScaler(), LogisticRegression())
share, wanted = y.value_counts(normalize=True), y_val.value_counts(normalize=True)
weight = y.map(wanted / share).to_numpy()
both, label = pd.concat([train, val]), pd.concat([y, y_val])
models = {
    "training alone": clone(linear).fit(train, y),
    "training, shares corrected": clone(linear).fit(
        train, y, logisticregression__sample_weight=weight
    ),
    "validation alone": clone(linear).fit(val, y_val),
    "both tables": clone(linear).fit(both, label),
    "both, shares corrected": clone(linear).fit(
        both, label, logisticregression__sample_weight=np.r_[weight, np.ones(len(y_val))]
    ),
    "giw": giw.ReweightedClassifier(linear, random_state=0).fit(train, y, X_val=val, y_val=y_val),
}
found = {
    name: (model.score(new, y_new), log_loss(y_new, model.predict_proba(new)))
    for name, model in models.items()
}
print(f"{'':<28}accuracy  log-loss")
for name, (accuracy, loss) in found.items():
    print(f"{name:<28}{accuracy:>8.3f}{loss:>10.3f}")

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots()
axes.barh(list(found), [loss for _, loss in found.values()], color="C1", height=0.6)
axes.patches[-1].set_facecolor("C0")
axes.set_xlabel("log-loss on new rows; less is better")

# %%
# If you know that nothing but the shares differs, correct the shares. giw does not know it, and is
# as good here.
