// <norch-warp>: the 32 threads of a warp read at once; which sectors of memory, of 8 numbers each, must be fetched?
"use strict";
play.define("warp", (root) => {
  const THREADS = 32, SECTOR = 8, NUMBERS = 256;
  const PATTERNS = {
    "neighbours": [1, 0, false], "offset by one": [1, 1, false], "every second": [2, 0, false], "a column of 8": [8, 0, false],
    "one for all": [0, 0, false], "backward": [1, 0, true],
  };
  let stride = 1, offset = 0, backward = false, mark = null;
  const patterns = play.choice(Object.keys(PATTERNS), "neighbours", (name) => { [stride, offset, backward] = PATTERNS[name]; draw(); });
  const strides = play.slider("stride between threads", 0, 8, stride, (value) => { stride = value; draw(); });
  const offsets = play.slider("offset", 0, 7, offset, (value) => { offset = value; draw(); });
  const columns = root.clientWidth < 500 ? 2 : 4; // sectors in a row
  const threads = play.make("div", { className: "cells" }), svg = play.svg("svg", { viewBox: `0 0 ${160 * columns} ${704 / columns}`, role: "img", "aria-label": "256 numbers of memory in sectors of 8" });
  threads.style.gridTemplateColumns = "repeat(16, minmax(0, 1fr))";
  const code = play.say(), said = play.say();
  root.append(patterns, play.row(strides, offsets), "The threads of the warp", threads, "Memory: each frame is a sector of 8 numbers, 32 bytes", svg, code, said);

  const place = (thread) => offset + stride * (backward ? THREADS - 1 - thread : thread);

  function draw() {
    strides.set(stride);
    offsets.set(offset);
    patterns.set(Object.keys(PATTERNS).find((name) => String(PATTERNS[name]) === String([stride, offset, backward])));
    const reads = Array.from({ length: THREADS }, (_, thread) => place(thread));
    const numbers = new Set(reads), sectors = new Set(reads.map((at) => Math.floor(at / SECTOR)));
    threads.replaceChildren(...reads.map((at, thread) => {
      const cell = play.make("button", { type: "button", className: mark === thread ? "cell on" : "cell", textContent: thread });
      cell.style.background = `hsl(${210 + thread * 4} 50% 42%)`;
      cell.onmouseenter = cell.onfocus = cell.onclick = () => { if (mark !== thread) { mark = thread; paint(reads, sectors); tell(); } };
      return cell;
    }));
    paint(reads, sectors);
    code.textContent = `x[${backward ? "31 - thread" : "thread"}${stride === 1 ? "" : ` * ${stride}`}${offset ? ` + ${offset}` : ""}]`;
    const used = numbers.size * 4, moved = sectors.size * 32;
    said.textContent = `${sectors.size} sectors, ${moved} bytes moved; ${used} of them are used: ${Math.round(100 * used / moved)} %.` +
      (sectors.size <= 4 ? " As few as possible." : sectors.size === THREADS ? " Each thread costs a sector of its own." : "");
  }

  function tell() {
    [...threads.children].forEach((cell, thread) => cell.classList.toggle("on", thread === mark));
    code.textContent = `thread ${mark} reads x[${place(mark)}], in sector ${Math.floor(place(mark) / SECTOR)}`;
  }

  function paint(reads, sectors) {
    const parts = [], numbers = new Set(reads);
    for (let sector = 0; sector < NUMBERS / SECTOR; sector++) {
      const x = (sector % columns) * 160 + 4, y = Math.floor(sector / columns) * 22 + 3, lit = sectors.has(sector);
      parts.push(play.svg("rect", { x, y, width: 152, height: 18, rx: 3, fill: lit ? "var(--wait)" : "none", "fill-opacity": 0.35,
        stroke: lit ? "var(--wait)" : "var(--color-foreground-muted)", "stroke-width": lit ? 2 : 0.7 }));
      for (let at = sector * SECTOR; at < (sector + 1) * SECTOR; at++) {
        const marked = mark !== null && place(mark) === at;
        parts.push(play.svg("rect", { x: x + 2 + (at % SECTOR) * 18.6, y: y + 3, width: 16, height: 12, rx: 2,
          fill: numbers.has(at) ? "var(--a)" : "var(--color-background-border)", stroke: marked ? "var(--color-foreground-primary)" : "none", "stroke-width": 2.5 }));
      }
    }
    svg.replaceChildren(...parts);
  }
  draw();
});
