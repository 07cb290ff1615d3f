// Makes the code of a page live: cells that run, exercises that are checked. Without JavaScript, and until the first click,
// they are what Sphinx made of them. sphinx_live.py marks them: div.live is a cell, div.exercise an exercise.
import { ask, events, stop } from "./python.js";

const editor = () => import("./editor.js"); // 0.4 MB, at the first click

function make(parent, tag, className, text = "") {
  const made = parent.appendChild(document.createElement(tag));
  made.className = className;
  made.textContent = text;
  return made;
}

function button(parent, text, title, click) {
  const made = make(parent, "button", "live-button", text);
  made.type = "button";
  made.title = title;
  made.onclick = click;
  return made;
}

// What Sphinx shows of a cell: its statements, without the prompts and what comes out.
function sourceOf(block) {
  const text = block.querySelector("pre").textContent.trimEnd();
  const prompt = text.startsWith(">>>");
  const lines = text.split("\n").filter((line) => !prompt || /^(>>>|\.\.\.)( |$)/.test(line));
  return { prompt, source: lines.map((line) => (prompt ? line.slice(4) : line)).join("\n") };
}

// A piece of code that turns into an editor at the first click.
class Code {
  constructor(block, source, label) {
    this.block = block;
    this.source = source;
    this.label = label;
    this.waiting = [];
    this.bar = document.createElement("div");
    this.bar.className = "live-bar";
    block.after(this.bar);
    block.querySelector("pre").addEventListener("dblclick", () => this.open());
  }
  async open(text = this.source) {
    const { edit } = await editor();
    if (this.view) return;
    const box = document.createElement("div");
    box.className = "live-editor";
    this.block.after(box);
    this.view = edit(box, text, { label: this.label, run: () => (this.run(), true), changed: () => this.changed(), wrap: this.wrap });
    this.block.hidden = true;
  }
  get text() { return this.view ? this.view.text : this.source; }
  changed() {}
  // Shows what came out of a line, once a frame: a program may print thousands of times.
  show(part) {
    const last = this.waiting.at(-1);
    if (last?.line === part.line && last.error === part.error) last.text += part.text;
    else if (this.waiting.push({ ...part }) === 1) requestAnimationFrame(() => this.flush());
  }
  flush() {
    for (const { line, ...part } of this.waiting.splice(0)) this.view?.show(line, part);
  }
  close() {
    this.bar.previousElementSibling.remove();
    this.view = null;
    this.block.hidden = false;
  }
  say(text, state = "") {
    this.note.textContent = text;
    this.note.dataset.state = state;
  }
}

const cells = [];

class Cell extends Code {
  constructor(block, at) {
    const { prompt, source } = sourceOf(block);
    super(block, source, `cell ${at}`);
    block.live = this; // for tests
    this.prompt = prompt;
    this.name = `cell ${at}`;
    this.ran = false;
    this.button = button(this.bar, "Run", "Run this cell, and those above it that have not run (Shift-Enter)", () => this.run());
    this.reset = button(this.bar, "Reset", "The code as it was printed", () => this.restore());
    this.reset.hidden = true;
    this.note = make(this.bar, "span", "live-note");
    this.note.setAttribute("role", "status");
  }
  changed() {
    this.ran = false;
    this.say("edited");
  }
  restore() {
    if (this.view) this.close();
    this.ran = false;
    this.reset.hidden = true;
    this.say("");
  }
  async run() {
    for (const cell of cells.slice(0, cells.indexOf(this))) {
      if (!cell.ran && !(await cell.once())) return this.say("a cell above this one failed", "bad");
    }
    await this.once();
  }
  show(part) {
    this.shown.push(part);
    super.show(part);
  }
  // Whether it ran, to its end but for exceptions at a prompt.
  async once() {
    await this.open();
    this.block.closest("details")?.setAttribute("open", "");
    this.reset.hidden = false;
    this.view.clear();
    this.shown = [];
    this.say("running", "busy");
    const begin = performance.now();
    try {
      const well = await ask("run", [this.name, this.text, this.prompt], ({ line, text, error }) => this.show({ line, text, error }));
      this.flush();
      this.ran = well || this.prompt;
      const seconds = (performance.now() - begin) / 1000;
      this.say(well ? (seconds < 0.1 ? "done" : `${seconds.toFixed(1)} s`) : "raised", well ? "good" : "bad");
    } catch (error) {
      this.flush();
      this.ran = false;
      this.say(error.message, "bad");
    }
    return this.ran;
  }
}

class Exercise extends Code {
  constructor(box) {
    const { name, check, solved } = JSON.parse(box.querySelector("script").textContent);
    const block = box.querySelector("div.exercise-code");
    super(block, block.querySelector("pre").textContent.trimEnd(), `exercise ${name}`);
    Object.assign(this, { wrap: true, name, check, solved, kept: `norch exercise ${name}` });
    button(this.bar, "Check", "Run the check on what you wrote (Shift-Enter)", () => this.run());
    button(this.bar, "Edit", "Edit it here", () => this.open(this.stored ?? this.source));
    button(this.bar, "Reset", "The exercise as it was printed", () => this.restore());
    this.note = make(this.bar, "span", "live-note");
    this.note.setAttribute("role", "status");
    const solution = box.querySelector("details.solution");
    if (solution) button(solution, "Put it into the exercise", "Replaces what you wrote", () => this.fill());
    if (this.stored) this.say("your text of last time is kept: Edit shows it");
  }
  get stored() {
    try { return localStorage.getItem(this.kept); } catch { return null; }
  }
  changed() {
    this.say("edited");
    try { localStorage.setItem(this.kept, this.text); } catch { /* a page without storage keeps nothing */ }
  }
  restore() {
    if (this.view) this.close();
    try { localStorage.removeItem(this.kept); } catch { /* as above */ }
    this.say("");
  }
  async fill() {
    await this.open();
    this.view.text = this.solved;
  }
  async run() {
    await this.open(this.stored ?? this.source);
    this.view.clear();
    this.say("checking", "busy");
    try {
      const well = await ask("check", [this.name, this.text, this.check], ({ line, text, error }) => {
        if (!(text.trim() === "solved" || text === "\n")) this.show({ line, text, error });
      });
      this.flush();
      this.say(well ? "solved" : "not yet", well ? "good" : "bad");
    } catch (error) {
      this.flush();
      this.say(error.message, "bad");
    }
  }
}

// What Python does, at the lower edge of the window: from the first click on.
function status() {
  const box = make(document.body, "div", "live-status"), text = make(box, "span", ""), bar = make(box, "progress", "");
  const all = button(box, "Run all", "Run the cells of this page from its top", () => cells.at(-1)?.run());
  const end = button(box, "Stop", "End Python: all names are lost", () => stop());
  all.hidden = cells.length < 2;
  box.hidden = bar.hidden = true;
  events.addEventListener("busy", () => { box.hidden = false; box.dataset.state = "busy"; if (bar.hidden) text.textContent = "Python is running"; end.textContent = "Stop"; });
  events.addEventListener("loading", ({ detail: { done, total } }) => {
    bar.hidden = done >= total;
    bar.max = total;
    bar.value = done;
    text.textContent = done < total ? `Loading Python: ${(done / 1e6).toFixed(1)} of ${(total / 1e6).toFixed(1)} MB` : "Python starts";
  });
  events.addEventListener("ready", () => { box.dataset.state = "ready"; bar.hidden = true; text.textContent = "Python is ready"; end.textContent = "Restart"; });
  events.addEventListener("stopped", ({ detail }) => {
    box.dataset.state = "stopped";
    bar.hidden = true;
    text.textContent = detail === "stopped" ? "Python has ended; Run starts it again" : detail;
    for (const cell of cells) cell.ran = false;
  });
}

for (const block of document.querySelectorAll("div.live")) cells.push(new Cell(block, cells.length + 1));
for (const box of document.querySelectorAll("div.exercise")) new Exercise(box);
status();
