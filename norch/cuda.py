"""CUDA, as PyTorch's torch.cuda tells of it. This version has no CUDA backend."""


def is_available() -> bool:
    """Whether tensors can be put on a CUDA device."""
    return False


def device_count() -> int:
    """The number of CUDA devices."""
    return 0
