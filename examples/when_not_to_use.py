"""When not to use giw

Where the tables do not differ, a plain fit to both is as good and costs a fraction. With many
validation rows giw gains little, and where you know the cause you can do better than any of
them.

Three situations, with the processor time of the fits.
"""

# %%
import time

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import giw

linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))


def compared(X, y, X_val, y_val, X_new, y_new):
    """Accuracy on new rows and processor seconds, of the plain ways and of giw."""
    both = np.r_[X, X_val], np.r_[y, y_val]
    ways = {"training alone": (X, y), "validation alone": (X_val, y_val), "both tables": both}
    found = {}
    for name, (rows, labels) in ways.items():
        began = time.process_time()
        model = clone(linear).fit(rows, labels)
        found[name] = model.score(X_new, y_new), time.process_time() - began
    began = time.process_time()
    stack = giw.ReweightedClassifier(linear, random_state=0)
    stack.fit(X, y, X_val=X_val, y_val=y_val)
    found["giw"] = stack.score(X_new, y_new), time.process_time() - began
    return found


def average(draws):
    """Means over draws, printed."""
    means = {name: np.mean([found[name] for found in draws], axis=0) for name in draws[0]}
    for name, (accuracy, seconds) in means.items():
        print(f"{name:<18}accuracy {accuracy:.3f}{seconds:>8.2f} s")
    return {name: accuracy for name, (accuracy, _) in means.items()}


# %%
# **1. Nothing differs.** All rows come from one table, at random.
X, y = load_breast_cancer(return_X_y=True)


def halves(seed):
    order = np.random.default_rng(seed).permutation(len(y))
    train, val, new = np.split(order, [250, 300])
    return X[train], y[train], X[val], y[val], X[new], y[new]


same = average([compared(*halves(seed)) for seed in range(5)])
print(giw.diagnose(*halves(0)[:4], random_state=0).summary().split("\n\n")[0])

# %%
# **2. Validation rows are as many as training rows.** Training shows the digits 0 to 3, validation
# has 600 images of all ten.
pixels, digit = load_digits(return_X_y=True)


def many(seed):
    order = np.random.default_rng(seed).permutation(len(digit))
    train, val, new = np.split(order, [700, 1300])
    train = train[digit[train] < 4]
    return (pixels[train], digit[train] % 2, pixels[val], digit[val] % 2,
            pixels[new], digit[new] % 2)  # fmt: skip


enough = average([compared(*many(seed)) for seed in range(3)])

# %%
# **3. You know what differs.** If only class shares differ, [correct the shares](class_mix.md); if
# units differ, [repair the units](another_hospital.md). A model of the cause needs no labels.

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots()
axes.plot(list(same.values()), list(same), "o", label="nothing differs")
axes.plot(list(enough.values()), list(enough), "s", label="600 validation rows")
axes.set_xlabel("accuracy on new rows, mean over draws")
figure.legend(loc="outside upper left", ncols=2)
