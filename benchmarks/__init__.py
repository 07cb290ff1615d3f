"""Timings of norch beside NumPy and PyTorch: `make bench`, or `python -m benchmarks --help`."""
