"""Density ratios and what follows from them, by "noisier" noise contrastive estimation (N2CE).

The ratio is always numerator / denominator, and log ratios are in nats. docs/python.md of the
repository is the manual; ``n2ce.torch`` and ``n2ce.jax`` have the objective for PyTorch and JAX.
"""
from ._core import Answer, task_names as tasks
from ._core import lib as _lib
from ._errors import (BadData, Canceled, DeviceProblem, Error, FileExists, FileProblem,
                      InvalidArgument, NotFinite, OutOfMemory, OutOfRange, Warning)
from .functions import (Estimate, TestResult, jensen_shannon, kl_divergence, mutual_information,
                        run, two_sample_test)
from .images import read_images
from .objective import bound_cap, diagnostics, magnitude_for, n2ce_loss, n2ce_loss_and_gradient

__version__ = _lib.n2ce_version().decode()
__all__ = ["Answer", "BadData", "Canceled", "DensityRatio", "DeviceProblem", "Error", "Estimate",
           "FileExists", "FileProblem", "InvalidArgument", "NotFinite", "OutOfMemory", "OutOfRange",
           "TestResult", "Warning", "bound_cap", "diagnostics", "jensen_shannon", "kl_divergence",
           "magnitude_for", "mutual_information", "n2ce_loss", "n2ce_loss_and_gradient",
           "read_images", "run",
           "tasks", "two_sample_test", "AnomalyDetector", "OfflineOptimizer"]


def __getattr__(name):
    """Estimators on first use, because their base class imports scikit-learn, which takes time."""
    if name == "DensityRatio":
        from .density_ratio import DensityRatio
        return DensityRatio
    if name == "AnomalyDetector":
        from .anomaly_detector import AnomalyDetector
        return AnomalyDetector
    if name == "OfflineOptimizer":
        from .optimizer import OfflineOptimizer
        return OfflineOptimizer
    raise AttributeError(f"module 'n2ce' has no attribute {name!r}")
