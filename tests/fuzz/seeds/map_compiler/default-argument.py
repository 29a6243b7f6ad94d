def f(x, n: int = 7 % 0):
    return x


def phi(x):
    return f(x)
