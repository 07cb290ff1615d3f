// Loads Pyodide from FOLDER/node_modules, and puts the wheel into /installed. The package pyodide holds no other packages;
// where its NumPy has been put beside it (make test-wasm-numpy), that is installed too.
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname } from "node:path";
import { pathToFileURL } from "node:url";

export async function load(folder, wheel, options = {}) {
    const found = createRequire(pathToFileURL(folder + "/")).resolve("pyodide/pyodide.mjs");
    const { loadPyodide } = await import(pathToFileURL(found));
    const python = await loadPyodide(options);
    const numpy = JSON.parse(readFileSync(`${dirname(found)}/pyodide-lock.json`, "utf8")).packages.numpy.file_name;
    const hasNumpy = existsSync(`${dirname(found)}/${numpy}`);
    if (hasNumpy) await python.loadPackage("numpy", { messageCallback: () => {} });
    python.unpackArchive(new Uint8Array(readFileSync(wheel)), "wheel", { extractDir: "/installed" });
    return { python, numpy: hasNumpy && numpy };
}
