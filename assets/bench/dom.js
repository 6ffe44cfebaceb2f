// Building elements. Text only ever becomes a text node or an attribute value: nothing here parses HTML, so no token can be markup.

const NARROW_SCREEN = matchMedia("(max-width: 760px)"); // where bench.css hides two columns

function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

// Setting a text that has not changed would still cost a layout, and a new text node more than new text in the old one.
function setText(element, text) {
  const node = element.firstChild;
  if (!node) element.append(text);
  else if (node.data !== text) node.data = text;
}

function button(label, action, attributes = {}) {
  return el("button", { type: "button", onclick: (event) => isDisabled(event.currentTarget) || action(), ...attributes }, label);
}

// A button that has nothing to do for now. The attribute `disabled` would take the keyboard's focus away from it.
function disable(element, isOff) {
  element.setAttribute("aria-disabled", isOff);
}

function isDisabled(element) {
  return element.getAttribute("aria-disabled") === "true";
}
