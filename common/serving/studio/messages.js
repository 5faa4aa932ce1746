// What the page says: states, errors, and for screen readers.

import { $ } from "./dom.js";

// For all to see, and for screen readers to read out.
export function say(text) {
  $("status").textContent = text;
  $("done").textContent = "";
}

// What a screen reader said already of the element that has the focus.
export function show(text) {
  $("status").textContent = "";
  $("done").textContent = text;
}

export function fail(text) {
  $("error-text").textContent = text;
  $("error").hidden = false;
  $("error").scrollIntoView({ block: "nearest" });
}

export function clearError() {
  $("error").hidden = true;
  $("error-text").textContent = "";
}
