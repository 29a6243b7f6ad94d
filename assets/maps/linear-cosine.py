# x/‖x‖₂ per head, without a normaliser (Bolya et al. 2022, Eq. 7)
import torch

normalised = False


def phi(x):
    return x / x.norm(2, dim=-1, keepdim=True).clamp(min=1e-12)
