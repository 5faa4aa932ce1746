// In and out: wav, edits, SSML, recordings, examples, the key, the colors; then the page starts.

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

// The bytes of a file in base64.
const readBase64 = (file) =>
  new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(reader.result.slice(reader.result.indexOf(",") + 1)));
    reader.addEventListener("error", () => reject(reader.error));
    reader.readAsDataURL(file);
  });

// A file that was chosen or dropped: edits, or a recording of the text.
function openFile(file) {
  clearError();
  if (/\.json$/i.test(file.name)) loadJson(file);
  else if (voiceOf($("voice").value)?.shapes_prosody) sayLike(file);
  else fail(`${file.name}: this voice cannot say a text like a recording`);
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
  return say("Copied as SSML: what each word has in the mean. The file of the edits has every sound.");
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
  showVoice();
  restoreSession();
  render();
}

// Names the voice and what makes its sound, and offers its speakers and examples in its language.
function showVoice() {
  const voice = voiceOf($("voice").value);
  $("voice-line").textContent = voice ? `${voice.name} (${voice.model}) speaks; ${voice.vocoder} makes the sound.` : "";
  $("say-like").hidden = !voice?.shapes_prosody;
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
  const pitch = voice?.vocoder_pitch;
  $("vocoder-pitch-field").hidden = !pitch;
  $("vocoder-pitch").value = pitch ?? "mel";
}

// What was spoken with the other pitch is to be spoken again.
function changeVocoderPitch() {
  state.request?.abort();
  player.pause();
  keepSession();
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
  "say-like": () => $("recording").click(),
  ...Object.fromEntries(GRAINS.map((grain) => [`grain-${grain}`, () => setGrain(grain)])),
  stop: () => state.request?.abort(),
  "close-error": clearError,
};
for (const [id, act] of Object.entries(CLICKS)) $(id).addEventListener("click", act);
document.addEventListener("keydown", pressAnywhere);
$("voice").addEventListener("change", showVoice);
$("text").addEventListener("input", keepText);
$("vocoder-pitch").addEventListener("change", changeVocoderPitch);
$("theme").addEventListener("change", (event) => setTheme(event.target.value));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => picture.recolor());
for (const id of ["file", "recording"]) {
  $(id).addEventListener("change", (event) => {
    const [file] = event.target.files;
    event.target.value = "";
    if (file) openFile(file);
  });
}
for (const name of ["dragover", "drop", "dragleave"]) {
  document.addEventListener(name, (event) => {
    if (![...(event.dataTransfer?.types ?? [])].includes("Files")) return;
    event.preventDefault();
    $("drop").hidden = name !== "dragover";
    if (name === "drop" && event.dataTransfer.files[0]) openFile(event.dataTransfer.files[0]);
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
