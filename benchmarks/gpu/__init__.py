"""Timings on a GPU, with PyTorch in turns beside: `python -m benchmarks.gpu --help`."""
