// The page: what is shown, its history, and what each button does.

const MOST_STEPS = 200; // of undo
const MOST_SYMBOLS = 1500; // of a request

// A version: {text, voice, shaped, base, table, said}; the base is the table of its first version.
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
};

const player = new Player(() => refreshTransport());
const edits = {
  isLocked: () => state.showing === "first" || !state.version?.shaped,
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
const takes = new Takes({ play: playTake, restore: restoreTake });

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
  if (takes.shown !== version) takes.render(version, state.take);
  refreshTransport();
}

function refreshTransport() {
  const { version } = state;
  $("undo").disabled = state.undo.length === 0;
  $("redo").disabled = state.redo.length === 0;
  if (!version) return;
  const isPlaying = player.isPlaying && state.take === null;
  const label = isPlaying ? "Pause" : isSpoken() ? "Play" : "Listen again";
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

// ---- history

function remember(version) {
  if (state.version) state.undo.push(state.version);
  if (state.undo.length > MOST_STEPS) state.undo.shift();
  state.redo = [];
  showVersion(version);
}

function showVersion(version) {
  const before = state.version && shownTable();
  const isSame = state.version?.base === version.base;
  if (!isSame) state.scope = {};
  if (state.version && $("text").value.trim() === state.version.text) $("text").value = version.text;
  Object.assign(state, { version, preview: null, showing: "now" });
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
  const version = state[from].pop();
  if (!version) return;
  const what = verb === "Undone" ? state.version.said : version.said;
  state[to].push(state.version);
  showVersion(version);
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
      $("busy").hidden = true;
    }
  }
}

function keepClips(version, table, clips) {
  table.utterances.forEach((utterance, u) => state.clips.set(soundKey(version, utterance), clips[u]));
  const versions = [version, { ...version, table }, state.version, ...state.undo, ...state.redo].filter(Boolean);
  const needed = new Set();
  const seen = new Set(); // versions share most of their utterances
  for (const one of versions) {
    for (const utterance of [...one.base.utterances, ...one.table.utterances]) {
      if (!seen.has(utterance)) needed.add(soundKey(one, utterance));
      seen.add(utterance);
    }
  }
  for (const key of state.clips.keys()) if (!needed.has(key)) state.clips.delete(key);
}

async function speakText() {
  const text = $("text").value.trim();
  if (!text) {
    $("text").focus();
    return say("Type something to speak first");
  }
  player.wake();
  const voice = $("voice").value;
  const speaker = $("speaker").value;
  const spoken = await whileBusy("Speaking…", async (signal) => {
    const answer = await askSpeech({ model: voice, input: text, ...(speaker && { voice: speaker }) }, signal);
    const shaped = answer.prosody !== null;
    const table = shaped ? answer.prosody : tableOfWords(answer, text);
    const version = { text, voice, shaped, base: table, table, said: `“${shorten(text)}”` };
    return { version, clips: cutAnswer(answer, table), warning: answer.warning };
  });
  return spoken && begin(spoken.version, spoken.clips, spoken.warning);
}

// Shows and plays a new first version; the warning says what was left out of its text.
function begin(version, clips, warning = null) {
  keepClips(version, version.table, clips);
  remember(version);
  takes.add(version, clips);
  const { starts, frames } = timelineOf(version.table);
  say(
    `Spoken: ${secondsOf(version.table, frames).toFixed(2)} s${starts.length > 1 ? `, ${starts.length} sentences` : ""}${
      warning ? `; ${warning}` : ""
    }`,
  );
  if (document.activeElement === $("speak")) $("play").focus({ preventScroll: true });
  playShown(0);
}

const shorten = (text) => (text.length > 40 ? `${text.slice(0, 39)}…` : text);

// Asks for the sentences that have no sound yet, and keeps the others. Returns whether everything has its sound.
async function speakChanges() {
  const { version } = state;
  const table = shownTable();
  const missing = table.utterances.filter((one) => !state.clips.has(soundKey(version, one)));
  if (missing.length === 0) return true;
  const count =
    table.utterances.length > 1 ? ` ${missing.length} of ${table.utterances.length} sentences` : " the change";
  const done = await whileBusy(`Speaking${count}…`, async (signal) => {
    for (const utterances of inRequests(missing)) {
      const wanted = { ...table, utterances: utterances.map(withoutSilence) };
      keepClips(version, wanted, cutAnswer(await askSpeech({ model: version.voice, prosody: wanted }, signal), wanted));
    }
    return true;
  });
  if (done) say(`Spoken:${count}`);
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
  if (changed >= 0) {
    if (!(await speakChanges())) return;
    if (state.version !== version || shownTable() !== table) return render(); // it was changed meanwhile
    takes.add(version, clipsOf(version, table));
    render();
  }
  playShown(changed >= 0 ? secondsOf(table, timelineOf(table).starts[changed]) : state.cursor);
}

function loadShown(seconds) {
  const table = shownTable();
  state.take = null;
  player.load(table, joinClips(table, clipsOf(state.version, table)), table.sampling_rate, seconds);
}

function playShown(seconds, until) {
  player.pause();
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

function playTake(take) {
  const wasPlaying = state.take === take && player.isPlaying;
  player.pause();
  if (wasPlaying) return;
  const { table } = take.version;
  player.load(take, joinClips(table, take.clips), table.sampling_rate, 0);
  state.take = take;
  player.play();
  takes.render(state.version, take);
}

function restoreTake(take) {
  const { version, clips, title } = take;
  keepClips(version, version.table, clips);
  remember({ ...version, said: title });
  say(`${title} restored`);
}
