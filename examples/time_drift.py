"""Another season

A model of summer flights misjudges autumn. giw ranks flights as well as the best simple rival
and has the best probabilities.

Flights from New York: more than 15 minutes late? Training is June and July, validation 150
flights of September to November. This is concept drift: at equal features fewer flights are late
in autumn.
"""

# %%
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd

folder = Path(tempfile.mkdtemp())
command = [sys.executable, "-m", "giw", "example", "time-drift", "-o", folder, "--quiet"]
subprocess.run(command, check=True)
train, val, new = (pd.read_csv(folder / f"{part}.csv") for part in ("train", "val", "new"))
y = train.pop("late")
autumn = pd.concat([val, new], ignore_index=True)
for name, label in {"training": y, "autumn": autumn["late"]}.items():
    print(f"{name}: {(label == 'yes').mean():.0%} late")

# %%
import giw

found = giw.diagnose(train, y, val.drop(columns="late"), val["late"], random_state=0)
print(found.summary().split("\n\n")[0])

# %%
# Four in five autumn flights are on time, so that "never late" is right in four of five.
# Accuracy hides what a model knows; here are log-loss and the area under the ROC curve, for
# three draws of validation rows.
import numpy as np
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

text = ["airport", "airline", "weekday"]
numbers = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
trees = make_pipeline(
    make_column_transformer((numbers, text), remainder="passthrough"),
    HistGradientBoostingClassifier(max_iter=50, random_state=0),
)
scores = {}
for draw in range(3):
    order = np.random.default_rng(draw).permutation(len(autumn))
    X_val, X_new = autumn.iloc[order[:150]], autumn.iloc[order[150:]]
    y_val, y_new = X_val["late"], X_new["late"]
    X_val, X_new = X_val.drop(columns="late"), X_new.drop(columns="late")
    both, label = pd.concat([train, X_val]), pd.concat([y, y_val])
    equal = np.r_[np.ones(len(y)), np.full(len(y_val), len(y) / len(y_val))]
    stack = giw.ReweightedClassifier(trees, random_state=0)
    models = {
        "training alone": clone(trees).fit(train, y),
        "validation alone": clone(trees).fit(X_val, y_val),
        "both tables": clone(trees).fit(both, label),
        "both, balanced": clone(trees).fit(
            both, label, histgradientboostingclassifier__sample_weight=equal
        ),
        "giw": stack.fit(train, y, X_val=X_val, y_val=y_val),
    }
    shares = np.tile((y_val == "yes").mean(), len(y_new))
    scores.setdefault("share of validation", []).append((log_loss(y_new, shares), 0.5))
    for name, model in models.items():
        late = model.predict_proba(X_new)[:, 1]
        found = log_loss(y_new, late), roc_auc_score(y_new == "yes", late)
        scores.setdefault(name, []).append(found)
print(f"{'':<22}log-loss     AUC")
for name, each in scores.items():
    loss, area = np.mean(each, axis=0)
    print(f"{name:<22}{loss:>8.3f}{area:>8.3f}")

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots()
for row, (name, each) in enumerate(scores.items()):
    axes.plot([s[0] for s in each], [row] * 3, "o", color="C0" if name == "giw" else "C1")
axes.set_yticks(range(len(scores)), scores)
axes.set_xlabel("log-loss in autumn; less is better; a dot is a draw")

# %%
# A constant probability, the share of late flights among the validation rows, beats all trees but
# giw's: 150 rows of autumn say how many flights are late, summer says which.
