r"""LeNet-5 as a chain of matrix products, for trials side by side.

Stacked over trials, a convolution becomes a grouped convolution, for which libraries have slow
kernels; a matrix product becomes a batched product, for which they have fast ones. A convolution
followed by max-pooling needs fewer numbers than it seems: the four windows that one pooled pixel
looks at lie in one patch of 6 × 6, so

.. math:: \max_{a, b \in \{0, 1\}} (k * x)_{2i + a, 2j + b}
          = \max_{ab}\ \langle K_{ab},\ x_{2i : 2i + 6,\ 2j : 2j + 6} \rangle

with K_ab the kernel set into a 6 × 6 frame at offset (a, b). Patches are cut with stride two:
36/100 of the numbers that unfolding for the convolution alone would write, at 1.44 times the
multiplications.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from giw.nets.images import resize_images
from giw.nets.kernels.patches import beside, best_of_four, cut_patches
from giw.nets.models import SIDE, LeNet5, as_input

ENOUGH_PRODUCTS = 32  # products side by side that keep a large GPU busy, with several trials each


class ProductLeNet5(LeNet5):
    """The same function of the same parameters."""

    # an attribute and no buffer: it belongs to the form of the net, not to its state
    frames: Tensor

    def features(self, x: Tensor) -> Tensor:
        """Third layer after ReLU, (n, 120)."""
        x = resize_images(as_input(x), SIDE).permute(0, 2, 3, 1)  # (n, 32, 32, channels)
        x = conv_relu_pool(x, self.conv1.weight, self.conv1.bias, self.frames)  # (n, 14, 14, ·)
        x = conv_relu_pool(x, self.conv2.weight, self.conv2.bias, self.frames)  # (n, 5, 5, ·)
        # fc1 was made for channels first; its small weight is turned instead of every image
        weight = self.fc1.weight.unflatten(1, (-1, *x.shape[1:3])).permute(0, 2, 3, 1)
        return nn.functional.linear(x.flatten(1), weight.flatten(1), self.fc1.bias).relu()


def framing(k: int) -> Tensor:
    """Zeros and ones that set a k × k kernel into four frames, (k², 4 (k + 1)²)."""
    kernels = torch.eye(k * k).view(k * k, k, k)
    places = [pad(kernels, (b, 1 - b, a, 1 - a)) for a in (0, 1) for b in (0, 1)]
    return torch.stack(places, dim=1).reshape(k * k, -1)


def conv_relu_pool(x: Tensor, weight: Tensor, bias: Tensor | None, frames: Tensor) -> Tensor:
    """A convolution, ReLU and 2 × 2 max-pooling, channels last.

    Parameters
    ----------
    x : Tensor of shape (n, height, width, channels)
    weight : Tensor of shape (out, channels, k, k)
    bias : Tensor of shape (out,)
    frames : Tensor
        ``framing(k)``.

    Returns
    -------
    Tensor of shape (n, (height - k + 1) // 2, (width - k + 1) // 2, out)
    """
    n, (out, _, k, _) = len(x), weight.shape
    h, w = (x.shape[1] - k + 1) // 2, (x.shape[2] - k + 1) // 2
    framed = (weight.flatten(2) @ frames.to(weight)).unflatten(2, (4, -1))
    kernel = framed.permute(3, 1, 2, 0).reshape(-1, 4 * out)  # ((k + 1)² channels, 4 out)
    offset = weight.new_zeros(out) if bias is None else bias
    below = pad(offset.repeat(4)[None], (0, 0, 0, beside(len(kernel)) - 1))
    kernel = torch.cat([kernel, below])
    # In the backward pass the weight's gradient sums over all patches. Cut into several products
    # it keeps the whole device busy.
    parts = most_parts(n, ENOUGH_PRODUCTS // -(-kernel.numel() // 2**14))
    patches = cut_patches(x, k + 1)  # (n, h, w, (k + 1)² channels, then a one and zeros)
    rows = patches.reshape(parts, -1, patches.shape[-1])
    # the sum over products is what expand's backward does
    windows = torch.bmm(rows, kernel.expand(parts, -1, -1)).reshape(-1, 4, out)
    return best_of_four(windows).reshape(n, h, w, out)


def most_parts(n: int, most: int) -> int:
    """The largest divisor of n that is not above ``most``, at least one."""
    return max(parts for parts in range(1, max(1, most) + 1) if n % parts == 0)


def by_products(module: nn.Module) -> nn.Module:
    """A copy of a net that is fast when stacked; nets without a faster form are just copied."""
    form = copy.deepcopy(module)
    if type(form) is LeNet5:
        form.__class__ = ProductLeNet5
        form.frames = framing(form.conv1.kernel_size[0]).to(form.conv1.weight)
    return form
