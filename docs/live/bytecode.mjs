// Adds byte code to norch.zip, compiled by the page's own Pyodide, of the modules that a page reads which trains a network:
//
//     node docs/live/bytecode.mjs LIVE
//
// The sources stay, for tracebacks. Columns, which only carets below lines of norch would show, are a quarter of byte code.
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [live] = process.argv.slice(2), archive = `${live}/norch.zip`;
const { loadPyodide } = await import(pathToFileURL(`${live}/pyodide/pyodide.mjs`));
const python = await loadPyodide({ env: { HOME: "/tmp", PYTHONNODEBUGRANGES: "1" } });
const given = new Uint8Array(readFileSync(archive));
python.FS.writeFile("/norch.zip", given);
python.unpackArchive(given, "zip", { extractDir: "/live" }); // where the worker unpacks it
try {
  python.runPython(`
    import sys
    sys.path.insert(0, "/live")
    sys.dont_write_bytecode = True
    import py_compile, zipfile
    import session, compiler, norch
    from norch import nn, optim

    model = nn.Linear(2, 2)
    optimizer = optim.SGD(model.parameters(), 0.1)
    nn.functional.cross_entropy(model(norch.randn(1, 2)), norch.tensor([1])).backward()
    optimizer.step()
    repr(model.weight)
    found = {module.__file__ for module in sys.modules.values() if getattr(module, "__file__", None)}
    with zipfile.ZipFile("/norch.zip", "a") as out:
        for path in sorted(path for path in found if path.startswith("/live/")):
            made = py_compile.compile(path, doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
            entry = zipfile.ZipInfo(made.removeprefix("/live/"), (2026, 1, 1, 0, 0, 0))
            with open(made, "rb") as file:
                out.writestr(entry, file.read(), zipfile.ZIP_DEFLATED, 9)
  `);
} catch (error) { // Node would print the line that threw it: all of Pyodide
  console.error(error.message);
  process.exit(1);
}
writeFileSync(archive, python.FS.readFile("/norch.zip"));
