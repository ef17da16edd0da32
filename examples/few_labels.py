"""Few labels, and which to ask for next

`labels_needed` says how many random labels an interval needs. Labels that `label_first` names are
worth 2 to 4 points more than random ones when they join the training table. giw takes its
validation rows for random ones, and gains from chosen ones only at 20 and 40.

Handwritten digits, odd or even; training shows the digits 0 to 3 only, new images all ten.
"""

# %%
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import giw

pixels, digit = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(digit))
pixels, digit = pixels[order] / 16, digit[order]
known = digit[:900] < 4
X, y = pixels[:900][known], digit[:900][known] % 2
later = digit[900:]
x_later, y_later = pixels[900:], later % 2

# %%
# How good is the model of the training data there? Thirty random labels say it roughly.
model = LogisticRegression(max_iter=1000).fit(X, y)
risk = giw.estimate_risk(model, X, y, x_later[:30], y_later[:30], random_state=0)
print(risk.summary())
print(giw.labels_needed(risk, width=0.1), "more random labels make the interval 0.1 wide")

# %%
# Which images should be labelled to learn from? Labels chosen by `label_first` stand beside random
# ones, in five random halves of the images.
sizes = (5, 10, 20, 40, 80)


def scores(seed):
    """Accuracy of both tables and of giw, by random labels and by label_first: (sizes, 4)."""
    order = np.random.default_rng(seed).permutation(len(later))
    pool, new = order[:500], order[500:]
    first = giw.label_first(model, X, x_later[pool], n_points=max(sizes), random_state=0)
    found = []
    for size in sizes:
        for rows in (pool[:size], pool[first[:size]]):
            both = np.r_[X, x_later[rows]], np.r_[y, y_later[rows]]
            stack = giw.ReweightedClassifier(LogisticRegression(max_iter=1000), random_state=0)
            stack.fit(X, y, X_val=x_later[rows], y_val=y_later[rows])
            for one in (LogisticRegression(max_iter=1000).fit(*both), stack):
                found.append(one.score(x_later[new], y_later[new]))
    return np.reshape(found, (len(sizes), 4))


each = np.array([scores(seed) for seed in range(5)])  # (draws, sizes, 4)
mean = each.mean(axis=0)
print(f"training alone {model.score(x_later, y_later):.3f}")
print("labels    both tables: random  label_first    giw: random  label_first")
for size, (both, both_first, stack, stack_first) in zip(sizes, mean, strict=True):
    print(f"{size:>6}{both:>22.3f}{both_first:>13.3f}{stack:>15.3f}{stack_first:>13.3f}")

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots()
axes.plot(sizes, mean[:, 2], "s--", color="C1", label="giw, random")
axes.plot(sizes, mean[:, 3], "o-", color="C0", label="giw, label_first")
axes.plot(sizes, mean[:, 0], "s:", color="C4", label="both tables, random")
axes.set_xscale("log")
axes.set_xticks(sizes, sizes)
axes.minorticks_off()
axes.set_xlabel("labelled images")
axes.set_ylabel("accuracy, mean of 5 draws")
figure.legend(loc="outside upper left", ncols=2)
