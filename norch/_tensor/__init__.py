"""What norch.Tensor is made of: its handle in C, its place in memory, its autograd, its text, its copies."""
