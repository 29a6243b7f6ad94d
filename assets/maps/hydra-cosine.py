# x/‖x‖₂ of whole rows of D features: as many heads as features (Bolya et al. 2022, Eq. 10)
import torch

hydra = True


def phi(x):
    return x / x.norm(2, dim=-1, keepdim=True).clamp(min=1e-12)
