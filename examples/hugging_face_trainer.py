"""Hugging Face's Trainer

A subclass with one method, `compute_loss`. A small transformer learns whether a review is content.

Training has reviews of books and of kettles, a fifth of them with the wrong label. Test reviews
are of headphones, too, of which forty labelled reviews show some. All words are in this file and
the transformer starts from scratch: nothing is downloaded. Needs `pip install transformers
accelerate`.
"""

# %%
import itertools
import random
import tempfile
from collections.abc import Callable

import torch
from sklearn.feature_extraction.text import CountVectorizer
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import (
    DistilBertConfig,
    DistilBertForSequenceClassification,
    PrinterCallback,
    Trainer,
    TrainingArguments,
)

import giw

# what people say of a product: (content, not content); "light" and "hot" change their meaning
SAID = {
    "book": (
        ["I could not put it down", "the plot is unpredictable", "a story that stays with you",
         "read it in one night", "the ending moved me", "her sentences are a joy"],
        ["I put it down after ten pages", "the plot is predictable", "a story one forgets at once",
         "I fell asleep over it", "the ending is light stuff", "his sentences go nowhere"],
    ),
    "kettle": (
        ["it boils in a minute", "water stays hot for long", "the lid closes tightly",
         "it pours without a drop beside the cup", "easy to clean", "still works after years"],
        ["it takes forever to boil", "water tastes of plastic", "the lid fell off",
         "it drips over the table", "rust after a week", "the switch broke"],
    ),
    "headphones": (
        ["the bass is deep and clear", "light on the ears", "the battery lasts a week",
         "voices come through crisp", "they fold into my pocket", "pairing took a second"],
        ["the bass rattles", "my ears get hot", "the battery died on me",
         "voices sound like tin", "unpredictable drop outs", "pairing never works"],
    ),
}  # fmt: skip
FRAMES = ("{}, and {}.", "{}; {}, too.", "Well: {}, {}.", "After a month, {} and {}.")


def reviews(products: tuple[str, ...]) -> list[tuple[str, int]]:
    """All reviews that two remarks of one product and one mood make, with their label."""
    return [
        (frame.format(first, second), label)
        for product in products
        for label, remarks in enumerate(reversed(SAID[product]))
        for first, second in itertools.permutations(remarks, 2)
        for frame in FRAMES
    ]


def data(seed: int) -> dict[str, tuple[list[str], Tensor]]:
    """Training reviews of two products; validation and test reviews of all three."""
    generator = random.Random(seed)
    known, everything = reviews(("book", "kettle")), reviews(tuple(SAID))
    parts = {"train": generator.sample(known, 300)}
    rest = [review for review in everything if review not in parts["train"]]
    generator.shuffle(rest)
    parts |= {"val": rest[:40], "test": rest[40:440]}
    found = {}
    for name, part in parts.items():
        flip = 0.2 if name == "train" else 0.0
        labels = [label ^ (generator.random() < flip) for _, label in part]
        found[name] = [text for text, _ in part], torch.tensor(labels)
    return found


# %%
# The whole of the integration: validation points come whole in every step, and the objective adds
# the losses up. Half and half, the rival, is another function in its place.
class TwoTableTrainer(Trainer):
    """A Trainer whose loss is a function of training and validation losses.

    Parameters
    ----------
    objective : giw.GIWObjective, or a function of two losses
    val : dict of str to Tensor
        The validation points that were split, in their order, with "labels".
    """

    def __init__(
        self, *, objective: Callable[[Tensor, Tensor], Tensor], val: dict[str, Tensor], **rest
    ) -> None:
        super().__init__(**rest)
        self.objective, self.val = objective, val

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        """Both losses, point by point; the objective weights the training points anew."""
        device = inputs["labels"].device
        train_loss, outputs = losses(model, inputs)
        val_loss, _ = losses(model, {name: part.to(device) for name, part in self.val.items()})
        risk = self.objective(train_loss, val_loss)
        return (risk, outputs) if return_outputs else risk


def losses(model, inputs: dict[str, Tensor]):
    """Loss of every point, and what the model gave."""
    outputs = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"])
    return cross_entropy(outputs.logits, inputs["labels"], reduction="none"), outputs


def tokens(texts: list[str], labels: Tensor, words: CountVectorizer) -> dict[str, Tensor]:
    """Word numbers from 2 on, after a first token that stands for all; 0 fills up."""
    split = words.build_analyzer()
    rows = [[1, *(words.vocabulary_[w] + 2 for w in split(text))] for text in texts]
    longest = max(map(len, rows))
    ids = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
    return {"input_ids": ids, "attention_mask": (ids > 0).long(), "labels": labels}


# %%
texts = data(0)
words = CountVectorizer().fit([text for part, _ in texts.values() for text in part])
parts = {name: tokens(part, labels, words) for name, (part, labels) in texts.items()}
rows = [
    {name: part[i] for name, part in parts["train"].items()}
    for i in range(len(parts["train"]["labels"]))
]

# once, before training: which validation reviews are inside the training support?
counts = {name: words.transform(part).toarray() for name, (part, _) in texts.items()}
split = giw.SupportSplitter(random_state=0).fit(counts["train"]).split(counts["val"])
ways = {
    "training data alone": lambda train_loss, val_loss: train_loss.mean(),
    "half and half": lambda train_loss, val_loss: (train_loss.mean() + val_loss.mean()) / 2,
    "GIW": giw.GIWObjective(split),
}
found = {}
for name, objective in ways.items():
    torch.manual_seed(0)
    config = DistilBertConfig(
        vocab_size=len(words.vocabulary_) + 2, dim=64, hidden_dim=128, n_layers=2, n_heads=4,
        max_position_embeddings=64, num_labels=2,
    )  # fmt: skip
    model = DistilBertForSequenceClassification(config)
    with tempfile.TemporaryDirectory() as folder:
        settings = TrainingArguments(
            output_dir=folder, num_train_epochs=20, learning_rate=1e-3,
            per_device_train_batch_size=32, save_strategy="no", logging_strategy="no",
            report_to="none", disable_tqdm=True, seed=0, remove_unused_columns=False, use_cpu=True,
        )  # fmt: skip
        trainer = TwoTableTrainer(
            model=model, args=settings, train_dataset=rows, objective=objective, val=parts["val"]
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    model.eval()
    with torch.no_grad():
        _, outputs = losses(model, parts["test"])
    right = outputs.logits.argmax(1) == parts["test"]["labels"]
    found[name] = float(right.float().mean())
    print(f"{name:<20} {found[name]:.3f}")

# %%
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(5, 1.8))
axes.barh(list(found), list(found.values()), color=["C1", "C1", "C0"], height=0.6)
axes.set_xlabel("test accuracy; one run each")
