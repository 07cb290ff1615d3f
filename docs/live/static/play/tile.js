// <norch-tile>: c = a @ b, an access at a time, with a small cache: which order of the loops loads the fewest cache lines?
"use strict";
play.define("tile", (root) => {
  const N = 12, LINE = 4, SIDE = 4; // n x n matrices, numbers of a cache line, side of a tile
  const range = (count, step = 1) => Array.from({ length: count / step }, (_, at) => at * step);
  const ORDERS = {
    "i, j, k (the definition)": function* () {
      for (const i of range(N)) for (const j of range(N)) for (const k of range(N)) yield [i, j, k];
    },
    "i, k, j (reordered)": function* () {
      for (const i of range(N)) for (const k of range(N)) for (const j of range(N)) yield [i, j, k];
    },
    "tiles of 4 x 4": function* () {
      for (const I of range(N, SIDE)) for (const J of range(N, SIDE)) for (const k of range(N)) {
        for (const i of range(SIDE)) for (const j of range(SIDE)) yield [I + i, J + j, k];
      }
    },
  };
  const names = Object.keys(ORDERS), MATRICES = { a: ([i, , k]) => [i, k], b: ([, j, k]) => [k, j], c: ([i, j]) => [i, j] };
  let order = names[0], lines = 12, steps, cache, loaded, done, timer = null, now;

  // Reads what a step needs through a cache of `lines` lines; the line that was used the longest ago makes room.
  function access(step) {
    for (const [matrix, at] of Object.entries(MATRICES)) {
      const [row, column] = at(step), line = `${matrix}${row},${Math.floor(column / LINE)}`;
      if (!cache.delete(line)) loaded[matrix]++;
      cache.add(line);
      if (cache.size > lines) cache.delete(cache.values().next().value);
    }
  }

  function start() {
    stop();
    steps = ORDERS[order]();
    cache = new Set();
    loaded = { a: 0, b: 0, c: 0 };
    done = 0;
    now = null;
    draw();
  }

  function advance(count) {
    for (let at = 0; at < count; at++) {
      const { value, done: end } = steps.next();
      if (end) return stop();
      access(now = value);
      done++;
    }
  }

  function stop() {
    clearInterval(timer);
    timer = null;
    run.textContent = "Run";
  }

  function toggle() {
    if (timer) return stop();
    if (done === N ** 3) start();
    run.textContent = "Pause";
    timer = setInterval(() => { advance(4); draw(); }, 60);
  }

  const columns = root.clientWidth < 500 ? 2 : 3; // a phone has c below a
  const svg = play.svg("svg", { viewBox: columns === 2 ? "0 0 428 440" : "0 0 640 220", role: "img", "aria-label": "the matrices a, b and c, and the cache lines that are loaded" });
  const run = play.button("Run", toggle), said = play.say(), table = play.make("table");
  root.append(
    play.choice(names, order, (name) => { order = name; start(); }),
    play.row(play.slider("cache lines", 4, 40, lines, (value) => { lines = value; start(); })), svg,
    play.row(play.button("Step", () => { advance(1); draw(); }), run, play.button("To the end", () => { advance(N ** 3); stop(); draw(); }), play.button("From the start", start)),
    said, table);

  function draw() {
    const size = 15.5, parts = [];
    Object.entries(MATRICES).forEach(([matrix, at], place) => {
      const left = 10 + (place % columns) * 212, top = Math.floor(place / columns) * 220, used = now && at(now);
      parts.push(play.svg("text", { x: left, y: top + 16, "font-size": 15 }, `${matrix}: ${loaded[matrix]} lines loaded`));
      for (const i of range(N)) for (const j of range(N)) {
        const held = cache.has(`${matrix}${i},${Math.floor(j / LINE)}`), current = used && used[0] === i && used[1] === j;
        parts.push(play.svg("rect", {
          x: left + j * size + Math.floor(j / LINE) * 3, y: top + 26 + i * size, width: size - 1.5, height: size - 1.5, rx: 2,
          fill: current ? "var(--color-foreground-primary)" : held ? `var(--${matrix})` : "var(--color-background-border)",
        }));
      }
    });
    svg.replaceChildren(...parts);
    const total = loaded.a + loaded.b + loaded.c;
    said.textContent = `${done} of ${N ** 3} multiply-adds, ${total} cache lines loaded` + (done ? `: ${(total / done).toFixed(2)} for each` : "") +
      "\ncoloured: in the cache now; a line is 4 numbers of a row";
    if (done === N ** 3) results[`${order}, ${lines} lines`] = total;
    table.replaceChildren(...Object.entries(results).map(([name, count]) =>
      play.make("tr", {}, play.make("td", { textContent: name }), play.make("td", { textContent: `${count} loads` }))));
  }
  const results = {};
  start();
});
