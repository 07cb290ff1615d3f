// Times the wheel for WebAssembly in Pyodide under Node, which `make test-wasm` has fetched:
//
//     node benchmarks/pyodide.mjs build/wasm dist/norch_dl-*wasm32.whl
//
// With build/wasm/numpy, the folder of `make test-wasm-numpy`, it times NumPy on the same data, in turns.
// CPU time of the thread that runs Python, the least of several rounds.
import { readFileSync } from "node:fs";
import { load } from "../tests/wasm/load.mjs";

const [folder, wheel] = process.argv.slice(2);
const now = () => {
    process.cpuUsage(); // or the count below is that of the last tick
    return Number(readFileSync("/proc/thread-self/schedstat", "utf8").split(" ")[0]) / 1e9;
};

// The network, the batches and the number of steps of examples/digits.py, on made-up scans.
const SETUP = `
import norch
from norch import nn, optim
small, few, a, b = norch.ones(10), norch.ones(10_000), norch.rand(512, 512), norch.rand(512, 512)
x, y = norch.rand(1_000_000), norch.rand(1_000_000)
scans, labels = norch.rand(1437, 64), norch.randint(0, 10, (1437,))
model = nn.Sequential(
    nn.Linear(64, 512), nn.ReLU(), nn.Dropout(0.2), nn.Linear(512, 256), nn.ReLU(), nn.Dropout(0.2), nn.Linear(256, 10)
)
optimizer, criterion = optim.AdamW(model.parameters(), lr=2e-3), nn.CrossEntropyLoss(label_smoothing=0.05)
@norch.capture
def step(images, digits):
    loss = criterion(model(images), digits)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss
def train(epochs=30):
    for _ in range(epochs):
        order = norch.randperm(1437)
        for at in range(0, 1437, 32):
            step(scans[order[at : at + 32]], labels[order[at : at + 32]]).item()
`;
const NUMPY = `
import numpy as np
small_np, few_np, a_np, b_np, x_np, y_np = (t.numpy().copy() for t in (small, few, a, b, x, y))
def softmax_np(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)
`;
const CASES = [ // what, a statement, calls of it in a round, rounds; NumPy's statement
    ["a + b, 10 elements", "small + small", 20_000, 5, "small_np + small_np"],
    ["a + b, 1e4 elements", "few + few", 2_000, 5, "few_np + few_np"],
    ["a + b, 1e6 elements", "x + y", 20, 5, "x_np + y_np"],
    ["a * b + a, 1e6 elements", "x * y + x", 20, 5, "x_np * y_np + x_np"],
    ["a / b, 1e6 elements", "x / y", 20, 5, "x_np / y_np"],
    ["a > b, 1e6 elements", "x > y", 20, 5, "x_np > y_np"],
    ["maximum, 1e6 elements", "norch.maximum(x, y)", 20, 5, "np.maximum(x_np, y_np)"],
    ["sqrt, 1e6 elements", "x.sqrt()", 20, 5, "np.sqrt(x_np)"],
    ["exp, 1e6 elements", "x.exp()", 20, 5, "np.exp(x_np)"],
    ["sin, 1e6 elements", "x.sin()", 20, 5, "np.sin(x_np)"],
    ["tanh, 1e6 elements", "x.tanh()", 20, 5, "np.tanh(x_np)"],
    ["sum, 1e6 elements", "x.sum()", 20, 5, "x_np.sum()"],
    ["softmax of 1e6 elements, rows of 1000", "x.view(1000, 1000).softmax(1)", 10, 5, "softmax_np(x_np.reshape(1000, 1000))"],
    ["product of 64 x 64 matrices", "a[:64, :64] @ b[:64, :64]", 200, 5, "a_np[:64, :64] @ b_np[:64, :64]"],
    ["product of 512 x 512 matrices", "a @ b", 10, 5, "a_np @ b_np"],
    ["digits: 1,350 steps of an MLP 64-512-256-10, batches of 32, captured", "train()", 1, 1],
];

const time = (statement, calls) => {
    python.runPython(`def run():\n    for _ in range(${calls}):\n        ${statement}`);
    const start = now();
    python.runPython("run()");
    return (now() - start) / calls;
};
const shown = (seconds) => (seconds < 1e-3 ? `${(seconds * 1e6).toFixed(2)} us` : `${(seconds * 1e3).toFixed(2)} ms`);
const show = (what, ...columns) => console.log(what.padEnd(68), ...columns.map((column) => column.padStart(11)));

let least = Infinity, python, numpy;
for (let round = 0; round < 3; round++) {
    ({ python, numpy } = await load(folder, wheel));
    const start = now();
    python.runPython("import sys; sys.path.insert(0, '/installed'); import norch");
    least = Math.min(least, now() - start);
}
python.runPython(SETUP);
if (numpy) python.runPython(NUMPY);
console.log(`Pyodide ${python.version}, Python ${python.runPython("sys.version.split()[0]")}${numpy ? `, beside ${numpy}` : ""}`);
show("import norch", shown(least));
for (const [what, statement, calls, rounds, other] of CASES) {
    let own = Infinity, theirs = Infinity;
    for (let round = 0; round < rounds; round++) {
        own = Math.min(own, time(statement, calls));
        if (numpy && other) theirs = Math.min(theirs, time(other, calls));
    }
    show(what, shown(own), ...(theirs < Infinity ? [shown(theirs), `${(theirs / own).toFixed(2)} times`] : []));
}
