"""Files of tensors, read and written: what norch.serialization is made of."""
