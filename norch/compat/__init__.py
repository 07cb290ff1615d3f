"""PyTorch's names for programs written for it. Each module is imported when it is first used."""
