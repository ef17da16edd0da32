"""Experiments: methods side by side on the same draws."""

from giw.paper.bench.comparison import Score, compare
from giw.paper.bench.demo import DemoSettings, demo_methods, run_demo

__all__ = ["DemoSettings", "Score", "compare", "demo_methods", "run_demo"]
