"""Numbers instead of classes

`ReweightedRegressor` predicts numbers. From two airports to a third it is far above both tables
together for a linear model.

Flights from New York: how many seats does the aircraft have? Training has flights from Newark and
La Guardia, the model is for Kennedy airport, where fleets and distances are others.
"""

# %%
from importlib import resources

import numpy as np
import pandas as pd

with (resources.files("giw.cli") / "flights.csv.gz").open("rb") as file:
    flights = pd.read_csv(file, compression="gzip").dropna(subset="seats")
flights = flights.sample(frac=1, random_state=0)
X, seats = flights[["airline", "weekday", "hour", "distance"]], flights["seats"].to_numpy()
kennedy = (flights["airport"] == "JFK").to_numpy()
X_train, y_train = X[~kennedy][:2000], seats[~kennedy][:2000]
X_there, y_there = X[kennedy], seats[kennedy]
print(f"seats: {y_train.mean():.0f} in training, {y_there.mean():.0f} at Kennedy airport")

# %%
# Two bases, each fitted to the tables in the plain ways and by giw. R² is one for a perfect
# prediction, and zero for the mean of what is to be predicted.
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import giw

text = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
columns = make_column_transformer(
    (text, ["airline", "weekday"]), (StandardScaler(), ["hour", "distance"])
)
bases = {
    "ridge": make_pipeline(columns, Ridge()),
    "trees": make_pipeline(columns, HistGradientBoostingRegressor(max_iter=50, random_state=0)),
}
scores = {}
for draw in range(3):
    order = np.random.default_rng(draw).permutation(len(y_there))
    val, new = order[:60], order[60:1500]
    X_val, y_val, X_new, y_new = X_there.iloc[val], y_there[val], X_there.iloc[new], y_there[new]
    both, number = pd.concat([X_train, X_val]), np.r_[y_train, y_val]
    for kind, base in bases.items():
        stack = giw.ReweightedRegressor(base, random_state=0)
        models = {
            "training alone": clone(base).fit(X_train, y_train),
            "validation alone": clone(base).fit(X_val, y_val),
            "both tables": clone(base).fit(both, number),
            "giw": stack.fit(X_train, y_train, X_val=X_val, y_val=y_val),
        }
        for name, model in models.items():
            scores.setdefault((kind, name), []).append(model.score(X_new, y_new))
for (kind, name), each in scores.items():
    print(f"{kind}, {name:<20}{np.mean(each):>7.3f}  ({', '.join(f'{s:.3f}' for s in each)})")

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(5, 3.4))
for row, ((_, name), each) in enumerate(scores.items()):
    axes.plot(each, [row] * 3, "o", color="C0" if name == "giw" else "C1")
axes.set_yticks(range(len(scores)), [", ".join(one) for one in scores])
axes.set_xlabel("R² at Kennedy airport; a dot is a draw of 60 rows")
