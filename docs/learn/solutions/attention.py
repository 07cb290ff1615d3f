"""A solution of exercises/attention.py."""

import norch


def multi_head(q, k, v, heads):
    batch, length, width = q.shape
    q, k, v = (
        x.reshape(batch, length, heads, -1).transpose(1, 2) for x in (q, k, v)
    )
    scores = q @ k.mT / (width // heads) ** 0.5
    later = norch.ones(length, length, dtype=norch.bool).triu(1)
    seen = scores.masked_fill(later, float("-inf")).softmax(-1) @ v
    return seen.transpose(1, 2).reshape(batch, length, width)


def cached(q, k, v, cache):
    if cache is not None:
        k, v = norch.cat([cache[0], k], 1), norch.cat([cache[1], v], 1)
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v, (k, v)


if __name__ == "__main__":
    import _check

    _check.run(globals())
