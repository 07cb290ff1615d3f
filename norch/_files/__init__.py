"""Reading and writing files of tensors: the parts of norch.serialization."""
