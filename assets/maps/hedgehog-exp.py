# exp y, y = x·W + b: hedgehog without the negation (Zhang et al. 2024, Eq. 3)
import torch

parameters = {"W": ("H d d", "identity"), "b": ("H d", "zeros")}
logarithm = True  # phi returns log φ: nothing overflows


def phi(x, W, b):
    return x @ W + b.unsqueeze(1)
