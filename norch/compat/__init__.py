"""Names of PyTorch that are there for old scripts only; nothing here is imported before it is asked for."""
