# [softmax y, softmax −y], y = x·W + b (Zhang et al. 2024, Eq. 5 with Eq. 6)
import torch

parameters = {"W": ("H d d", "identity"), "b": ("H d", "zeros")}
logarithm = True  # phi returns log φ


def phi(x, W, b):
    y = x @ W + b.unsqueeze(1)
    return torch.cat([torch.log_softmax(y, -1), torch.log_softmax(-y, -1)], -1)
