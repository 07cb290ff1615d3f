// <norch-strides>: twelve numbers in a row, and how shape, strides and offset read them.
"use strict";
play.define("strides", (root) => {
  const COUNT = 12, color = (at) => `hsl(${265 - at * 18} 55% ${34 + at * 1.2}%)`;
  // rows, columns, stride of rows, stride of columns, offset
  const READINGS = {
    "x": [3, 4, 4, 1, 0], "x.T": [4, 3, 1, 4, 0], "x[:, ::2]": [3, 2, 4, 2, 0], "x[::-1]": [3, 4, -4, 1, 8],
    "x.diagonal()": [1, 3, 0, 5, 0], "x[0].expand(3, 4)": [3, 4, 0, 1, 0], "windows of 3": [4, 3, 1, 1, 0],
  };
  const PARTS = [["rows", 1, 6], ["columns", 1, 6], ["stride of rows", -8, 8], ["stride of columns", -8, 8], ["offset", 0, 11]];
  const PUZZLES = [
    ["read every second row, all columns: [[0, 1, 2, 3], [8, 9, 10, 11]]", [[0, 1, 2, 3], [8, 9, 10, 11]]],
    ["read the matrix upside down and mirrored: 11 first", [[11, 10, 9, 8], [7, 6, 5, 4], [3, 2, 1, 0]]],
    ["read the columns 3, 2, 1 of the first row, twice: [[3, 2, 1], [3, 2, 1]]", [[3, 2, 1], [3, 2, 1]]],
  ];
  let at = [...READINGS.x], solved = 0;
  const readings = play.choice(Object.keys(READINGS), "x", (name) => { at = [...READINGS[name]]; draw(); });
  const sliders = PARTS.map(([name, low, high], part) => play.slider(name, low, high, at[part], (value) => { at[part] = value; draw(); }));
  const storage = play.make("div", { className: "cells" }), view = play.make("div", { className: "cells" });
  storage.style.gridTemplateColumns = `repeat(${COUNT}, minmax(0, 1fr))`;
  const formula = play.say(), code = play.say(), puzzle = play.make("p", { className: "note" });
  root.append(readings, play.row(...sliders), "The storage", storage, "The tensor", view, formula, code, puzzle);

  function draw() {
    const [rows, columns, down, right, offset] = at, position = (i, j) => offset + i * down + j * right;
    const inside = (place) => place >= 0 && place < COUNT;
    const all = Array.from({ length: rows }, (_, i) => Array.from({ length: columns }, (_, j) => position(i, j)));
    const reads = Array(COUNT).fill(0), outside = all.flat().some((place) => !inside(place));
    for (const place of all.flat()) if (inside(place)) reads[place]++;
    sliders.forEach((slider, part) => slider.set(at[part]));
    readings.set(Object.keys(READINGS).find((name) => String(READINGS[name]) === String(at)));

    storage.replaceChildren(...reads.map((count, place) => {
      const cell = play.make("div", { className: count ? "cell" : "cell unread", textContent: place });
      cell.style.background = color(place);
      if (count > 1) cell.append(play.make("sup", { textContent: `×${count}` }));
      return cell;
    }));
    view.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 3rem))`;
    view.replaceChildren(...all.flatMap((line, i) => line.map((place, j) => {
      const cell = play.make("button", { type: "button", className: "cell", textContent: inside(place) ? place : "✕" });
      cell.style.background = inside(place) ? color(place) : "var(--warn)";
      cell.onmouseenter = cell.onfocus = cell.onclick = () => {
        formula.textContent = `element (${i}, ${j}) is at ${offset} + ${i}·(${down}) + ${j}·(${right}) = ${place}` +
          (inside(place) ? "" : ", outside of the storage: as_strided refuses this");
        root.querySelectorAll(".on").forEach((other) => other.classList.remove("on"));
        cell.classList.add("on");
        if (inside(place)) storage.children[place].classList.add("on");
      };
      return cell;
    })));
    formula.textContent = "Point at an element of the tensor.";
    const remark = outside ? "raises" : down < 0 || right < 0 ? "norch and NumPy; PyTorch has no negative strides"
      : reads.some((count) => count > 1) ? "some numbers are read more than once" : right === 1 && down === columns ? "contiguous" : "";
    code.textContent = `x.as_strided((${rows}, ${columns}), (${down}, ${right}), ${offset})` + (remark && `  # ${remark}`);
    code.classList.toggle("warn", outside);
    if (solved < PUZZLES.length && JSON.stringify(all) === JSON.stringify(PUZZLES[solved][1])) solved++;
    puzzle.textContent = solved < PUZZLES.length ? `Puzzle ${solved + 1} of ${PUZZLES.length}: ${PUZZLES[solved][0]}.` : "All three puzzles are solved.";
  }
  draw();
});
