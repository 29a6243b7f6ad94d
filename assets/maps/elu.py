# 1 + ELU(x) (Katharopoulos et al. 2020)
import torch

logarithm = True  # phi returns log φ: nothing underflows


def phi(x):
    return torch.where(x > 0, torch.log1p(x.clamp(min=0)), x)
