"""How the package is put together: exported names, names left out, __torch_function__, options of classes."""
