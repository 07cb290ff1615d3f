// <norch-blocks>: the memory of recorded calls over time. Each result has a life, from its call to its last use; results whose
// lives do not overlap can have the same block.
"use strict";
play.define("blocks", (root) => {
  // [the result, what is called, its inputs]; other names are inputs of the whole
  const PROGRAMS = {
    "gelu": [["a", "x·x", ["x"]], ["b", "x·a", ["x", "a"]], ["c", "0.045·b", ["b"]], ["d", "x+c", ["x", "c"]], ["e", "0.8·d", ["d"]],
      ["f", "0.5·x", ["x"]], ["g", "tanh(e)", ["e"]], ["h", "1+g", ["g"]], ["y", "f·h", ["f", "h"]]],
    "training step": [["a", "x@w1", ["x"]], ["h", "tanh(a)", ["a"]], ["b", "h@w2", ["h"]], ["k", "tanh(b)", ["b"]], ["p", "k@w3", ["k"]],
      ["r", "p-t", ["p"]], ["gk", "r@w3.T", ["r"]], ["dw3", "k.T@r", ["k", "r"]], ["gb", "gk·(1-k²)", ["gk", "k"]], ["gh", "gb@w2.T", ["gb"]],
      ["dw2", "h.T@gb", ["h", "gb"]], ["ga", "gh·(1-h²)", ["gh", "h"]], ["dw1", "x.T@ga", ["x", "ga"]]],
  };
  const RESULTS = ["y", "dw1", "dw2", "dw3"]; // are kept to the end
  root.programs = PROGRAMS; // for tests
  let name = "gelu", shared = true, now = 0;
  const choice = play.choice(Object.keys(PROGRAMS), name, (other) => { name = other; now = 0; draw(); });
  const sharing = play.choice(["a block for each", "blocks shared"], "blocks shared", (text) => { shared = text === "blocks shared"; draw(); });
  const svg = play.svg("svg", { role: "img", "aria-label": "blocks of memory over the calls of a recording" }), said = play.say();
  let slider;
  const calls = play.make("div");
  root.append(play.row(choice, sharing), calls, svg, play.row(play.button("Next call", () => { now = (now + 1) % PROGRAMS[name].length; draw(); })), said);

  // The same walk as share() of the chapter: an output takes the block that became free last, then inputs give theirs back.
  function place(program) {
    const last = {}, free = [], blocks = {};
    let count = 0;
    program.forEach(([, , inputs], at) => inputs.forEach((input) => { last[input] = at; }));
    program.forEach(([output, , inputs], at) => {
      blocks[output] = shared && free.length ? free.pop() : count++;
      for (const input of new Set(inputs)) if (input in blocks && last[input] === at && !RESULTS.includes(input)) free.push(blocks[input]);
    });
    const end = (output) => (RESULTS.includes(output) ? program.length - 1 : last[output]);
    return { blocks, count, end };
  }

  function draw() {
    const program = PROGRAMS[name], { blocks, count, end } = place(program);
    if (slider?.program !== name) {
      slider = play.slider("call", 1, program.length, now + 1, (value) => { now = value - 1; draw(); });
      slider.program = name;
      calls.replaceChildren(slider);
    }
    slider.set(now + 1);
    const whole = root.clientWidth < 500 ? 400 : 640, wide = (whole - 80) / program.length, high = 34, left = 70, size = whole < 640 ? 11 : 14, parts = [];
    svg.setAttribute("viewBox", `0 0 ${whole} ${count * high + 40}`);
    parts.push(play.svg("rect", { x: left + now * wide, y: 0, width: wide, height: count * high, fill: "var(--color-brand-primary)", "fill-opacity": 0.15 }));
    for (let block = 0; block < count; block++) {
      parts.push(play.svg("text", { x: 0, y: block * high + 22, "font-size": 14 }, `block ${block}`),
        play.svg("line", { x1: left, x2: whole - 10, y1: (block + 1) * high, y2: (block + 1) * high, stroke: "var(--color-background-border)" }));
    }
    program.forEach(([output], at) => {
      const x = left + at * wide, width = (end(output) - at + 1) * wide - 3, y = blocks[output] * high + 4, lives = at <= now && now <= end(output);
      parts.push(play.svg("rect", { x: x + 1, y, width, height: high - 8, rx: 5, fill: RESULTS.includes(output) ? "var(--c)" : "var(--a)", "fill-opacity": lives ? 0.85 : 0.3 }),
        play.svg("text", { x: x + 4, y: y + 18, "font-size": size }, output));
    });
    parts.push(play.svg("text", { x: left, y: count * high + 28, "font-size": 14 }, "calls, from the first to the last →"));
    svg.replaceChildren(...parts);
    const [output, formula, inputs] = program[now];
    const ending = [...new Set(inputs)].filter((input) => input in blocks && end(input) === now);
    said.textContent = `call ${now + 1} of ${program.length}: ${output} = ${formula}, into block ${blocks[output]}` +
      (ending.length ? `\n${ending.map((input) => `${input} ends, block ${blocks[input]} is free`).join("; ")}` : "") +
      `\n${program.length} results in ${count} blocks`;
  }
  draw();
});
