// Shows the words and phones that will be said for a text, before it is spoken.

import { $, make } from "./dom.js";
import { clearError, fail } from "./messages.js";
import { askReading } from "./server.js";

export async function showReading() {
  const text = $("text").value.trim();
  if (!text) {
    $("text").focus();
    return fail("There is no text yet. Type a sentence first.");
  }
  clearError();
  try {
    const { utterances, warning } = await askReading({ model: $("voice").value, input: text });
    $("readings").replaceChildren(...utterances.map(makeItem));
    $("reading-warning").textContent = warning ?? "";
    $("reading").hidden = false;
  } catch (error) {
    fail(error.message);
  }
}

function makeItem({ words, phones }) {
  const item = make("li", {}, make("span", { class: "reading-words" }, words));
  if (phones) item.append(make("span", { class: "quiet" }, phones));
  return item;
}
