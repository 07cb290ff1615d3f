// What the playgrounds share. A playground is an element <norch-NAME> of a page, which its file fills when the page is read.
"use strict";
const play = {
  // An element with properties, then children; play.svg makes one of a picture, with attributes.
  make(tag, properties = {}, ...children) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  },
  svg(tag, attributes = {}, ...children) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  },
  // A labelled slider; `changed` gets its number.
  slider(text, low, high, value, changed) {
    const output = play.make("output", { textContent: value });
    const input = play.make("input", { type: "range", min: low, max: high, value });
    const label = play.make("label", {}, play.make("span", {}, text + " ", output), input);
    label.set = (other) => { input.value = other; output.textContent = other; };
    input.oninput = () => { output.textContent = input.value; changed(Number(input.value)); };
    return label;
  },
  button(text, click) {
    return play.make("button", { type: "button", textContent: text, onclick: click });
  },
  // Buttons of which one is pressed; `changed` gets its text.
  choice(texts, chosen, changed) {
    const box = play.make("div", { className: "row" });
    box.setAttribute("role", "group");
    box.set = (text) => { for (const made of box.children) made.setAttribute("aria-pressed", made.textContent === text); };
    box.append(...texts.map((text) => play.button(text, () => { box.set(text); changed(text); })));
    box.set(chosen);
    return box;
  },
  row: (...children) => play.make("div", { className: "row" }, ...children),
  say() {
    const made = play.make("pre", { className: "say" });
    made.setAttribute("aria-live", "polite");
    return made;
  },
  define(name, build) {
    customElements.define(`norch-${name}`, class extends HTMLElement {
      connectedCallback() {
        this.classList.add("play");
        this.replaceChildren();
        build(this);
      }
    });
  },
};
