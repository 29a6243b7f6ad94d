import torch


def phi(x):
    return torch.cat(x ,-x[], -0)
