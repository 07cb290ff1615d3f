"""x-transformers: decoders and encoders with several kinds of positions and norms, and generation."""

import torch
from numbers_made import fill, show
from x_transformers import AutoregressiveWrapper, Decoder, Encoder, TransformerWrapper

tokens = torch.arange(12).view(1, 12) % 20
kinds = {
    "rotary": Decoder(dim=16, depth=2, heads=2, attn_dim_head=8, rotary_pos_emb=True, attn_flash=True),
    "alibi": Encoder(dim=16, depth=2, heads=2, alibi_pos_bias=True, ff_glu=True, use_rmsnorm=True, attn_qk_norm=True),
    "bias": Encoder(dim=16, depth=1, heads=2, rel_pos_bias=True, sandwich_norm=True),
}
for name, layers in kinds.items():
    model = fill(TransformerWrapper(num_tokens=20, max_seq_len=16, attn_layers=layers)).eval()
    out = model(tokens)
    out.square().mean().backward()
    show(name, out, next(model.parameters()).grad)
layers = Decoder(dim=16, depth=1, heads=2)
model = AutoregressiveWrapper(fill(TransformerWrapper(num_tokens=20, max_seq_len=16, attn_layers=layers)))
loss = model(tokens)
loss.backward()
show("loss", loss, model.net.token_emb.emb.weight.grad)
print(model.generate(tokens[:, :3], 5, temperature=0.0).tolist())
