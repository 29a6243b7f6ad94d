import torch


def phi(x):
    return torch.relu(x) ** 2
