"""The operations, family by family, as functions and as methods of Tensor."""
