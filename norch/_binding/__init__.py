"""The binding of the C library: how it is found and loaded, its functions, numbers and buffers."""
