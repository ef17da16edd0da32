"""No labels where the model will be used

Without validation labels training rows can be weighted by their features. That helps much where the
model is too simple for the whole table; forty labels help trees more.

The shift is made by hand, because without labels one must know that labels follow the same rule in
both tables. No data can show it.
"""

# %%
# A curve, seen on the left in training and on the right where the model will be used.
import numpy as np

rng = np.random.default_rng(0)


def drawn(size, centre):
    x = rng.normal(centre, 0.5, size=(size, 1))
    return x, np.sin(2 * x[:, 0]) + 0.2 * rng.normal(size=size)


X, y = drawn(1000, 0.0)
X_val, y_val = drawn(200, 0.8)
X_new, y_new = drawn(2000, 0.8)

# %%
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression

import giw

bases = {
    "linear": LinearRegression(),
    "trees": HistGradientBoostingRegressor(max_iter=50, random_state=0),
}
fitted = {}
for kind, base in bases.items():
    weight = giw.kliep(X, X_val)
    plain = clone(base).fit(X, y)
    weighted = clone(base).fit(X, y, sample_weight=weight)
    stack = giw.ReweightedRegressor(base, random_state=0).fit(X, y, X_val=X_val)
    forty = clone(base).fit(np.r_[X, X_val[:40]], np.r_[y, y_val[:40]])
    labelled = giw.ReweightedRegressor(base, random_state=0)
    labelled.fit(X, y, X_val=X_val[:40], y_val=y_val[:40], X_unlabelled=X_val[40:])
    fitted[kind] = {
        "training alone": plain,
        "weighted by giw.kliep": weighted,
        "giw, no labels": stack,
        "both tables, 40 labels": forty,
        "giw, 40 labels": labelled,
    }
    for name, model in fitted[kind].items():
        print(f"{kind:<8}{name:<24} R² {model.score(X_new, y_new):>6.3f}")

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(5, 3.2))
grid = np.linspace(-1, 2.2, 200)[:, None]
axes.plot(X[:, 0], y, ".", color="C4", alpha=0.25, label="training")
axes.plot(X_val[:, 0], np.full(len(X_val), -2.2), "|", color="C2", label="new rows, no labels")
for number, name in enumerate(("training alone", "weighted by giw.kliep", "giw, 40 labels")):
    axes.plot(grid, fitted["linear"][name].predict(grid), color=f"C{(1, 0, 3)[number]}", label=name)
axes.set_xlabel("feature")
axes.set_ylabel("number to predict")
figure.legend(loc="outside upper left", ncols=2)

# %%
# A line cannot be right on both sides, and weights say which side counts. Weights by features
# alone stay cautious in giw (half of the weight is left to plain training), so that `giw.kliep`
# by itself moves the line further. Where the weights are wrong, half of the damage is spared,
# too.
