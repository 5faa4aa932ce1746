// A listening test: trials in the listener's own order, answers that survive a reload, and the file at the end.
"use strict";
const $ = (id) => document.getElementById(id);
const test = JSON.parse($("test").textContent);
const isPair = test.kind === "ab";
const NONE = "none"; // the choice of neither of two
const STORE = `listening test ${test.test}`; // in the browser: {listener, answers of each listener}
const state = { listener: "", answers: {}, heard: new Set(), index: 0, order: [], trial: null };

// Numbers from 0 to 1 by mulberry32, the same for the same text (its FNV-1a hash).
function randomOf(text) {
  let seed = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) seed = Math.imul(seed ^ byte, 0x01000193);
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), seed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function shuffled(items, random) {
  const result = [...items];
  for (let last = result.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1));
    [result[last], result[other]] = [result[other], result[last]];
  }
  return result;
}

const orderOf = (listener) =>
  shuffled(test.trials, randomOf(`${test.test}/${listener}`)).map((trial) => ({
    ...trial,
    sounds: shuffled(trial.sounds, randomOf(`${test.test}/${listener}/${trial.name}`)),
  }));

function readStore() {
  try {
    return JSON.parse(localStorage.getItem(STORE)) ?? { listener: "", answers: {} };
  } catch {
    return { listener: "", answers: {} };
  }
}

function keep() {
  const store = readStore();
  store.listener = state.listener;
  if (state.listener) store.answers[state.listener] = state.answers;
  try {
    localStorage.setItem(STORE, JSON.stringify(store));
  } catch {
    $("unkept").hidden = false;
  }
}

const player = { audio: null, button: null };

function stop() {
  player.audio?.pause();
  player.button?.classList.remove("playing");
  Object.assign(player, { audio: null, button: null });
}

// A second press of the button stops its sound.
function play(sound, button) {
  const wasPlaying = player.button === button;
  stop();
  if (wasPlaying) return;
  const audio = new Audio(`data:audio/flac;base64,${test.sounds[sound]}`);
  Object.assign(player, { audio, button });
  button.classList.add("playing");
  audio.addEventListener("ended", () => player.audio === audio && stop());
  audio.play().then(
    () => hear(sound, button),
    (error) => error.name !== "AbortError" && tell(`This browser cannot play the sound: ${error.message}`),
  );
}

function hear(sound, button) {
  state.heard.add(sound);
  if (button.id !== "reference") button.classList.add("heard");
}

const tell = (message) => {
  $("missing").textContent = message;
};

function show(part) {
  for (const id of ["start", "trial", "end"]) $(id).hidden = id !== part;
  $("who").hidden = part === "start";
  $("name").textContent = state.listener;
  stop();
}

function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function playButton(sound, label, key) {
  const button = make("button", { type: "button", className: "play", textContent: label });
  button.setAttribute("aria-keyshortcuts", key);
  button.addEventListener("click", () => play(sound, button));
  return button;
}

const answerOf = (trial) => state.answers[trial.name] ?? {};

function sliderRow(sound, number) {
  const score = answerOf(state.trial)[sound];
  const slider = make("input", { type: "range", min: 0, max: 100, step: 1, value: score ?? 50 });
  slider.setAttribute("aria-label", `Quality of sound ${number}`);
  const output = make("output", { textContent: score ?? "–" });
  slider.classList.toggle("unset", score === undefined);
  const set = () => {
    slider.classList.remove("unset");
    output.textContent = slider.value;
    state.answers[state.trial.name] = { ...answerOf(state.trial), [sound]: Number(slider.value) };
    tell("");
    keep();
  };
  for (const event of ["input", "pointerup"]) slider.addEventListener(event, set); // a click on the middle is no input
  return make("div", { className: "sound" }, playButton(sound, `Sound ${number}`, String(number)), slider, output);
}

function choose(choice) {
  const { name, sounds } = state.trial;
  state.answers[name] = Object.fromEntries(sounds.map((sound) => [sound, Number(sound === choice)]));
  tell("");
  keep();
}

function pairRows([a, b]) {
  const answer = answerOf(state.trial);
  const chosen = a in answer ? ([a, b].find((sound) => answer[sound] === 1) ?? NONE) : null;
  const radios = [
    [a, "A is better"],
    [NONE, "No preference"],
    [b, "B is better"],
  ].map(([value, label]) => {
    const radio = make("input", { type: "radio", name: "choice", value, checked: value === chosen });
    radio.addEventListener("change", () => choose(value));
    return make("label", {}, radio, label);
  });
  const buttons = [playButton(a, "A", "A 1"), playButton(b, "B", "B 2")];
  const group = make("fieldset", {}, ...radios);
  group.setAttribute("aria-label", "Preference");
  return [make("div", { className: "pair" }, ...buttons), group];
}

function showTrial(index) {
  if (index >= state.order.length) {
    show("end");
    $("end").querySelector("h2").focus();
    return;
  }
  const trial = state.order[index];
  Object.assign(state, { index, trial, heard: new Set(Object.keys(answerOf(trial))) });
  show("trial");
  tell("");
  $("place").textContent = `${index + 1} of ${state.order.length}`;
  Object.assign($("progress"), { max: state.order.length, value: index });
  $("back").disabled = index === 0;
  $("text").textContent = trial.text;
  $("sounds").replaceChildren(...(isPair ? pairRows(trial.sounds) : trial.sounds.map((one, n) => sliderRow(one, n + 1))));
  for (const [n, button] of $("sounds").querySelectorAll(".play").entries())
    button.classList.toggle("heard", state.heard.has(trial.sounds[n]));
  window.scrollTo(0, 0);
  $("text").focus();
}

// What is left to do in this trial, in words; empty if nothing is.
function missing() {
  const { sounds } = state.trial;
  const listed = (some) => {
    const labels = some.map((sound) => (isPair ? "AB"[sounds.indexOf(sound)] : sounds.indexOf(sound) + 1));
    return `${isPair ? "" : some.length > 1 ? "sounds " : "sound "}${labels.join(isPair ? " and " : ", ")}`;
  };
  const unheard = sounds.filter((sound) => !state.heard.has(sound));
  if (unheard.length) return `Please listen to ${listed(unheard)}.`;
  const unrated = sounds.filter((sound) => !(sound in answerOf(state.trial)));
  if (!unrated.length) return "";
  return isPair ? "Please choose one of the three." : `Please rate ${listed(unrated)}.`;
}

function next() {
  tell(missing());
  if (!$("missing").textContent) showTrial(state.index + 1);
}

function begin(listener) {
  const answers = readStore().answers[listener] ?? {};
  Object.assign(state, { listener, answers, order: orderOf(listener) });
  keep();
  const isOpen = (trial) => trial.sounds.some((sound) => !(sound in answerOf(trial)));
  const first = state.order.findIndex(isOpen);
  showTrial(first < 0 ? state.order.length : first);
}

function save() {
  const { listener, answers } = state;
  const result = { test: test.test, kind: test.kind, listener, saved: new Date().toISOString(), answers };
  const blob = new Blob([`${JSON.stringify(result, null, 1)}\n`], { type: "application/json" });
  const name = listener.replace(/[^\p{L}\p{N}]+/gu, "_");
  const link = make("a", { href: URL.createObjectURL(blob), download: `listening_${test.test}_${name}.json` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

function press(event) {
  if ($("trial").hidden || event.ctrlKey || event.altKey || event.metaKey) return;
  const key = event.key.toLowerCase();
  const buttons = [...$("sounds").querySelectorAll(".play")];
  const number = isPair && (key === "a" || key === "b") ? "ab".indexOf(key) : Number.parseInt(key, 10) - 1;
  const choice = isPair && event.target.type !== "radio" && { arrowleft: 0, arrowdown: 1, arrowright: 2 }[key];
  if (key === "enter" && event.target.tagName !== "BUTTON") next();
  else if (key === "escape") stop();
  else if (key === "r" && !isPair) $("reference").click();
  else if (buttons[number]) {
    buttons[number].click();
    if (!isPair) buttons[number].nextElementSibling.focus();
  } else if (typeof choice === "number") document.querySelectorAll("[name=choice]")[choice].click();
  else return;
  event.preventDefault();
}

document.addEventListener("keydown", press);
$("start").addEventListener("submit", (event) => {
  event.preventDefault();
  const listener = $("listener").value.trim().normalize();
  if (listener) begin(listener);
});
$("trial").addEventListener("submit", (event) => {
  event.preventDefault();
  next();
});
$("reference")?.addEventListener("click", () => play(state.trial.reference, $("reference")));
$("back").addEventListener("click", () => showTrial(state.index - 1));
$("change").addEventListener("click", () => showTrial(0));
$("save").addEventListener("click", save);
$("other").addEventListener("click", () => {
  state.listener = "";
  keep();
  $("listener").value = "";
  show("start");
  $("listener").focus();
});
const { listener } = readStore();
if (listener) begin(listener);
else show("start");
