// Python for a page: one worker, started by the first request. `events` gets "loading" (detail: bytes of all bytes), "ready",
// "busy" and "stopped".
export const events = new EventTarget();
let worker = null, count = 0, waiting = new Map();

const tell = (name, detail) => events.dispatchEvent(new CustomEvent(name, { detail }));

function start() {
  worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
  worker.onmessage = ({ data }) => {
    if (data.event) return tell(data.event, data.detail);
    const request = waiting.get(data.id);
    if (!request) return;
    if (data.broken) return stop(`Python has ended (${data.error}); Run starts it again`);
    if ("text" in data) return request.show?.(data);
    waiting.delete(data.id);
    if (!waiting.size) tell("ready");
    data.error ? request.reject(new Error(data.error)) : request.resolve(data.result);
  };
  worker.onerror = (event) => stop(event.message || "the files of Python could not be loaded");
}

// {method: "run" or "check" of session.py, arguments} or {method: "call", arguments: [name, ...]}, a function of the cells.
export function ask(method, args, show) {
  if (!worker) start();
  tell("busy");
  const id = ++count;
  worker.postMessage({ id, method, args });
  return new Promise((resolve, reject) => waiting.set(id, { resolve, reject, show }));
}

// Ends Python, with all names and whatever runs.
export function stop(reason = "stopped") {
  worker?.terminate();
  worker = null;
  const left = [...waiting.values()];
  waiting.clear();
  for (const { reject } of left) reject(new Error(reason));
  tell("stopped", reason);
}
