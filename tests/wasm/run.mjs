// Runs the test suite on the wheel for WebAssembly, in Pyodide under Node:
//
//     node tests/wasm/run.mjs FOLDER WHEEL [arguments of pytest]
//
// FOLDER, which Python sees as /folder, holds the npm package pyodide (node_modules) and the packages of the tests (site-packages),
// and may hold what tests/wasm/record.py wrote (cases.norch). The status is pytest's.
import { existsSync, readFileSync } from "node:fs";
import { load } from "./load.mjs";

const [folder, wheel, ...given] = process.argv.slice(2);
const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith("NORCH_TEST_")));
if (existsSync(`${folder}/cases.norch`)) environment.NORCH_TEST_RECORDED ??= "/folder/cases.norch";
const { python } = await load(folder, wheel, { env: { HOME: "/tmp", NORCH_TEST_TORCH: "0", ...environment } });
// Not the checkout itself, whose package would be found before the wheel's.
const parts = ["tests", "examples", "benchmarks", "release"].map((part) => [`/checkout/${part}`, `${process.cwd()}/${part}`]);
for (const [at, root] of [...parts, ["/folder", folder]]) {
    python.FS.mkdirTree(at);
    python.FS.mount(python.FS.filesystems.NODEFS, { root }, at);
}
python.FS.writeFile("/checkout/pyproject.toml", readFileSync("pyproject.toml")); // pytest's options
python.globals.set("given", python.toPy(given));
let status = 1;
try {
    status = python.runPython(`
import os, sys
sys.path += ["/installed", "/folder/site-packages", "tests/wasm"]
sys.dont_write_bytecode = True
os.chdir("/checkout")
import pytest
int(pytest.main(["-p", "no:cacheprovider", "-p", "no:faulthandler", "-p", "plugin", "--rootdir=/checkout", *given]))
`);
} catch (error) { // Node would print the line that threw it: all of Pyodide
    console.error(error.message);
}
process.exitCode = status;
