import torch

logarithm = True  # phi returns log φ: nothing overflows


def phi(x):
    return torch.cat([x, -x], -1)
