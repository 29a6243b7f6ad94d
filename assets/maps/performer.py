# exp(ω·y − ‖y‖²/2), y = x/d^¼, ω of Gaussians (Choromanski et al. 2021; ω is not made orthogonal here)
import torch

shared = True  # one omega for queries and keys
parameters = {"omega": ("4d d", "normal", "fixed")}
logarithm = True  # phi returns log φ: nothing overflows


def phi(x, omega):
    x = x / x.shape[-1] ** 0.25
    return x @ omega.transpose(0, 1) - (x * x).sum(-1, keepdim=True) / 2
