# Explicit weights: O(N²), for what is no feature map
import torch

logarithm = True  # score returns logarithms of the weights


def score(q, k):
    return q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
