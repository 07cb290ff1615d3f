"""Exercise of chapter 10: attention by several heads, and with a cache. Run
this file; it says what is wrong until both are right."""

import norch


def multi_head(q, k, v, heads):
    """Causal attention of q, k and v (B, T, D) by several heads. Head h sees D
    / heads of the features, those from h * D / heads on, and its result is at
    the same features of the result (B, T, D)."""
    raise NotImplementedError(
        "multi_head: (B, T, heads, D / heads), heads before positions"
    )


def cached(q, k, v, cache):
    """Attention of one more position, whose q, k and v are (B, 1, D). cache is
    (keys, values) of the earlier positions, (B, T, D) each, or None. Returns
    the attention (B, 1, D) of this position to all positions, itself included,
    and the cache with this position added."""
    raise NotImplementedError(
        "cached: append to the cache, then attend to all of it"
    )


def check(multi_head, cached):
    """Raises an AssertionError that says what is wrong."""
    attention = norch.nn.functional.scaled_dot_product_attention
    norch.manual_seed(0)
    for batch, length, width, heads in [
        (2, 5, 8, 2),
        (1, 3, 6, 3),
        (2, 4, 4, 1),
    ]:
        q, k, v = (norch.randn(batch, length, width) for _ in range(3))
        found = multi_head(q, k, v, heads)
        assert found.shape == q.shape, (
            f"multi_head: the shape is {tuple(found.shape)}, not {tuple(q.shape)}"
        )
        part = width // heads
        for h in range(heads):
            at = slice(h * part, (h + 1) * part)
            wanted = attention(
                q[..., at], k[..., at], v[..., at], is_causal=True
            )
            assert norch.allclose(found[..., at], wanted, atol=1e-5), (
                f"multi_head: head {h} of {heads} is wrong"
            )
        whole, cache = attention(q, k, v, is_causal=True), None
        for t in range(length):
            at = slice(t, t + 1)
            found, cache = cached(q[:, at], k[:, at], v[:, at], cache)
            assert found.shape == (batch, 1, width), (
                f"cached: the shape is {tuple(found.shape)}"
            )
            assert norch.allclose(found, whole[:, at], atol=1e-5), (
                f"cached: position {t} differs from that of one pass"
            )
        keys = cache[0]
        assert keys.shape == k.shape, (
            f"cached: the cache has keys of shape {tuple(keys.shape)}, not {tuple(k.shape)}"
        )


if __name__ == "__main__":
    check(multi_head, cached)
    print("solved")
