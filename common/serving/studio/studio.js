// The shown version with its history, and the parts of the page that show it.

import { $ } from "./dom.js";
import { Inspector } from "./inspector.js";
import { clearError, fail, say, show } from "./messages.js";
import { Picture } from "./picture.js";
import { storeSession } from "./session.js";
import { Player } from "./sound.js";
import { clamp, keyOf, mapFrame, secondsOf, timelineOf } from "./table.js";
import { Takes } from "./takes.js";
import { GRAINS } from "./units.js";

const MOST_STEPS = 200; // of undo

// A version: {text, voice, shaped, base, table, said}; base is the table of its first version. While a text is
// being spoken (`isGrowing`), its utterances are added to both tables one by one.
export const state = {
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

export const player = new Player(
  () => refreshTransport(),
  () => picture.goBack(),
);

export const edits = {
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

export const picture = new Picture({ onSeek: (frame) => seek(frame) });
const inspector = new Inspector(edits, { onSelect: select });
export const takes = new Takes();

// ---- display

export const shownTable = () => (state.showing === "first" ? state.version.base : (state.preview ?? state.version.table));

export const clipsOf = (version, table) => table.utterances.map((one) => state.clips.get(soundKey(version, one)) ?? null);
export const soundKey = (version, utterance) => `${version.voice}\n${keyOf(utterance)}`;
const isSpoken = () => state.version !== null && clipsOf(state.version, shownTable()).every(Boolean);

export function render() {
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
  $("save-sound").disabled = false;
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

export function select(scope) {
  state.scope = scope;
  if (!state.version) return;
  picture.select(scope);
  const speakers = voiceOf(state.version.voice)?.speakers ?? [];
  if (state.version.shaped) inspector.show(shownTable(), scope, { speakers, isLocked: edits.isLocked() });
}

export function setGrain(grain) {
  picture.setGrain(grain);
  select(state.scope.from === undefined ? state.scope : {});
  render();
}

export function keepSession() {
  if (state.isGrowing) return;
  const { version, undo, redo } = state;
  storeSession({ version, undo, redo, takes: takes.all, count: takes.count });
}

// ---- history

export function remember(version) {
  if (state.version) state.undo.push(state.version);
  if (state.undo.length > MOST_STEPS) state.undo.shift();
  state.redo = [];
  showVersion(version);
  keepSession();
}

export function showVersion(version) {
  const before = state.version && shownTable();
  const isSame = state.version?.base === version.base;
  if (!isSame) state.scope = {};
  if (state.version && $("text").value.trim() === state.version.text) $("text").value = version.text;
  Object.assign(state, { version, preview: null, showing: "now", isGrowing: false });
  stopOrMove(before, isSame);
  render();
}

// The playing sound is no longer the shown one; the cursor stays at the same phone.
function stopOrMove(before, isSame) {
  if (state.take === null) player.pause();
  if (!isSame) state.cursor = 0;
  else if (before) state.cursor = mapSeconds(before, shownTable(), state.cursor ?? 0);
}

export function mapSeconds(from, to, seconds) {
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

export const undo = () => step("undo", "redo", "Undone");
export const redo = () => step("redo", "undo", "Redone");

// ---- speaking

export const voiceOf = (id) => state.voices.find((voice) => voice.id === id);

export function keepClip(version, utterance, clip) {
  state.clips.set(soundKey(version, utterance), clip);
}

// Drops the sounds of versions that can't be reached anymore.
export function dropClips() {
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

function seek(frame) {
  const table = shownTable();
  state.cursor = secondsOf(table, clamp(frame, 0, timelineOf(table).frames));
  if (state.take === null && player.source === table) player.seek(state.cursor);
  moveCursor();
}
