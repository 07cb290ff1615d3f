// Python and norch, in a worker of a page: Pyodide, from the files beside this one.
import { loadPyodide } from "./pyodide/pyodide.mjs";

const here = new URL(".", import.meta.url);
const tell = (event, detail) => postMessage({ event, detail });

// Counts the bytes of all that is fetched while Python starts.
function counting() {
  const fetched = self.fetch;
  const sizes = fetched(new URL("sizes.json", here)).then((answer) => answer.json());
  let done = 0;
  self.fetch = async (...request) => {
    const answer = await fetched(...request);
    const counter = new TransformStream({
      async transform(chunk, out) {
        done += chunk.length;
        tell("loading", { done, total: (await sizes).total });
        out.enqueue(chunk);
      },
    });
    return new Response(answer.body.pipeThrough(counter), answer);
  };
  return () => { self.fetch = fetched; };
}

async function start() {
  const end = counting();
  const archive = fetch(new URL("norch.zip", here)).then((answer) => answer.arrayBuffer());
  const python = await loadPyodide({ indexURL: new URL("pyodide/", here).href });
  python.unpackArchive(await archive, "zip", { extractDir: "/live" });
  end();
  let id = 0;
  const show = (line, text, error) => postMessage({ id, line, text, error });
  const session = python.runPython(`
    import sys
    sys.path.insert(0, "/live")
    import session
    session.prepare()
    session.Session
  `)(show);
  return async (request) => {
    id = request.id;
    if (request.method === "call") {
      const [name, ...args] = request.args, given = args.map((arg) => python.toPy(arg)), called = session.names.get(name);
      if (!called) throw new Error(`${name}() is not there yet: run the cell that defines it`);
      const result = called(...given);
      return result?.toJs ? result.toJs() : result;
    }
    return session[request.method](...request.args);
  };
}

const started = start();
let last = Promise.resolve(); // one request after another
onmessage = ({ data }) => {
  last = last.then(async () => {
    try {
      postMessage({ id: data.id, result: await (await started)(data) });
    } catch (error) { // of a function that the page calls; session.py shows what cells and exercises raise, so Python is broken
      postMessage({ id: data.id, error: error.message, broken: data.method !== "call" });
    }
  });
};
