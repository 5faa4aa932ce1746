// In and out: wav, prosody JSON, SSML, the key, the colors; then the page starts.

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

async function downloadWav() {
  if (!(await speakChanges())) return;
  render();
  const table = shownTable();
  download(writeWav(joinClips(table, clipsOf(state.version, table)), table.sampling_rate), "wav");
}

const downloadJson = () =>
  download(new Blob([`${JSON.stringify(shownTable(), null, 1)}\n`], { type: "application/json" }), "prosody.json");

async function loadJson(file) {
  player.wake();
  const loaded = await whileBusy(`Reading ${file.name}…`, async (signal) => {
    const table = readTable(await file.text(), file.name);
    const version = { voice: $("voice").value, shaped: true, base: table, table };
    return { version, clips: cutAnswer(await askSpeech({ model: version.voice, prosody: table }, signal), table) };
  });
  if (!loaded) return;
  const text = loaded.version.table.utterances.map((one) => one.text).join(" ");
  $("text").value = text;
  begin({ ...loaded.version, text, said: file.name }, loaded.clips);
}

async function copySsml() {
  const { text, base } = state.version;
  const ssml = writeSsml(text, shownTable(), base);
  try {
    await navigator.clipboard.writeText(ssml);
  } catch {
    // Browsers leave the clipboard to pages of this machine or of https alone: then the text is shown to be copied.
    $("ssml").value = ssml;
    $("ssml-dialog").showModal();
    $("ssml").select();
    return say("");
  }
  return say("Copied as SSML: what each word has in the mean. The prosody JSON has every phone.");
}

function askForKey() {
  $("key-form").hidden = false;
  $("key").focus();
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
  showSpeakers();
  render();
}

function showSpeakers() {
  const speakers = voiceOf($("voice").value)?.speakers ?? [];
  fillSelect(
    $("speaker"),
    speakers.map((name) => [name, name]),
    $("speaker").value,
  );
  $("speaker-field").hidden = speakers.length < 2;
  const pitch = voiceOf($("voice").value)?.vocoder_pitch;
  $("vocoder-pitch-field").hidden = !pitch;
  $("vocoder-pitch").value = pitch ?? "mel";
}

// What was spoken with the other pitch is to be spoken again.
function changeVocoderPitch() {
  state.request?.abort();
  player.pause();
  render();
}

// ---- colors: as the system has them, light, or dark

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

// ---- keys that hold everywhere

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
  "save-wav": downloadWav,
  "save-json": downloadJson,
  "load-json": () => $("file").click(),
  stop: () => state.request?.abort(),
  "close-error": clearError,
};
for (const [id, act] of Object.entries(CLICKS)) $(id).addEventListener("click", act);
document.addEventListener("keydown", pressAnywhere);
$("voice").addEventListener("change", showSpeakers);
$("vocoder-pitch").addEventListener("change", changeVocoderPitch);
$("theme").addEventListener("change", (event) => setTheme(event.target.value));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => picture.recolor());
$("file").addEventListener("change", (event) => {
  const [file] = event.target.files;
  event.target.value = "";
  if (file) loadJson(file);
});
$("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  server.key = $("key").value.trim();
  $("key-form").hidden = true;
  loadVoices();
});
setTheme(storedTheme());
loadVoices();
