"""A PyTorch loop of your own

Two lines of a training loop are giw's: the split before it and the objective in it. It gains 16
points over training data alone and one over half and half.

Net, optimiser, batches and schedule are yours. Handwritten digits, odd or even; training shows the
digits 0 to 3, test images all ten, and forty labelled images are from there.
"""

# %%
import torch
from sklearn.datasets import load_digits
from torch.nn.functional import cross_entropy

import giw

pixels, digit = load_digits(return_X_y=True)
order = torch.randperm(len(digit), generator=torch.Generator().manual_seed(0))
x, digit = torch.tensor(pixels / 16, dtype=torch.float32)[order], torch.tensor(digit)[order]
known = digit[:1200] < 4
x_train, y_train = x[:1200][known], digit[:1200][known] % 2
x_val, y_val = x[1200:1240], digit[1200:1240] % 2
x_test, y_test = x[1240:], digit[1240:] % 2

# %%
# **Once, before training**: which validation points are inside the training support?
split = giw.SupportSplitter(random_state=0).fit(x_train, y_train).split(x_val, y_val)
print(split)

# %%
# **In every step**: both losses, point by point. The objective solves for the weights of the
# training batch and gives back one number. The rivals are other ways to add the losses up.
objective = giw.GIWObjective(split)
risks = {
    "training alone": lambda train_loss, val_loss: train_loss.mean(),
    "validation alone": lambda train_loss, val_loss: val_loss.mean(),
    "half and half": lambda train_loss, val_loss: (train_loss.mean() + val_loss.mean()) / 2,
    "GIW": objective,
}


def trained(risk, seed):
    """Test accuracy after each of thirty epochs."""
    torch.manual_seed(seed)
    net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2))
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    accuracy = []
    for _ in range(30):
        for rows in torch.randperm(len(x_train)).split(64):
            train_loss = cross_entropy(net(x_train[rows]), y_train[rows], reduction="none")
            val_loss = cross_entropy(net(x_val), y_val, reduction="none")
            loss = risk(train_loss, val_loss)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            accuracy.append(float((net(x_test).argmax(1) == y_test).float().mean()))
    return accuracy


found = {name: torch.tensor([trained(risk, s) for s in range(3)]) for name, risk in risks.items()}
for name, each in found.items():
    last = each[:, -1]
    print(f"{name:<18}{last.mean():.3f}  ({', '.join(f'{one:.3f}' for one in last)})")

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots()
for number, name in enumerate(("GIW", "training alone", "validation alone", "half and half")):
    axes.plot(range(1, 31), found[name].mean(0), ("-", "--", "-.", ":")[number], label=name)
axes.set_xlabel("epoch")
axes.set_ylabel("test accuracy, mean of 3 runs")
figure.legend(loc="outside upper left", ncols=2)

# %%
# With more validation points than fit a step, take a batch of them and say which rows it holds:
# `objective(train_loss, val_loss, rows)`.
