// Elements: found by id, made, and placed by the style sheet's variables.

export const $ = (id) => document.getElementById(id);

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export const place = (element, values) => {
  for (const [name, value] of Object.entries(values)) element.style.setProperty(`--${name}`, value);
};

// Choices are pairs of value and text.
export function fillSelect(select, choices, chosen) {
  const wanted = JSON.stringify(choices);
  if (select.dataset.choices !== wanted) {
    select.replaceChildren(...choices.map(([value, text]) => make("option", { value }, text)));
    select.dataset.choices = wanted;
  }
  if (choices.some(([value]) => value === chosen)) select.value = chosen;
}
