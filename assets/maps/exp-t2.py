import torch

logarithm = True  # phi returns log φ: nothing overflows


def phi(x):
    return 2 * x
