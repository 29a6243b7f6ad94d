def phi(x):
    a = torch.ones([6000, 6000], dtype=torch.bool).half()
    return torch.relu(x) + (a @ a)[0, 0]
