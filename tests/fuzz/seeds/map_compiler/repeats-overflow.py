def phi(x):
    return x + torch.repeat_interleave(torch.tensor([9223372036854775807, 9223372036854775807, 4])).sum()
