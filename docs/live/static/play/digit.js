// <norch-digit>: a digit drawn with the mouse, read by the network that the cell above it has trained. The cell's function
// read(pixels) gets 64 numbers of 0 to 16, and returns ten probabilities.
"use strict";
play.define("digit", (root) => {
  const script = document.querySelector('script[src*="play/digit.js"]').src;
  const SIZE = 224, GRID = 32;
  const canvas = play.make("canvas", { width: SIZE, height: SIZE }), pen = canvas.getContext("2d", { willReadFrequently: true });
  canvas.setAttribute("aria-label", "draw a digit here");
  const seen = play.make("div", { className: "cells" }), bars = play.make("div"), said = play.say();
  seen.style.cssText = "grid-template-columns:repeat(8,1.1rem);gap:1px";
  bars.style.cssText = "flex:1;min-width:11rem";
  root.append(play.row(canvas, seen, bars), play.row(play.button("Read it", read), play.button("Clear", clear)), said);

  function clear() {
    pen.fillStyle = "#fff";
    pen.fillRect(0, 0, SIZE, SIZE);
    show(Array(64).fill(0), null);
    said.textContent = "Draw a digit in the white square: large, in one stroke if you can.";
  }

  let last = null;
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return [(event.clientX - box.left) * SIZE / box.width, (event.clientY - box.top) * SIZE / box.height];
  };
  canvas.onpointerdown = (event) => { canvas.setPointerCapture(event.pointerId); last = at(event); stroke(event); };
  canvas.onpointermove = (event) => { if (last) stroke(event); };
  canvas.onpointerup = () => { last = null; read(); };
  function stroke(event) {
    const next = at(event);
    Object.assign(pen, { lineWidth: 20, lineCap: "round", strokeStyle: "#000" });
    pen.beginPath();
    pen.moveTo(...last);
    pen.lineTo(...next);
    pen.stroke();
    last = next;
  }

  // As the data were made (Alpaydin and Kaynak 1998): the digit's box is scaled to 32 x 32 points, and an element is the number of
  // black ones in 4 x 4 of them.
  function pixels() {
    const { data } = pen.getImageData(0, 0, SIZE, SIZE), dark = (x, y) => data[4 * (y * SIZE + x)] < 128;
    let [left, top, right, bottom] = [SIZE, SIZE, -1, -1];
    for (let y = 0; y < SIZE; y++) for (let x = 0; x < SIZE; x++) if (dark(x, y)) {
      [left, right, top, bottom] = [Math.min(left, x), Math.max(right, x), Math.min(top, y), Math.max(bottom, y)];
    }
    if (right < 0) return null;
    const side = Math.max(bottom - top, 1), wide = Math.max(right - left, side * 0.75), counts = Array(64).fill(0);
    for (let i = 0; i < GRID; i++) for (let j = 0; j < GRID; j++) {
      const y = Math.round(top + (i + 0.5) * side / GRID), x = Math.round((left + right) / 2 + ((j + 0.5) / GRID - 0.5) * wide);
      if (x >= 0 && x < SIZE && y >= 0 && y < SIZE && dark(x, y)) counts[(i >> 2) * 8 + (j >> 2)]++;
    }
    return counts;
  }

  async function read() {
    const found = pixels();
    if (!found) return clear();
    said.textContent = "The network reads ...";
    try {
      const { ask } = await import(new URL("../live/python.js", script).href);
      const odds = await ask("call", ["read", found]);
      show(found, odds);
      said.textContent = `It is a ${odds.indexOf(Math.max(...odds))}, says the network, with ${Math.round(100 * Math.max(...odds))} %.`;
    } catch (error) {
      show(found, null);
      said.textContent = error.message;
    }
  }

  function show(counts, odds) {
    seen.replaceChildren(...counts.map((count) => {
      const cell = play.make("div", { className: "cell" });
      cell.style.background = `rgb(0 0 0 / ${count / 16})`;
      cell.style.outline = "1px solid var(--color-background-border)";
      return cell;
    }));
    seen.style.background = "#fff";
    bars.replaceChildren(...Array.from({ length: 10 }, (_, digit) => {
      const bar = play.make("div", { textContent: `${digit}  ${odds ? (100 * odds[digit]).toFixed(1) + " %" : ""}` });
      bar.style.cssText = `background:linear-gradient(to right, color-mix(in srgb, var(--a) 45%, transparent) ${odds ? 100 * odds[digit] : 0}%, transparent 0);padding:0 .3rem;white-space:pre`;
      return bar;
    }));
  }
  clear();
});
