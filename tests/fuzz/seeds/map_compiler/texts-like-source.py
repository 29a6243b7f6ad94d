def phi(x):
    """x,
def g(x):
  (or so, # of it
"""
    assert x.dim() == 4, "x is (B,H,N,d"
    return torch.relu(x)
