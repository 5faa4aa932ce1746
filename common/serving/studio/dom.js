// Finds elements by id, makes them, and positions them with the style sheet's variables.

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

// `choices` are pairs of a value and its text.
export function fillSelect(select, choices, chosen) {
  const wanted = JSON.stringify(choices);
  if (select.dataset.choices !== wanted) {
    select.replaceChildren(...choices.map(([value, text]) => make("option", { value }, text)));
    select.dataset.choices = wanted;
  }
  if (choices.some(([value]) => value === chosen)) select.value = chosen;
}
