// The editor of cells and exercises, by CodeMirror; esbuild makes one file of it (build.py). What a statement gives is shown
// below its last line.
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { EditorState, StateEffect, StateField } from "@codemirror/state";
import { Decoration, EditorView, keymap, WidgetType } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";

class Output extends WidgetType {
  constructor(parts) {
    super();
    this.parts = parts;
  }
  eq(other) {
    return JSON.stringify(this.parts) === JSON.stringify(other.parts);
  }
  toDOM() {
    const box = document.createElement("div");
    box.className = "live-output";
    for (const { text, error } of this.parts) {
      const part = box.appendChild(document.createElement("span"));
      part.textContent = text;
      part.classList.toggle("live-error", error);
    }
    return box;
  }
}

const add = StateEffect.define(), clear = StateEffect.define();
// [{at: a position in the text, parts: [{text, error}]}], in the order of positions
const outputs = StateField.define({
  create: () => [],
  update(found, change) {
    if (change.docChanged) found = found.map((output) => ({ ...output, at: change.changes.mapPos(output.at, 1) }));
    for (const effect of change.effects) {
      if (effect.is(clear)) found = [];
      if (!effect.is(add)) continue;
      const { at, ...part } = effect.value, old = found.find((output) => output.at === at);
      const parts = [...(old?.parts ?? [])], last = parts.at(-1);
      if (last?.error === part.error) parts[parts.length - 1] = { ...last, text: last.text + part.text };
      else parts.push(part);
      found = [...found.filter((output) => output !== old), { at, parts }].sort((a, b) => a.at - b.at);
    }
    return found;
  },
  provide: (field) => EditorView.decorations.from(field, (found) => Decoration.set(found.map(({ at, parts }) =>
    Decoration.widget({ widget: new Output(parts), block: true, side: 1 }).range(at)), true)),
});

// An editor in `parent`. `run` is called by Shift-Enter and Ctrl-Enter, `changed` when the text was edited; long lines are wrapped
// with `wrap`, and scroll without.
export function edit(parent, text, { label, run, changed, wrap }) {
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        keymap.of([{ key: "Shift-Enter", run }, { key: "Mod-Enter", run }, indentWithTab, ...defaultKeymap, ...historyKeymap]),
        history(), python(), indentUnit.of("    "), indentOnInput(), bracketMatching(), wrap ? EditorView.lineWrapping : [], syntaxHighlighting(classHighlighter),
        EditorView.contentAttributes.of({ "aria-label": label }), outputs,
        EditorView.updateListener.of((update) => update.docChanged && changed()),
      ],
    }),
  });
  return {
    get text() { return view.state.doc.toString(); },
    set text(other) { view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: other }, effects: clear.of(null) }); },
    clear() { view.dispatch({ effects: clear.of(null) }); },
    show(line, part) {
      const { doc } = view.state;
      view.dispatch({ effects: add.of({ at: doc.line(Math.min(line, doc.lines)).to, ...part }) });
    },
    focus() { view.focus(); },
  };
}
