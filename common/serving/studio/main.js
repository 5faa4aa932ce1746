// The page's entry point: voices, colors, keys, buttons, and the restored session.

import { $, fillSelect, make } from "./dom.js";
import { EXAMPLES } from "./examples.js";
import { copySsml, downloadJson, downloadSound, openEdits } from "./files.js";
import { Handles } from "./handles.js";
import { clearError, say } from "./messages.js";
import { forgetSession, keepText, restoreText, SESSION_KEY, stored, unpackSession } from "./session.js";
import { showReading } from "./reading.js";
import { askVoices, server } from "./server.js";
import { compare, playPart, playTake, restoreTake, speakText, togglePlay, whileBusy } from "./speaking.js";
import {
  edits,
  keepSession,
  picture,
  redo,
  render,
  select,
  setGrain,
  showVersion,
  state,
  takes,
  undo,
  voiceOf,
} from "./studio.js";
import { takeKey } from "./takes.js";
import { GRAINS } from "./units.js";

new Handles(picture, edits, { onSelect: select, onPlay: playPart });
takes.actions = { play: playTake, restore: restoreTake, keep: keepSession };

// Restores the parts of the session whose voice is still served; once, unless something was spoken meanwhile.
function restoreSession() {
  const text = stored(SESSION_KEY);
  if (!text || state.version) return;
  let kept;
  try {
    kept = unpackSession(text);
  } catch {
    return forgetSession(); // written by another version of this page
  }
  const isServed = (version) => voiceOf(version?.voice)?.shapes_prosody;
  Object.assign(state, { undo: kept.undo.filter(isServed), redo: kept.redo.filter(isServed) });
  const served = kept.takes.filter((take) => isServed(take.version));
  takes.all = served.map((take) => ({ ...take, key: takeKey(take.version) }));
  takes.count = kept.count;
  takes.render();
  if (!isServed(kept.version)) return;
  showVersion(kept.version);
  say("Restored. The sound is made again when you play it.");
}

async function loadVoices() {
  const voices = await whileBusy("", askVoices);
  if (!voices) return;
  state.voices = voices;
  fillSelect(
    $("voice"),
    voices.map(({ id, name }) => [id, name ?? id]),
    voices[0]?.id,
  );
  $("voice-field").hidden = voices.length < 2;
  showVoice();
  restoreSession();
  render();
}

// Names the voice and its vocoder, and offers its speakers and examples in its language.
function showVoice() {
  const voice = voiceOf($("voice").value);
  $("voice-line").textContent = voice ? `${voice.name} (${voice.model}) speaks; ${voice.vocoder} makes the sound.` : "";
  const examples = EXAMPLES[voice?.language.split("-")[0]] ?? [];
  $("examples").hidden = examples.length === 0;
  $("examples").replaceChildren(
    ...examples.map((text) => {
      const button = make("button", { type: "button" }, text);
      button.addEventListener("click", () => {
        $("text").value = text;
        keepText();
        speakText();
      });
      return button;
    }),
  );
  const speakers = voice?.speakers ?? [];
  fillSelect(
    $("speaker"),
    speakers.map((name) => [name, name]),
    $("speaker").value,
  );
  $("speaker-field").hidden = speakers.length < 2;
}

// ---- colors: the system's, light, or dark

const THEMES = ["system", "light", "dark"];

function setTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  $("theme").value = theme;
  try {
    localStorage.setItem("studio-theme", theme);
  } catch {
    // No storage: the choice lasts as long as the page.
  }
  picture.recolor();
}

function storedTheme() {
  try {
    return THEMES.find((name) => name === localStorage.getItem("studio-theme")) ?? "system";
  } catch {
    return "system";
  }
}

// ---- keys that work everywhere

function pressAnywhere(event) {
  const isText = event.target.matches("textarea, input:not([type=range], [type=file])");
  const isCommand = event.ctrlKey || event.metaKey;
  const key = event.key.toLowerCase();
  if (isCommand && key === "enter") speakText();
  else if (isText) return;
  else if (isCommand && key === "z") (event.shiftKey ? redo : undo)();
  else if (isCommand && key === "y") redo();
  else if (key === " " && !event.target.matches("button, select, summary, a")) togglePlay();
  else if (key === "escape" && !picture.isDragging) select({});
  else return;
  event.preventDefault();
}

const CLICKS = {
  speak: speakText,
  play: togglePlay,
  undo,
  redo,
  "show-first": () => compare("first"),
  "show-now": () => compare("now"),
  "zoom-in": () => picture.zoom(1.4),
  "zoom-out": () => picture.zoom(1 / 1.4),
  "zoom-fit": () => (picture.fit(), picture.refresh()),
  "copy-ssml": copySsml,
  "save-sound": downloadSound,
  "save-json": downloadJson,
  "load-json": () => $("file").click(),
  ...Object.fromEntries(GRAINS.map((grain) => [`grain-${grain}`, () => setGrain(grain)])),
  stop: () => state.request?.abort(),
  "close-error": clearError,
  read: showReading,
  "close-reading": () => ($("reading").hidden = true),
};

for (const [id, act] of Object.entries(CLICKS)) $(id).addEventListener("click", act);
document.addEventListener("keydown", pressAnywhere);
$("voice").addEventListener("change", showVoice);
$("text").addEventListener("input", keepText);
$("theme").addEventListener("change", (event) => setTheme(event.target.value));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => picture.recolor());

$("file").addEventListener("change", (event) => {
  const [file] = event.target.files;
  event.target.value = "";
  if (file) openEdits(file);
});

for (const name of ["dragover", "drop", "dragleave"]) {
  document.addEventListener(name, (event) => {
    if (![...(event.dataTransfer?.types ?? [])].includes("Files")) return;
    event.preventDefault();
    $("drop").hidden = name !== "dragover";
    if (name === "drop" && event.dataTransfer.files[0]) openEdits(event.dataTransfer.files[0]);
  });
}

$("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  server.key = $("key").value.trim();
  $("key-form").hidden = true;
  loadVoices();
});

setTheme(storedTheme());
restoreText();
loadVoices();
