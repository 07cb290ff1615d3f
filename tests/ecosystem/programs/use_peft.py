"""peft: adapters of a small GPT-2 (LoRA, DoRA, IA3, prefixes), their gradients, and merged weights."""

import torch
from numbers_made import array, fill, show
from peft import IA3Config, LoraConfig, PrefixTuningConfig, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel

ids = torch.tensor(array(2, 6, low=0, high=30))
size = {"vocab_size": 30, "n_positions": 16, "n_embd": 16, "n_layer": 2, "n_head": 2}
still = dict.fromkeys(("attn_pdrop", "embd_pdrop", "resid_pdrop"), 0.0)
for name, config in {
    "LoRA": LoraConfig(r=4, target_modules=["c_attn"], lora_alpha=8, fan_in_fan_out=True),
    "DoRA": LoraConfig(r=4, target_modules=["c_attn"], use_dora=True, fan_in_fan_out=True),
    "IA3": IA3Config(target_modules=["c_attn"], feedforward_modules=[], fan_in_fan_out=True),
    "prefix": PrefixTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3),
}.items():
    model = fill(get_peft_model(GPT2LMHeadModel(GPT2Config(**size, **still)), config))
    out = model(input_ids=ids, labels=ids)
    out.loss.backward()
    trained = [p for p in model.parameters() if p.requires_grad]
    print(name, sum(p.numel() for p in trained))
    show(name, out.loss, out.logits, *[p.grad for p in trained][:2])
    if isinstance(config, LoraConfig):
        show("merged", model.merge_and_unload()(input_ids=ids).logits)
