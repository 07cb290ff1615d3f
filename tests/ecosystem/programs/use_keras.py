"""keras: layers, losses and optimizers on its backend of PyTorch; fit, a training step of one's own, a saved model."""

import os

os.environ["KERAS_BACKEND"] = "torch"

import tempfile

import keras
import numpy as np
import torch
from keras import layers as L  # noqa: N812
from numbers_made import array, show


def numbers(*shape, seed=0):
    return array(*shape, seed=seed).astype("float32")


def weighted(model):
    """With weights that NumPy draws."""
    for place, weight in enumerate(model.weights):
        if "seed" in weight.path:
            continue
        values = np.random.default_rng(place).normal(size=weight.shape)
        near_one = "var" in weight.path or "gamma" in weight.path
        weight.assign(np.abs(values) * 0.1 + 1 if near_one else values * (0.3 if values.ndim > 1 else 0.1))
    return model


images, classes = numbers(16, 12, 12, 3), array(16, low=0, high=3, seed=1)
parts = [L.Conv2D(4, 3, activation="relu"), L.BatchNormalization(), L.MaxPooling2D(), L.DepthwiseConv2D(3), L.Flatten()]
model = weighted(keras.Sequential([keras.Input((12, 12, 3)), *parts, L.Dense(3, activation="softmax")]))
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
history = model.fit(images, classes, epochs=3, batch_size=4, verbose=0, shuffle=False).history
show("images", *history.values(), model.predict(images, verbose=0), model.evaluate(images, classes, verbose=0))

words = keras.Input((10,), dtype="int32")
x = L.Embedding(20, 8)(words)
x = L.LayerNormalization()(x + L.MultiHeadAttention(2, 4)(x, x))
x = L.GRU(4)(L.Bidirectional(L.LSTM(5, return_sequences=True))(x))
model, given = weighted(keras.Model(words, L.Dense(2)(x))), array(6, 10, low=0, high=20)
model.compile(keras.optimizers.AdamW(1e-2), keras.losses.MeanSquaredError())
show("words", model.fit(given, numbers(6, 2), epochs=3, verbose=0, shuffle=False).history["loss"])
with tempfile.TemporaryDirectory() as folder:
    model.save(f"{folder}/model.keras")
    again = keras.models.load_model(f"{folder}/model.keras")
show("saved", model.predict(given, verbose=0), again.predict(given, verbose=0))


class Stepping(keras.Model):
    """A training step in PyTorch."""

    def __init__(self):
        super().__init__()
        self.inner = L.Dense(3)

    def call(self, x, training=False):
        return self.inner(x)

    def train_step(self, data):
        x, y = data
        self.zero_grad()
        loss = self.compute_loss(y=y, y_pred=self(x, training=True))
        loss.backward()
        weights = list(self.trainable_weights)
        with torch.no_grad():
            self.optimizer.apply([weight.value.grad for weight in weights], weights)
        return {"loss": loss}


stepping = Stepping()
stepping(numbers(2, 4))
weighted(stepping).compile("sgd", "mse")
show("step", stepping.fit(numbers(8, 4), numbers(8, 3), verbose=0, shuffle=False, epochs=2).history["loss"])
print(len(list(stepping.parameters())), isinstance(stepping, torch.nn.Module))
for name in "rmsprop adagrad adadelta adamax nadam ftrl lion muon".split():
    dense = weighted(keras.Sequential([keras.Input((4,)), L.Dense(3)]))
    dense.compile(name, "mse")
    show(name, dense.fit(numbers(8, 4), numbers(8, 3), verbose=0, shuffle=False, epochs=2).history["loss"])
for name in "gelu selu hard_sigmoid mish celu glu squareplus sparsemax tanh_shrink".split():
    show(name, keras.activations.get(name)(torch.tensor(numbers(3, 4))))
chances = [torch.softmax(torch.tensor(numbers(3, 4, seed=seed)), 1) for seed in (0, 1)]
for name in "Huber CategoricalFocalCrossentropy KLDivergence LogCosh Dice".split():
    show(name, getattr(keras.losses, name)()(*chances))
z, o = torch.tensor(numbers(3, 4)), keras.ops
show("reductions", o.softmax(z), o.logsumexp(z, 1), o.median(z), o.quantile(z, 0.3), o.top_k(z, 2)[0])
show("products", o.einsum("ij,kj->ik", z, z), o.cross(z[:, :3], z[:, 1:]), o.fft((z, z * 0))[0], o.erf(z))
show("parts", o.segment_sum(z, torch.tensor([0, 0, 1]), 2), o.scatter(np.array([[0], [2]]), z[:2], (4, 4)))
scanned = o.scan(lambda c, x: (c + x, c * x), z[0], z)
show("loops", o.while_loop(lambda i: i < 3, lambda i: (i + 1,), (0,))[0], scanned[1])
LAYERS = [
    (L.Conv1D(3, 3, dilation_rate=2), 2, 8, 2), (L.Conv3D(2, 2), 1, 4, 4, 4, 2), (L.UpSampling2D(2), 2, 6, 6, 4),
    (L.Conv2DTranspose(3, 3, strides=2), 2, 6, 6, 4), (L.SeparableConv2D(3, 3), 2, 6, 6, 4),
    (L.GroupNormalization(2), 2, 6, 6, 4), (L.UnitNormalization(), 2, 4), (L.SpectralNormalization(L.Dense(3)), 2, 4),
    (L.ConvLSTM2D(2, 3), 1, 2, 5, 5, 2), (L.AveragePooling2D(2, padding="same"), 2, 5, 5, 4),
    (L.EinsumDense("abc,cd->abd", output_shape=(None, 4)), 2, 3, 4), (L.Resizing(5, 5), 2, 6, 6, 4),
    (L.CenterCrop(3, 3), 2, 6, 6, 4), (L.Permute((2, 1)), 2, 3, 4), (L.RepeatVector(2), 2, 3),
]  # fmt: skip
for layer, *shape in LAYERS:
    layer.build(tuple(shape))
    show(type(layer).__name__, weighted(layer)(numbers(*shape)))
