"""What a training step costs, beside plain training of the same net.

    GIW_DATA=... python benchmarks/training.py cpu            # a few minutes on two cores
    GIW_DATA=... python benchmarks/training.py cuda           # two minutes on a large GPU
    GIW_DATA=... python benchmarks/training.py cuda --quick   # 8 epochs instead of 400
    python benchmarks/training.py methods                     # a step of every method, on a GPU
    python benchmarks/training.py kernels                     # with and without each kernel
    python benchmarks/training.py resnet                      # ResNet-18, on a GPU

Figures to be compared stand in one run, one after the other. On CUDA a time per step is the median
over epochs of wall time; on the CPU it is the least over epochs of CPU seconds, all threads
together, which other work on the machine disturbs less. Without ``GIW_DATA`` random images of the
same sizes stand in for MNIST: the cost is the same, accuracies mean nothing.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import vmap

from giw.nets.kernels.devices import Precision
from giw.nets.methods import GIW, METHODS, TrainOnly
from giw.nets.models import LeNet5, build
from giw.nets.training import (
    FunctionalNet,
    Method,
    Tensors,
    TrainingConfig,
    as_input,
    sample_losses,
    train_trials,
)
from giw.objective import DynamicWeights, dynamic_kmm, published
from giw.paper.settings import PaperSetting, paper_problem, paper_samples, paper_setting
from giw.paper.shifts import trial_seeds

TEN = ("val_only", "pretrain_val", "pooled", "giw", "diw", "r_diw", "ccsa", "dann", "reweight",
       "mw_net")  # fmt: skip
CONFIG = TrainingConfig(pretrain_epochs=0, weight_decay=0.005)


# ---------------------------------------------------------------------------- problems


def problems(setting: PaperSetting, trials: int, device: str) -> list[Tensors]:
    """Trials of one of the paper's settings, honest validation data."""
    try:
        samples = paper_samples(setting.dataset)
    except FileNotFoundError as error:
        print(f"random images instead of data: {error}")
        return [random_problem(setting, t, device) for t in range(trials)]
    made = []
    for t in range(trials):
        problem, _ = paper_problem(
            setting.dataset, setting.case, setting.shift, trial=t, samples=samples
        )
        made.append(Tensors.from_problem(problem, device))
    return made


def random_problem(setting: PaperSetting, trial: int, device: str) -> Tensors:
    """Noise of the right shape."""
    generator = torch.Generator().manual_seed(trial)
    channels, n = {
        "color_mnist": (3, 59_980),
        "cifar20": (3, 20_000),
        "mnist": (1, 24_746),
    }[setting.dataset]

    def draw(size: int) -> tuple[Tensor, Tensor]:
        x = torch.randint(256, (size, channels, 32, 32), generator=generator, dtype=torch.uint8)
        y = torch.randint(setting.n_classes, (size,), generator=generator)
        return x.to(device), y.to(device)

    return Tensors(*draw(n), *draw(setting.n_val), *draw(10_000))


def nets(setting: PaperSetting, datas: Sequence[Tensors]) -> list[nn.Module]:
    """One initialised net per trial."""
    return [
        build(
            setting.net,
            data.x_train.shape,
            setting.n_classes,
            random_state=trial_seeds(0, t).init,
        ).to(data.x_train.device)
        for t, data in enumerate(datas)
    ]


def first_rows(data: Tensors, n: int) -> Tensors:
    """A problem with fewer training rows and no test data."""
    return replace(
        data, x_train=data.x_train[:n], y_train=data.y_train[:n], x_test=None, y_test=None
    )


# ---------------------------------------------------------------------------- clocks


def epoch_seconds(
    method: Method,
    modules: Sequence[nn.Module],
    datas: Sequence[Tensors],
    config: TrainingConfig,
    *,
    side_by_side: bool | None = None,
) -> list[float]:
    """Seconds of each epoch but the first, in which kernels are chosen and steps recorded."""
    ends: list[float] = []
    clock = time.perf_counter if datas[0].x_train.is_cuda else time.process_time
    train_trials(
        method,
        modules,
        datas,
        config,
        side_by_side=side_by_side,
        on_epoch=lambda t: lambda *_: ends.append(clock()) if t == 0 else None,
    )
    return [b - a for a, b in pairwise(ends)]


def step_ms(
    method: Method,
    modules: Sequence[nn.Module],
    datas: Sequence[Tensors],
    config: TrainingConfig,
    *,
    side_by_side: bool | None = None,
) -> float:
    """Milliseconds of a step; of all trials where they go side by side."""
    steps = -(-len(datas[0].y_train) // config.batch_size)
    typical = statistics.median if datas[0].x_train.is_cuda else min
    seconds = epoch_seconds(method, modules, datas, config, side_by_side=side_by_side)
    return typical(seconds) / steps * 1e3


def device_ms(work: Callable[[], object], repeats: int = 50) -> float:
    """Milliseconds of some work on the GPU, replayed as a graph: no launch gaps."""
    from giw.nets.kernels.graph import captured

    replay = captured(work, torch.device("cuda"), lambda: None)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(repeats):
        replay()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / repeats


def say(what: str, value: str, goal: str = "") -> None:
    """One line of the report."""
    print(f"{what:<66} {value:>14}  {goal}", flush=True)


# ---------------------------------------------------------------------------- CPU


def cpu(quick: bool) -> None:
    """Ratios on the CPU."""
    setting = paper_setting("mnist", "iii", "support")
    data = problems(setting, 1, "cpu")[0]
    print(f"\nMNIST (iii), LeNet-5, batch 256, {torch.get_num_threads()} threads")

    few = first_rows(data, 256 * 10)
    epochs = replace(CONFIG, epochs=4 if quick else 10)
    rounds = 1 if quick else 3
    methods = TrainOnly(), GIW(), GIW(weigh=DynamicWeights(bandwidth="paper"))
    part = nets(setting, [few]), [few], epochs
    times = [[step_ms(method, *part) for method in methods] for _ in range(rounds)]
    plain, giw, exact = (min(of_method) for of_method in zip(*times, strict=True))
    losses, val = torch.rand(256), torch.rand(20)
    started = time.process_time()
    for _ in range(20):
        dynamic_kmm(losses, val, torch.ones(20))
    weights = (time.process_time() - started) / 20 * 1e3
    say("plain step (ms)", f"{plain:.1f}")
    say("GIW step (ms)", f"{giw:.1f}")
    say("of which weight estimation", f"{100 * weights / giw:.0f} %")
    say("GIW step / plain step", f"{giw / plain:.2f}", "goal ≤ 1.6")
    say("the same with the exact weights of the paper", f"{exact / plain:.2f}", "goal ≤ 1.2")

    module = nets(setting, [few])[0]
    formats = [
        gradient_ms(module, few, Precision(channels_last=last)) for last in (False, True) * rounds
    ]
    gain = min(formats[::2]) / min(formats[1::2])
    say("gradient of a batch, plain memory format / channels last", f"{gain:.2f}")
    three = [(nets(setting, [few] * 3), [few] * 3, replace(CONFIG, epochs=4))] * rounds
    stacked = min(step_ms(TrainOnly(), *part, side_by_side=True) / 3 for part in three)
    say("plain step of three trials, side by side / one by one", f"{stacked / plain:.2f}")

    whole = first_rows(data, len(data.y_train))
    once = replace(CONFIG, epochs=2 if quick else 4)
    moved = replace(once, augmentation=setting.augmentation)
    by_hand = min(plain_epoch_by_hand(data) for _ in range(1 if quick else 3))
    ours = min(epoch_seconds(GIW(), nets(setting, [whole]), [whole], once))
    augmented = min(epoch_seconds(GIW(), nets(setting, [whole]), [whole], moved))
    say("plain epoch by hand (s)", f"{by_hand:.1f}")
    say("GIW epoch / plain epoch by hand", f"{ours / by_hand:.2f}", "goal ≤ 3")
    say("the same with the paper's augmentation", f"{augmented / by_hand:.2f}", "goal ≤ 3")

    sizes = (2_560, 5_120, 10_240) if quick else (2_560, 5_120, 10_240, 20_480)
    cost = []
    for n in sizes:
        part = first_rows(data, n)
        cost.append(min(epoch_seconds(GIW(), nets(setting, [part]), [part], once)))
    for n, seconds in zip(sizes, cost, strict=True):
        say(f"GIW epoch, {n:,} training points: µs per point", f"{seconds / n * 1e6:.0f}")
    slope = np.polyfit(np.log(sizes), np.log(cost), 1)[0]
    say("cost grows as (training size) to the power", f"{slope:.2f}", "goal 1")


def gradient_ms(module: nn.Module, data: Tensors, precision: Precision, repeats: int = 10) -> float:
    """Least milliseconds of a forward and a backward pass over a batch of 256."""
    net, times = FunctionalNet(module, precision), []
    params = net.params()
    x, y = as_input(data.x_train[:256]), data.y_train[:256]
    for _ in range(repeats):
        started = time.process_time()
        loss = sample_losses(net(params, x), y).mean()
        torch.autograd.grad(loss, list(params.values()))
        times.append(time.process_time() - started)
    return min(times) * 1e3


def plain_epoch_by_hand(data: Tensors) -> float:
    """One epoch of what anyone would write, data in memory as floats."""
    x, y = data.x_train.float() / 255, data.y_train
    net = LeNet5(2)
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-4, weight_decay=0.005)
    started = time.process_time()
    for rows in torch.randperm(len(y)).split(256):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
        optimizer.step()
    return time.process_time() - started


# ---------------------------------------------------------------------------- CUDA


def cuda(quick: bool) -> None:
    """Color-MNIST on a GPU: total time, ratios, and the distance to the floor."""
    setting = paper_setting("color_mnist", "iii", "support")
    started = time.perf_counter()
    datas = problems(setting, 5, "cuda")
    print(f"\nColor-MNIST, LeNet-5, 5 trials, {torch.cuda.get_device_name()}")
    say("data made and moved to the device (s)", f"{time.perf_counter() - started:.1f}")
    config = TrainingConfig(
        epochs=8 if quick else setting.epochs,
        pretrain_epochs=2 if quick else setting.pretrain_epochs,
        weight_decay=setting.weight_decay,
    )
    modules = nets(setting, datas)
    started = time.perf_counter()
    few = [first_rows(data, 2560) for data in datas]
    train_trials(GIW(), modules, few, replace(config, epochs=1, pretrain_epochs=1))
    torch.cuda.synchronize()
    loading = time.perf_counter() - started
    say("once per process: libraries loaded, kernels compiled (s)", f"{loading:.1f}")
    marks: dict[str, float] = {}

    def mark(t: int) -> Callable[[str, int, object], None]:
        return lambda phase, epoch, _: marks.setdefault(f"{phase} {epoch}", time.perf_counter())

    torch.cuda.synchronize()
    started = time.perf_counter()
    records = train_trials(GIW(), modules, datas, config, on_epoch=mark)
    total = time.perf_counter() - started
    last = config.pretrain_epochs - 1
    say("pretraining (s)", f"{marks[f'pretrain {last}'] - started:.1f}")
    say(
        "split, recording and first epoch (s)",
        f"{marks['train 0'] - marks[f'pretrain {last}']:.1f}",
    )
    say(f"5 trials × {config.epochs} epochs, all included (s)", f"{total:.1f}", "goal ≤ 120")
    say("  in a fresh process (s)", f"{total + loading:.1f}", "goal ≤ 120")
    per_epoch = (marks[f"train {config.epochs - 1}"] - marks["train 0"]) / (config.epochs - 1)
    say("  per epoch with evaluation (ms)", f"{per_epoch * 1e3:.1f}")
    scores = [100 * record.final_accuracy() for record in records]
    say("  test accuracy, mean ± std", f"{np.mean(scores):.1f} ± {np.std(scores, ddof=1):.1f}")

    short = replace(config, epochs=6, pretrain_epochs=0)
    no_test = [data.without_test() for data in datas]
    plain_ms, giw_ms = {}, {}
    for trials in (1, 2, 3, 4, 5):
        part = modules[:trials], no_test[:trials], short
        plain_ms[trials] = step_ms(TrainOnly(), *part)
        giw_ms[trials] = step_ms(GIW(), *part)
        say(
            f"{trials} trials: plain step, GIW step (ms), ratio",
            f"{plain_ms[trials]:.3f} {giw_ms[trials]:.3f} {giw_ms[trials] / plain_ms[trials]:.2f}",
            "goal ≤ 1.4",
        )
    say("GIW step, 5 trials / 1 trial", f"{giw_ms[5] / giw_ms[1]:.2f}", "flat would be 1")
    losses, val, member = torch.rand(5, 256), torch.rand(5, 20), torch.ones(5, 20)
    parts = [part.cuda() for part in (losses, val, member)]
    weights = device_ms(lambda: vmap(dynamic_kmm)(*parts))
    say("weight estimation alone, 5 trials (ms)", f"{weights:.3f}")
    say("  share of a GIW step", f"{100 * weights / giw_ms[5]:.0f} %")

    flops, moved = step_floor(modules[0], trials=5, points=256 + setting.n_val)
    rate, bandwidth = ceilings()
    say("floating-point operations of a step (10⁹)", f"{flops / 1e9:.1f}")
    say("bytes a step must move (10⁶)", f"{moved / 1e6:.1f}")
    say("measured ceilings: TF32 TFLOP/s, TB/s", f"{rate / 1e12:.0f} {bandwidth / 1e12:.1f}")
    floor = max(flops / rate, moved / bandwidth) * 1e3
    say("floor of a step (ms)", f"{floor:.3f}")
    say("GIW step / floor", f"{giw_ms[5] / floor:.1f}")


def methods(quick: bool, names: Sequence[str]) -> None:
    """A step of every method beside the plain one, five LeNets side by side, random images."""
    setting = paper_setting("color_mnist", "iii", "support")
    datas = [first_rows(random_problem(setting, t, "cuda"), 5_120).without_test() for t in range(5)]
    modules = nets(setting, datas)
    config = replace(CONFIG, epochs=4 if quick else 10)
    print(f"\nMilliseconds of a step, LeNet-5, 5 trials, {torch.cuda.get_device_name()}")
    plain = step_ms(TrainOnly(), modules, datas, config)
    say("train_only", f"{plain:.3f}")
    for name in names:
        ms = step_ms(METHODS[name](), modules, datas, config)
        say(f"{name}, ratio to plain", f"{ms:.3f}  {ms / plain:.2f}")
    exact = GIW(weigh=DynamicWeights(bandwidth="paper"))
    ms = step_ms(exact, modules, datas, config)
    say("giw with published weights, ratio to plain", f"{ms:.3f}  {ms / plain:.2f}")
    alone = step_ms(exact, modules[:1], datas[:1], config)
    say("  one trial", f"{alone:.3f}")
    before, published.in_torch = published.in_torch, published.InNumpy.apply
    ms = step_ms(exact, modules, datas, replace(config, cuda_graph=False))
    alone = step_ms(exact, modules[:1], datas[:1], replace(config, cuda_graph=False))
    published.in_torch = before
    say("the same weights in numpy, ratio to plain", f"{ms:.3f}  {ms / plain:.2f}")
    say("  one trial", f"{alone:.3f}")


def kernels(quick: bool) -> None:
    """What each part of ``nets/kernels`` brings: a step with all of them, and without each."""
    from giw.nets.kernels import patches, products
    from giw.nets.training import run

    def never(*_: object) -> bool:
        return False

    def best_by_torch(windows: Tensor) -> Tensor:
        return windows.max(dim=-2).values.relu()

    without: dict[str, tuple[tuple[object, str, object], ...]] = {
        "all": (),
        "Triton patches": ((patches, "reaches", never),),
        "products": ((run, "by_products", copy.deepcopy),),
        "Triton best of four": ((products, "best_of_four", best_by_torch),),
    }
    settings = {"CUDA graph": {"cuda_graph": False}, "TF32 or bfloat16": {"precision": "float32"}}
    cases = [
        ("mnist", 1, 256, ("train_only", "giw", "giw_plus")),
        ("mnist", 5, 256, ("train_only", "giw", "giw_plus")),
        ("color_mnist", 1, 64, ("giw_plus",)),
        ("color_mnist", 1, 256, ("train_only", "giw", "giw_plus")),
        ("color_mnist", 5, 256, ("train_only", "giw", "giw_plus")),
        ("cifar20", 1, 256, ("train_only", "giw")),
    ]
    cases = [case for case in cases if case[1] > 1] if quick else cases
    print(f"\nMilliseconds of a step, {torch.cuda.get_device_name()}; ratio to all kernels")
    for dataset, trials, batch, names in cases:
        setting = paper_setting(dataset, "iii", "support")
        datas = [first_rows(random_problem(setting, t, "cuda"), 20 * batch) for t in range(trials)]
        modules = nets(setting, datas)
        config = replace(CONFIG, epochs=5 if quick else 15, batch_size=batch)
        case = f"{dataset}, {trials} trials, batch {batch}"
        for name in names:
            full = 0.0
            for part, patched in without.items():
                if dataset == "cifar20" and part != "all":
                    continue
                before = [getattr(place, what) for place, what, _ in patched]
                for place, what, instead in patched:
                    setattr(place, what, instead)
                ms = step_ms(METHODS[name](), modules, datas, config)
                for (place, what, _), old in zip(patched, before, strict=True):
                    setattr(place, what, old)
                full = full or ms
                title = part if part == "all" else f"without {part}"
                say(f"{case}, {name}: {title}", f"{ms:.3f}  {ms / full:.2f}")
            for part, changed in settings.items():
                ms = step_ms(METHODS[name](), modules, datas, replace(config, **changed))
                say(f"{case}, {name}: without {part}", f"{ms:.3f}  {ms / full:.2f}")


def resnet(quick: bool, names: Sequence[str]) -> None:
    """ResNet-18 on images of CIFAR-20's sizes: steps of every method, and the plain one's floor."""
    setting = paper_setting("cifar20", "iii", "support")
    data = first_rows(random_problem(setting, 0, "cuda"), 5_120).without_test()
    module = nets(setting, [data])
    config = replace(CONFIG, epochs=3 if quick else 6)
    print(f"\nResNet-18, 32 × 32, batch 256, bfloat16, {torch.cuda.get_device_name()}")
    plain = step_ms(TrainOnly(), module, [data], config)
    say("plain step (ms), images a second", f"{plain:.2f}  {256 / plain * 1e3:.0f}")
    flops = 6.0 * multiplications(module[0]) * 256
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    rate = 2 * 8192**3 / device_ms(lambda: a @ a, 10) * 1e3
    say(
        "operations of it (10¹²), measured ceiling (TFLOP/s)",
        f"{flops / 1e12:.2f}  {rate / 1e12:.0f}",
    )
    say("plain step / floor", f"{plain / (flops / rate * 1e3):.1f}")
    for name in names:
        ms = step_ms(METHODS[name](), module, [data], config)
        say(f"{name} (ms), ratio to plain", f"{ms:.2f}  {ms / plain:.2f}")


def multiplications(module: nn.Module) -> float:
    """Of one 32 × 32 image going forward through convolutions and linear layers."""
    counts: list[float] = []

    def note(layer: nn.Module, _: object, out: Tensor) -> None:
        counts.append(out[0].numel() // out.shape[1] * float(layer.weight.numel()))  # type: ignore[union-attr]

    copy_of = copy.deepcopy(module).eval()
    for layer in copy_of.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            layer.register_forward_hook(note)
    with torch.no_grad():
        copy_of(torch.zeros(1, 3, 32, 32, device=next(module.parameters()).device))
    return sum(counts)


def step_floor(module: nn.Module, *, trials: int, points: int) -> tuple[float, float]:
    """Operations and fewest bytes of a step: forward, two products backward, Adam."""
    shapes: list[tuple[nn.Module, int]] = []

    def note(layer: nn.Module, _: object, out: Tensor) -> None:
        places = out[0].numel() // out.shape[1]
        shapes.append((layer, places * layer.weight.numel()))  # type: ignore[union-attr]

    hooks = [
        layer.register_forward_hook(note)
        for layer in module.modules()
        if isinstance(layer, nn.Conv2d | nn.Linear)
    ]
    channels = module.conv1.in_channels  # type: ignore[union-attr]
    with torch.no_grad():
        module(torch.zeros(1, channels, 32, 32, device=next(module.parameters()).device))
    for hook in hooks:
        hook.remove()
    products = sum(3 * count for _, count in shapes) - shapes[0][1]  # no gradient of the images
    flops = 2.0 * products * points * trials
    size = sum(p.numel() for p in module.parameters())
    moved = trials * (points * channels * 32 * 32 + 4 * size * 6)  # read and write p, m, v
    return flops, float(moved)


def ceilings() -> tuple[float, float]:
    """Operations and bytes a second that this device reaches."""
    a = torch.randn(8192, 8192, device="cuda")
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    product = device_ms(lambda: a @ a, 10)
    torch.backends.cuda.matmul.allow_tf32 = before
    block = torch.empty(2**30, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(block)
    copy = device_ms(lambda: target.copy_(block), 10)
    return 2 * 8192**3 / product * 1e3, 2 * 2**30 / copy * 1e3


PLAIN = {"cpu": cpu, "cuda": cuda, "kernels": kernels}
CHOSEN = {"methods": methods, "resnet": resnet}  # for methods by name


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=[*PLAIN, *CHOSEN])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--method", nargs="*", default=TEN, help="for methods and resnet")
    args = parser.parse_args()
    print(f"torch {torch.__version__}")
    if args.what in CHOSEN:
        CHOSEN[args.what](args.quick, args.method)
    else:
        PLAIN[args.what](args.quick)


if __name__ == "__main__":
    main()
