def phi(x):
    return torch.relu(F.linear(x, torch.ones([8, x.shape[-1]]).to("meta")))
