"""A solution of exercises/contraction.py."""

import math


def kinds(left, right, out):
    batch = "".join(label for label in left if label in right and label in out)
    rows = "".join(label for label in left if label not in right)
    columns = "".join(label for label in right if label not in left)
    inner = "".join(label for label in left if label in right and label not in out)
    return batch, rows, columns, inner


def contract(equation, x, y):
    inputs, out = equation.split("->")
    left, right = inputs.split(",")
    size = dict(zip(left + right, x.shape + y.shape))
    batch, rows, columns, inner = kinds(left, right, out)

    def arranged(operand, labels, *groups):
        moved = operand.permute(*[labels.index(label) for label in "".join(groups)])
        return moved.reshape(*[math.prod(size[label] for label in group) for group in groups])

    result = arranged(x, left, batch, rows, inner) @ arranged(y, right, batch, inner, columns)
    labels = batch + rows + columns
    return result.reshape(*[size[label] for label in labels]).permute(*[labels.index(label) for label in out])
