// The page's messages: status and errors, also for screen readers.

import { $ } from "./dom.js";

// Visible, and read out by screen readers.
export function say(text) {
  $("status").textContent = text;
  $("done").textContent = "";
}

// Only visible: screen readers have already read it out from the focused element.
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
