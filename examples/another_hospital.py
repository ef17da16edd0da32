"""Another hospital

A second hospital's device measures larger lengths. Here simple ways win: 40 labels of that
hospital alone, or each hospital standardised by itself, which needs no labels. giw lies one
point below and far above the first hospital's model.

The tumours of scikit-learn's table are dealt to two hospitals at random. The second one's device
enlarges lengths by a quarter, and more of its patients are ill. The shift is made by hand.
"""

# %%
import numpy as np
from sklearn.datasets import load_breast_cancer

data = load_breast_cancer()
columns = [str(name) for name in data.feature_names[:10]]
X, ill = data.data[:, :10], data.target == 0
rng = np.random.default_rng(0)
order = rng.permutation(len(X))
first, second = order[:300], order[300:]
second = np.r_[second[ill[second]], second[~ill[second]][:100]]  # more of them are ill
X_two = X[second] * [1.25 if "radius" in c or "perimeter" in c else 1.25**2 if "area" in c else 1
                     for c in columns]  # fmt: skip
X_one, y_one, y_two = X[first], ill[first].astype(int), ill[second].astype(int)
print(f"ill: {y_one.mean():.0%} of {len(y_one)} and {y_two.mean():.0%} of {len(y_two)} patients")

# %%
import giw

rows = rng.permutation(len(y_two))[:40]
found = giw.diagnose(X_one, y_one, X_two[rows], y_two[rows], feature_names=columns, random_state=0)
print(found.summary().split("\n\n")[0])

# %%
# Forty labelled patients of the second hospital, drawn ten times.
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

linear = make_pipeline(StandardScaler(), LogisticRegression())
scores = {}
for draw in range(10):
    order = np.random.default_rng(draw).permutation(len(y_two))
    val, new = order[:40], order[40:]
    X_val, y_val = X_two[val], y_two[val]
    both, label = np.r_[X_one, X_val], np.r_[y_one, y_val]
    each_own = clone(linear).fit(scale(X_one), y_one)
    stack = giw.ReweightedClassifier(linear, random_state=0)
    models = {
        "first hospital alone": clone(linear).fit(X_one, y_one),
        "second hospital alone": clone(linear).fit(X_val, y_val),
        "both tables": clone(linear).fit(both, label),
        "giw": stack.fit(X_one, y_one, X_val=X_val, y_val=y_val),
    }
    for name, model in models.items():
        scores.setdefault(name, []).append(model.score(X_two[new], y_two[new]))
    own = each_own.score(scale(X_two)[new], y_two[new])
    scores.setdefault("each standardised", []).append(own)
for name, each in scores.items():
    print(f"{name:<24}{np.mean(each):.3f} ± {np.std(each):.3f}")

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots()
for row, (name, each) in enumerate(scores.items()):
    axes.plot(each, [row] * 10, "o", alpha=0.6, color="C0" if name == "giw" else "C1")
axes.set_yticks(range(len(scores)), scores)
axes.set_xlabel("accuracy at the second hospital; a dot is a draw")
