// The page: what is shown, its history, and what each button does.

const MOST_STEPS = 200; // of undo
const MOST_SYMBOLS = 1500; // of a request

// A version: {text, voice, shaped, base, table, said}; the base is the table of its first version. While a text is
// being spoken, `isGrowing`, both tables get its utterances one by one.
const state = {
  voices: [],
  version: null,
  preview: null,
  showing: "now",
  scope: {},
  undo: [],
  redo: [],
  clips: new Map(),
  request: null,
  take: null,
  isGrowing: false,
};

const player = new Player(
  () => refreshTransport(),
  () => picture.goBack(),
);
const edits = {
  isLocked: () => state.showing === "first" || !state.version?.shaped || state.isGrowing,
  current: () => state.version.table,
  base: () => state.version.base,
  preview(table) {
    state.preview = table;
    render();
  },
  revert() {
    state.preview = null;
    render();
  },
  commit(table, said) {
    state.preview = null;
    clearError();
    remember({ ...state.version, table, said });
    show(said);
  },
  refuse: fail,
};
const picture = new Picture({ onSeek: (frame) => seek(frame) });
const handles = new Handles(picture, edits, { onSelect: select, onPlay: playPart });
const inspector = new Inspector(edits, { onSelect: select });
const takes = new Takes({ play: playTake, restore: restoreTake, keep: keepSession });

// For all to see, and for screen readers to read out.
function say(text) {
  $("status").textContent = text;
  $("done").textContent = "";
}

// What a screen reader said already of the element that has the focus.
function show(text) {
  $("status").textContent = "";
  $("done").textContent = text;
}

function fail(text) {
  $("error-text").textContent = text;
  $("error").hidden = false;
  $("error").scrollIntoView({ block: "nearest" });
}

function clearError() {
  $("error").hidden = true;
  $("error-text").textContent = "";
}

// ---- what is shown

const shownTable = () => (state.showing === "first" ? state.version.base : (state.preview ?? state.version.table));
const clipsOf = (version, table) => table.utterances.map((one) => state.clips.get(soundKey(version, one)) ?? null);
const soundKey = (version, utterance) => `${version.voice}\n${$("vocoder-pitch").value}\n${keyOf(utterance)}`;
const isSpoken = () => state.version !== null && clipsOf(state.version, shownTable()).every(Boolean);

function render() {
  const { version } = state;
  $("stage").hidden = version === null;
  $("welcome").hidden = version !== null;
  if (!version) return;
  const table = shownTable();
  const loudest = clipsOf(version, version.base).reduce(
    (most, clip) => Math.max(most, clip?.high ?? -Infinity),
    -Infinity,
  );
  if (Number.isFinite(loudest)) state.loudest = loudest;
  picture.show({ ...version, table }, clipsOf(version, table), state.loudest);
  picture.select(state.scope);
  $("picture-frame").classList.toggle("locked", edits.isLocked());
  $("inspector").hidden = !version.shaped;
  $("why-unshaped").hidden = version.shaped;
  $("keys-short").hidden = !version.shaped;
  $("picture-frame").classList.toggle("unshaped", !version.shaped);
  const speakers = voiceOf(version.voice)?.speakers ?? [];
  if (version.shaped) inspector.show(table, state.scope, { speakers, isLocked: edits.isLocked() });
  for (const which of ["first", "now"])
    $(`show-${which}`).setAttribute("aria-pressed", String(state.showing === which));
  for (const id of ["show-first", "show-now"]) $(id).disabled = version.table === version.base;
  $("save-wav").disabled = false;
  for (const id of ["copy-ssml", "save-json"]) $(id).disabled = !version.shaped;
  $("grain").hidden = !version.shaped;
  for (const grain of GRAINS) $(`grain-${grain}`).setAttribute("aria-pressed", String(picture.grain === grain));
  if (takes.shown !== version) takes.render(version, state.take);
  refreshTransport();
}

function refreshTransport() {
  const { version } = state;
  $("undo").disabled = state.undo.length === 0 || state.isGrowing;
  $("redo").disabled = state.redo.length === 0 || state.isGrowing;
  if (!version) return;
  const isPlaying = player.isPlaying && state.take === null;
  const label = isPlaying ? "Pause" : isSpoken() || state.isGrowing ? "Play" : "Listen again";
  $("play-label").textContent = label;
  $("play").dataset.icon = isPlaying ? "pause" : "play";
  $("play").classList.toggle("primary", !isSpoken());
  if (!player.isPlaying && state.take) {
    state.take = null;
    takes.render(version, null);
  }
  moveCursor();
  if (player.isPlaying && !state.isFollowing) requestAnimationFrame(followSound);
  state.isFollowing = player.isPlaying;
}

function followSound() {
  moveCursor();
  if (player.isPlaying) requestAnimationFrame(followSound);
}

function moveCursor() {
  const table = shownTable();
  const total = secondsOf(table, timelineOf(table).frames);
  const seconds = state.take === null && player.source === table ? player.position : (state.cursor ?? 0);
  state.cursor = Math.min(seconds, total);
  picture.point(
    (seconds * table.sampling_rate) / table.hop_length,
    player.isPlaying && state.take === null && !picture.isDragging,
  );
  $("time").textContent = `${state.cursor.toFixed(2)} / ${total.toFixed(2)} s`;
}

function select(scope) {
  state.scope = scope;
  if (!state.version) return;
  picture.select(scope);
  const speakers = voiceOf(state.version.voice)?.speakers ?? [];
  if (state.version.shaped) inspector.show(shownTable(), scope, { speakers, isLocked: edits.isLocked() });
}

function setGrain(grain) {
  picture.setGrain(grain);
  select(state.scope.from === undefined ? state.scope : {});
  render();
}

// ---- history

function remember(version) {
  if (state.version) state.undo.push(state.version);
  if (state.undo.length > MOST_STEPS) state.undo.shift();
  state.redo = [];
  showVersion(version);
  keepSession();
}

function showVersion(version) {
  const before = state.version && shownTable();
  const isSame = state.version?.base === version.base;
  if (!isSame) state.scope = {};
  if (state.version && $("text").value.trim() === state.version.text) $("text").value = version.text;
  Object.assign(state, { version, preview: null, showing: "now", isGrowing: false });
  stopOrMove(before, isSame);
  render();
}

// The sound that plays is no longer the one that is shown: the cursor stays at the same phone.
function stopOrMove(before, isSame) {
  if (state.take === null) player.pause();
  if (!isSame) state.cursor = 0;
  else if (before) state.cursor = mapSeconds(before, shownTable(), state.cursor ?? 0);
}

function mapSeconds(from, to, seconds) {
  return secondsOf(to, mapFrame(from, to, (seconds * from.sampling_rate) / from.hop_length));
}

function step(from, to, verb) {
  const version = state.isGrowing ? undefined : state[from].pop();
  if (!version) return;
  const what = verb === "Undone" ? state.version.said : version.said;
  state[to].push(state.version);
  showVersion(version);
  keepSession();
  say(`${verb}: ${what}`);
}

const undo = () => step("undo", "redo", "Undone");
const redo = () => step("redo", "undo", "Redone");

// ---- speaking

const voiceOf = (id) => state.voices.find((voice) => voice.id === id);

// Runs one request; a newer one or the button stops it. Returns undefined where it failed.
async function whileBusy(what, work) {
  state.request?.abort();
  const request = new AbortController();
  state.request = request;
  clearError();
  say(what);
  $("busy").hidden = false;
  try {
    return await work(request.signal);
  } catch (error) {
    if (error.name === "AbortError") return state.request === request ? say("Stopped") : undefined;
    say("");
    if (error.status === 401) askForKey();
    return fail(error.message);
  } finally {
    if (state.request === request) {
      state.request = null;
      $("busy").hidden = $("progress").hidden = true;
    }
  }
}

function keepClip(version, utterance, clip) {
  state.clips.set(soundKey(version, utterance), clip);
}

// Forgets the sounds of versions that nothing leads back to.
function dropClips() {
  const versions = [state.version, ...state.undo, ...state.redo, ...takes.all.map((take) => take.version)];
  const needed = new Set();
  const seen = new Set(); // versions share most of their utterances
  for (const one of versions.filter(Boolean)) {
    for (const utterance of [...one.base.utterances, ...one.table.utterances]) {
      if (!seen.has(utterance)) needed.add(soundKey(one, utterance));
      seen.add(utterance);
    }
  }
  for (const key of state.clips.keys()) if (!needed.has(key)) state.clips.delete(key);
}

function showProgress(done, all) {
  $("progress").hidden = all < 2;
  Object.assign($("progress"), { value: done, max: all });
  if (all > 1) show(`${done} of ${all} sentences`);
}

async function speakText() {
  const text = $("text").value.trim();
  if (!text) {
    $("text").focus();
    return fail("There is no text yet: type a sentence to speak.");
  }
  await speakNew({ input: text }, { text, said: `“${shorten(text)}”` });
}

// Says the text as it is said in a recording of it.
async function sayLike(file) {
  const text = $("text").value.trim();
  if (!text) {
    $("text").focus();
    return fail("First type what is said in the recording: its text says where each sound is.");
  }
  if (!$("vocoder-pitch-field").hidden) $("vocoder-pitch").value = "voice";
  const like = await readBase64(file);
  await speakNew({ input: text, like }, { text, said: `“${shorten(text)}” like ${file.name}` });
}

// Speaks a new first version: it is shown and heard as its sentences arrive.
async function speakNew(fields, { text, said, voice = $("voice").value, speaker = $("speaker").value }) {
  player.wake();
  player.pause();
  const grown = { version: null, warning: null };
  const own = speaker && fields.input ? { voice: speaker } : {};
  await whileBusy("Speaking…", async (signal) => {
    for await (const part of askSpeech({ model: voice, ...fields, ...own }, signal)) {
      if (grown.version && grown.version !== state.version) return; // another one is shown now
      addPart(grown, part, { text, said, voice });
    }
  });
  if (!grown.version || grown.version !== state.version) return;
  state.isGrowing = false;
  player.finish();
  takes.add(grown.version);
  dropClips();
  keepSession();
  render();
  const { starts, frames } = timelineOf(grown.version.table);
  if ($("error").hidden && $("status").textContent !== "Stopped") {
    const seconds = secondsOf(grown.version.table, frames).toFixed(2);
    const sentences = starts.length > 1 ? `, ${starts.length} sentences` : "";
    say(`Spoken: ${seconds} s${sentences}${grown.warning ? `; ${grown.warning}` : ""}`);
  }
}

// Adds an utterance that was spoken to the version that is shown, and to the sound that plays.
function addPart(grown, part, { text, said, voice }) {
  const before = grown.version;
  const table = part.prosody ?? tableOfWords(part, text);
  const [clip] = cutAnswer(part, table);
  const base = before ? { ...table, utterances: [...before.base.utterances, ...table.utterances] } : table;
  const version = { text, voice, shaped: part.prosody !== null, base, table: base, said };
  keepClip(version, table.utterances[0], clip);
  grown.version = version;
  grown.warning ??= part.warning;
  if (before) state.version = version;
  else remember(version);
  state.isGrowing = true;
  const pieces = piecesToPlay(base, clipsOf(version, base));
  if (before && player.source === before.base) player.extend(base, pieces);
  if (!before) playShown(0);
  if (player.source === base) player.isGrowing = true;
  render();
  showProgress(part.part + 1, part.n_parts);
  if (!before && document.activeElement === $("speak")) $("play").focus({ preventScroll: true });
}

const shorten = (text) => (text.length > 40 ? `${text.slice(0, 39)}…` : text);

// Asks for the sentences that have no sound yet, and keeps the others; onPart() is called for each. Returns whether
// everything has its sound.
async function speakChanges(version = state.version, table = shownTable(), onPart = () => {}) {
  const missing = table.utterances.filter((one) => !state.clips.has(soundKey(version, one)));
  if (missing.length === 0) return true;
  const count =
    table.utterances.length > 1 ? ` ${missing.length} of ${table.utterances.length} sentences` : " the change";
  let n_spoken = 0;
  const done = await whileBusy(`Speaking${count}…`, async (signal) => {
    for (const utterances of inRequests(missing)) {
      const wanted = { ...table, utterances: utterances.map(withoutSilence) };
      let index = 0;
      for await (const part of askSpeech({ model: version.voice, prosody: wanted }, signal)) {
        const utterance = wanted.utterances[index++];
        keepClip(version, utterance, cutAnswer(part, { ...wanted, utterances: [utterance] })[0]);
        if (missing.length > 1) showProgress(++n_spoken, missing.length);
        onPart();
      }
    }
    return true;
  });
  if (done) say(`Spoken:${count}`);
  dropClips();
  return done === true;
}

// Utterances in groups that are well within what a server speaks at once.
function inRequests(utterances) {
  const groups = [];
  let size = Infinity;
  for (const utterance of utterances) {
    size += placesOf(utterance).length;
    if (size > MOST_SYMBOLS) {
      groups.push([]);
      size = placesOf(utterance).length;
    }
    groups.at(-1).push(utterance);
  }
  return groups;
}

async function listen() {
  player.wake();
  const { version } = state;
  const table = shownTable();
  const changed = clipsOf(version, table).findIndex((clip) => !clip);
  if (changed < 0) return playShown(state.cursor);
  const isShown = () => state.version === version && shownTable() === table;
  const spoken = await speakChanges(version, table, () => isShown() && playMore(version, table, changed));
  player.finish();
  if (isShown() && spoken) takes.add(version);
  keepSession();
  render();
}

// Plays a table from an utterance on, as far as its sound is made.
function playMore(version, table, first) {
  const pieces = piecesToPlay(table, clipsOf(version, table));
  if (player.isGrowing && player.source === table) player.extend(table, pieces);
  else playShown(secondsOf(table, timelineOf(table).starts[first]));
  player.isGrowing = true;
  render();
}

function loadShown(seconds) {
  const table = shownTable();
  state.take = null;
  player.load(table, piecesToPlay(table, clipsOf(state.version, table)), table.sampling_rate, seconds);
}

function playShown(seconds, until) {
  player.pause();
  picture.home = null;
  loadShown(seconds);
  player.play(until);
}

async function playPart(from, until) {
  player.wake();
  const table = shownTable();
  if (!(await speakChanges()) || shownTable() !== table) return;
  render();
  playShown(secondsOf(table, from), secondsOf(table, until));
}

function togglePlay() {
  if (!state.version) return;
  if (player.isPlaying && state.take === null) player.pause();
  else listen();
}

function seek(frame) {
  const table = shownTable();
  state.cursor = secondsOf(table, clamp(frame, 0, timelineOf(table).frames));
  if (state.take === null && player.source === table) player.seek(state.cursor);
  moveCursor();
}

// The first version and the present one: the sound goes on at the same phone.
async function compare(which) {
  if (!state.version || state.showing === which) return;
  const before = shownTable();
  const seconds = player.source === before ? player.position : (state.cursor ?? 0);
  const wasPlaying = player.isPlaying && state.take === null;
  player.pause();
  state.showing = which;
  state.cursor = mapSeconds(before, shownTable(), seconds);
  render();
  say(which === "first" ? "First version" : "Present version");
  if (wasPlaying && (await speakChanges())) {
    render();
    playShown(state.cursor);
  }
}

// ---- takes

async function playTake(take) {
  const wasPlaying = state.take === take && player.isPlaying;
  player.wake();
  player.pause();
  if (wasPlaying) return;
  const { version } = take;
  if (!(await speakChanges(version, version.table))) return;
  player.load(take, piecesToPlay(version.table, clipsOf(version, version.table)), version.table.sampling_rate, 0);
  state.take = take;
  player.play();
  takes.render(state.version, take);
}

function restoreTake({ version, title }) {
  remember({ ...version, said: title });
  say(`${title} restored`);
}
