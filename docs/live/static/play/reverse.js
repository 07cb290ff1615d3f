// <norch-reverse>: the walk back through y = w * x, loss = sin(y) + y, one node at a time, in the right order or a wrong one.
"use strict";
play.define("reverse", (root) => {
  const text = (number) => String(Number(number.toFixed(3)));
  const narrow = root.clientWidth < 500; // a phone has the graph upright
  const place = ([right, down]) => (narrow ? [down * 1.4, right * 0.85] : [right, down]);
  let w = 2, x = 3, nodes, walk, wrong = false;

  function start() {
    const y = w * x;
    // seq: the order in which the nodes were made. back(g): the gradients of the inputs, given that of the node.
    nodes = {
      w: { seq: 0, at: [80, 230], label: "w", value: w, inputs: [] },
      x: { seq: 1, at: [80, 70], label: "x", value: x, inputs: [] },
      y: { seq: 2, at: [240, 150], label: "y = w * x", value: y, inputs: ["w", "x"], back: (g) => [[g * x, "g · x"], [g * w, "g · w"]] },
      s: { seq: 3, at: [400, 60], label: "s = sin(y)", value: Math.sin(y), inputs: ["y"], back: (g) => [[g * Math.cos(y), "g · cos(y)"]] },
      loss: { seq: 4, at: [560, 180], label: "loss = s + y", value: Math.sin(y) + y, inputs: ["s", "y"], back: (g) => [[g, "g"], [g, "g"]] },
    };
    walk = { gradients: { loss: 1 }, waiting: ["loss"], done: [], now: null, used: [], said: "The gradient of the loss by itself is 1. Only the loss waits." };
    draw();
  }

  function next() {
    if (!walk.waiting.length) return;
    const sign = wrong ? 1 : -1;
    const [name] = [...walk.waiting].sort((p, q) => sign * (nodes[p].seq - nodes[q].seq)), node = nodes[name], g = walk.gradients[name];
    walk.waiting = walk.waiting.filter((other) => other !== name);
    const again = walk.done.includes(name);
    walk.done.push(name);
    walk.now = name;
    walk.used = [];
    walk.said = `${name}, number ${node.seq}, is the ${wrong ? "oldest" : "youngest"} node that waits. Its gradient is g = ${text(g)}.`;
    if (!node.back) walk.said += " It is a leaf: nothing is behind it.";
    if (again) walk.said += "\nIt is visited a second time: its first visit came before all parts of its gradient were there.";
    (node.back ? node.back(g) : []).forEach(([part, formula], at) => {
      const input = node.inputs[at], had = walk.gradients[input];
      walk.said += `\n  to ${input}: ${formula} = ${text(part)}` + (had === undefined ? "" : `, added to ${text(had)}`);
      walk.gradients[input] = (had ?? 0) + part;
      if (!walk.waiting.includes(input)) walk.waiting.push(input);
      walk.used.push(name + input);
    });
    if (!walk.waiting.length) end();
    draw();
  }

  function end() {
    const h = 1e-5, loss = (w) => Math.sin(w * x) + w * x, right = (loss(w + h) - loss(w - h)) / (2 * h), found = walk.gradients.w;
    walk.said += `\n\nDone: dloss/dw = ${text(found)}. Finite differences give ${text(right)}` +
      (Math.abs(found - right) < 1e-3 * (1 + Math.abs(right)) ? ": right." : ": wrong, since a part of y's gradient was passed on twice.");
  }

  const svg = play.svg("svg", { viewBox: narrow ? "0 0 420 530" : "0 0 640 300", role: "img", "aria-label": "the graph of loss = sin(w * x) + w * x" });
  const said = play.say(), heap = play.say();
  const box = play.make("input", { type: "checkbox", onchange: () => { wrong = box.checked; start(); } });
  root.append(
    play.row(play.slider("w", -3, 3, w, (value) => { w = value; start(); }), play.slider("x", -3, 3, x, (value) => { x = value; start(); })),
    svg, play.row(play.button("Next node", next), play.button("From the start", start),
      play.make("label", { className: "box" }, box, "take the oldest first (wrong)")), said, heap);

  function draw() {
    const lines = Object.entries(nodes).flatMap(([name, { inputs, at }]) => inputs.map((input) => {
      const [x1, y1] = place(at), [x2, y2] = place(nodes[input].at), used = walk.used.includes(name + input);
      const part = 1 - Math.min(77 / Math.abs(x2 - x1), 41 / Math.abs(y2 - y1)); // it ends at the edge of the box
      const [tipX, tipY] = [x1 + (x2 - x1) * part, y1 + (y2 - y1) * part];
      const stroke = used ? "var(--color-brand-primary)" : "var(--color-foreground-muted)";
      return play.svg("g", {}, play.svg("line", { x1, y1, x2: tipX, y2: tipY, stroke, "stroke-width": used ? 3 : 1.5 }),
        play.svg("circle", { cx: tipX, cy: tipY, r: used ? 5 : 3, fill: stroke }));
    }));
    const boxes = Object.entries(nodes).map(([name, { at, label, value, seq }]) => {
      const [cx, cy] = place(at);
      const stroke = name === walk.now ? "var(--color-brand-primary)" : walk.waiting.includes(name) ? "var(--wait)" : walk.done.includes(name) ? "var(--done)" : "var(--color-foreground-muted)";
      const line = (content, dy, fill) => play.svg("text", { x: cx, y: cy + dy, "text-anchor": "middle", "font-size": 15, ...(fill && { style: `fill:${fill}` }) }, content);
      return play.svg("g", {},
        play.svg("rect", { x: cx - 72, y: cy - 36, width: 144, height: 72, rx: 8, fill: "var(--color-background-secondary)", stroke, "stroke-width": 3 }),
        line(label, -15), line(`${text(value)} (no. ${seq})`, 5),
        line(name in walk.gradients ? `grad ${text(walk.gradients[name])}` : "", 26, "var(--color-brand-primary)"));
    });
    svg.replaceChildren(...lines, ...boxes);
    said.textContent = walk.said;
    const order = [...walk.waiting].sort((p, q) => nodes[q].seq - nodes[p].seq);
    heap.textContent = `waiting, youngest first: ${order.map((name) => `${name} (${nodes[name].seq})`).join(", ") || "nothing"}`;
  }
  start();
});
