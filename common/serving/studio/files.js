// Saves and opens files, and copies: sound, edits and SSML.

import { $, make } from "./dom.js";
import { clearError, fail, say } from "./messages.js";
import { askFile } from "./server.js";
import { joinClips, writeWav } from "./sound.js";
import { speakChanges, speakNew, whileBusy } from "./speaking.js";
import { writeSsml } from "./ssml.js";
import { clipsOf, render, shownTable, state } from "./studio.js";
import { readTable } from "./table.js";

function download(blob, ending) {
  const name = state.version.text
    .replace(/<[^>]*>/g, " ")
    .toLowerCase()
    .match(/[\p{L}\p{N}]+/gu)
    ?.slice(0, 5)
    .join("-");
  const link = make("a", { href: URL.createObjectURL(blob), download: `${name || "speech"}.${ending}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  say(`${link.download} downloaded`);
}

// A wav holds what was played; the server makes other formats and subtitles from the same text or table.
export async function downloadSound() {
  const form = $("save-form").value;
  const [{ text, voice, shaped }, table] = [state.version, shownTable()];
  if (form === "wav") {
    if (!(await speakChanges())) return;
    render();
    download(writeWav(joinClips(table, clipsOf(state.version, table)), table.sampling_rate), form);
    return;
  }
  const said = shaped ? { prosody: table } : { input: text, ...($("speaker").value && { voice: $("speaker").value }) };
  const fields = { model: voice, response_format: form, ...said };
  const blob = await whileBusy(`Making ${form}…`, (signal) => askFile(fields, signal));
  if (blob) download(blob, form);
}

export const downloadJson = () =>
  download(new Blob([`${JSON.stringify(shownTable(), null, 1)}\n`], { type: "application/json" }), "prosody.json");

// Opens a file of edits that was chosen or dropped.
export async function openEdits(file) {
  clearError();
  let table;
  try {
    table = readTable(await file.text(), file.name);
  } catch (error) {
    return fail(error.message);
  }
  const text = table.utterances.map((one) => one.text).join(" ");
  $("text").value = text;
  await speakNew({ prosody: table }, { text, said: file.name });
}

export async function copySsml() {
  const { text, base } = state.version;
  const ssml = writeSsml(text, shownTable(), base);
  try {
    await navigator.clipboard.writeText(ssml);
  } catch {
    // Browsers only give pages on localhost or https access to the clipboard; otherwise, show the text to copy.
    $("ssml").value = ssml;
    $("ssml-dialog").showModal();
    $("ssml").select();
    return say("");
  }
  return say("Copied as SSML, with averages for each word. “Download edits” keeps every sound.");
}
