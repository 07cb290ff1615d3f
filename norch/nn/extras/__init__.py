"""Layers and functions that few programs use. They are part of nn, nn.functional and nn.utils, which import them from
here when their names are first read; this package itself exports nothing.
"""
