def phi(x):
    y = torch.repeat_interleave(torch.tensor([1000000, -999990]), output_size=10)
    return torch.relu(x) + y.sum()
