"""openai-whisper: a small network of sound and text with gradients, its spectra, and decoding by beams and greedily."""

import torch
import whisper
from numbers_made import array, fill, show
from whisper.model import ModelDimensions, Whisper
from whisper.timing import median_filter


def sizes(frames, text):
    return ModelDimensions(
        n_mels=80, n_audio_ctx=frames, n_audio_state=32, n_audio_head=4, n_audio_layer=1, n_vocab=51865,
        n_text_ctx=text, n_text_state=32, n_text_head=4, n_text_layer=1,
    )  # fmt: skip


model = fill(Whisper(sizes(50, 32)))
mel, tokens = torch.tensor(array(2, 80, 100)).float(), torch.tensor(array(2, 6, low=0, high=100))
out = model(mel, tokens)
out.square().mean().backward()
show("forward", out, *(p.grad for p in model.parameters() if p.grad is not None))
show("spectrum", whisper.log_mel_spectrogram(torch.tensor(array(16000)).float(), padding=100))
show("padded", whisper.pad_or_trim(torch.tensor(array(16000))))
show("median", median_filter(torch.tensor(array(2, 3, 40)).float(), 7))
model.eval()
with torch.no_grad():
    cache, hooks = model.install_kv_cache_hooks()
    heard = model.embed_audio(mel)
    show("cached", *(model.decoder(part, heard, kv_cache=cache) for part in (tokens, tokens[:, :1])))

model, mel = fill(Whisper(sizes(1500, 448))).eval(), torch.tensor(array(80, 3000)).float()
for options in ({"beam_size": 2}, {}):
    # The tokenizer reads a file that the package brings along.
    said = whisper.decode(model, mel, whisper.DecodingOptions(language="en", fp16=False, sample_len=6, **options))
    print("decoded", *said.tokens)
    show("likelihoods", said.avg_logprob, said.no_speech_prob)
print("language", int(model.detect_language(mel)[0]))
