# [ReLU(x) cos(π i/2n), ReLU(x) sin(π i/2n)], i the token's number, n how many there are (Qin et al. 2022)
import math

import torch


def phi(x, i, n):
    angle = math.pi / 2 * i / n
    cosine = torch.cos(angle).clamp(min=0)
    return torch.cat([torch.relu(x) * cosine, torch.relu(x) * torch.sin(angle)], -1)
