def phi(x):
    return torch.relu(x, "DefaultCPUAllocator: can't allocate memory")
