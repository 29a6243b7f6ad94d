def phi(x):
    return x + torch.zeros([0, 1000000000000]).diff(1000000000000, 1).sum()
