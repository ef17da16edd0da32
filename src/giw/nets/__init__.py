"""Nets that are trained under a shift."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from giw.nets.classifier import GIWClassifier

__all__ = ["GIWClassifier"]


def __getattr__(name: str) -> Any:
    """Load the classifier when it is first touched: saving looks nets up in this room."""
    if name == "GIWClassifier":
        from giw.nets.classifier import GIWClassifier

        return GIWClassifier
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
