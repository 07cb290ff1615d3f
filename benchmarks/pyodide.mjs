// Times the wheel for WebAssembly in Pyodide under Node, which `make test-wasm` has fetched:
//
//     node benchmarks/pyodide.mjs build/wasm dist/norch_dl-*wasm32.whl
//
// CPU time of the thread that runs Python, the least of several rounds.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, wheel] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(createRequire(pathToFileURL(folder + "/")).resolve("pyodide/pyodide.mjs")));
const now = () => Number(readFileSync("/proc/thread-self/schedstat", "utf8").split(" ")[0]) / 1e9;

// The network, the batches and the number of steps of examples/digits.py, on made-up scans.
const SETUP = `
import norch
from norch import nn, optim
small, a, b = norch.ones(10), norch.rand(512, 512), norch.rand(512, 512)
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
const CASES = [ // what, a statement, calls of it in a round, rounds
    ["a + b, 10 elements", "small + small", 20_000, 5],
    ["a + b, 1e6 elements", "x + y", 20, 5],
    ["exp, 1e6 elements", "x.exp()", 20, 5],
    ["product of 512 x 512 matrices", "a @ b", 10, 5],
    ["digits: 1,350 steps of an MLP 64-512-256-10, batches of 32, captured", "train()", 1, 1],
];

let least = Infinity, python;
for (let round = 0; round < 3; round++) {
    python = await loadPyodide();
    python.unpackArchive(new Uint8Array(readFileSync(wheel)), "wheel", { extractDir: "/installed" });
    const start = now();
    python.runPython("import sys; sys.path.insert(0, '/installed'); import norch");
    least = Math.min(least, now() - start);
}
console.log(`Pyodide ${python.version}, Python ${python.runPython("sys.version.split()[0]")}`);
const show = (what, seconds) => console.log(`${what.padEnd(68)} ${seconds < 1e-3 ? `${(seconds * 1e6).toFixed(2)} us` : `${(seconds * 1e3).toFixed(2)} ms`}`);
show("import norch", least);
python.runPython(SETUP);
for (const [what, statement, calls, rounds] of CASES) {
    const body = `def run():\n    for _ in range(${calls}):\n        ${statement}`;
    python.runPython(body);
    let best = Infinity;
    for (let round = 0; round < rounds; round++) {
        const start = now();
        python.runPython("run()");
        best = Math.min(best, now() - start);
    }
    show(what, best / calls);
}
