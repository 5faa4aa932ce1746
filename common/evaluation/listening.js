// A listening test: trials in random order, answers that survive a reload, and a file to save at the end.
"use strict";
const $ = (id) => document.getElementById(id);
const test = JSON.parse($("test").textContent);
const KEY = `listening test ${test.test}`;
const player = new Audio();
let store = { listener: "", listeners: {} }; // each listener's trials in order, with answers
let mine = null; // the current listener's trials
let index = 0;

try {
  store = JSON.parse(localStorage.getItem(KEY)) ?? store;
} catch {} // storage is unavailable, which `keep` reports

function keep() {
  try {
    localStorage.setItem(KEY, JSON.stringify(store));
  } catch {
    $("unkept").hidden = false;
  }
}

function shuffled(items) {
  const keys = items.map((item) => [Math.random(), item]);
  return keys.sort((one, other) => one[0] - other[0]).map(([, item]) => item);
}

function stop() {
  player.pause();
  document.querySelector(".playing")?.classList.remove("playing");
}

// Pressing the button again stops its sound. A sound can be rated once it has been played.
async function play(sound, button, slider) {
  const wasPlaying = button.classList.contains("playing");
  stop();
  if (wasPlaying) return;
  player.src = `data:audio/flac;base64,${test.sounds[sound]}`;
  button.classList.add("playing");
  try {
    await player.play();
    if (slider) slider.disabled = false;
    slider?.focus();
  } catch (error) {
    if (error.name !== "AbortError") $("missing").textContent = `This browser cannot play the sound: ${error.message}`;
  }
}

function show(part) {
  stop();
  for (const id of ["start", "trial", "end"]) $(id).hidden = id !== part;
  $("who").hidden = part === "start";
  $("name").textContent = store.listener;
}

function soundRow(trial, sound, number) {
  const row = $("sound").content.cloneNode(true);
  const [button, slider, output] = ["button", "input", "output"].map((tag) => row.querySelector(tag));
  const score = trial.answers[sound];
  button.textContent = `Sound ${number}`;
  slider.setAttribute("aria-label", `Quality of sound ${number}`);
  slider.value = score ?? 50;
  slider.disabled = score === undefined;
  output.textContent = score ?? "–";
  const rate = () => {
    output.textContent = slider.value;
    trial.answers[sound] = Number(slider.value);
    $("missing").textContent = "";
    keep();
  };
  for (const event of ["input", "pointerup"]) slider.addEventListener(event, rate); // clicking the middle fires no input event
  button.addEventListener("click", () => play(sound, button, slider));
  return row;
}

function showTrial(number) {
  if (number >= mine.length) {
    show("end");
    $("end").querySelector("h2").focus();
    return;
  }
  index = number;
  const trial = mine[index];
  show("trial");
  $("place").textContent = `${index + 1} of ${mine.length}`;
  Object.assign($("progress"), { max: mine.length, value: index });
  $("back").disabled = index === 0;
  $("text").textContent = trial.text;
  $("missing").textContent = "";
  $("sounds").replaceChildren(...trial.sounds.map((sound, n) => soundRow(trial, sound, n + 1)));
  window.scrollTo(0, 0);
  $("text").focus();
}

function next(event) {
  event?.preventDefault();
  const { sounds, answers } = mine[index];
  const missing = sounds.flatMap((sound, n) => (sound in answers ? [] : [n + 1]));
  if (missing.length) $("missing").textContent = `Please play and rate: ${missing.join(", ")}.`;
  else showTrial(index + 1);
}

function begin(listener) {
  store.listener = listener;
  store.listeners[listener] ??= shuffled(test.trials).map((one) => ({ ...one, sounds: shuffled(one.sounds), answers: {} }));
  mine = store.listeners[listener];
  keep();
  const first = mine.findIndex((trial) => trial.sounds.some((sound) => !(sound in trial.answers)));
  showTrial(first < 0 ? mine.length : first);
}

function save() {
  const answers = Object.fromEntries(mine.map((trial) => [trial.name, trial.answers]));
  const result = { test: test.test, listener: store.listener, saved: new Date().toISOString(), answers };
  const name = store.listener.replace(/[^\p{L}\p{N}]+/gu, "_");
  const href = URL.createObjectURL(new Blob([`${JSON.stringify(result, null, 1)}\n`], { type: "application/json" }));
  Object.assign(document.createElement("a"), { href, download: `listening_${test.test}_${name}.json` }).click();
}

document.addEventListener("keydown", (event) => {
  if ($("trial").hidden || event.ctrlKey || event.altKey || event.metaKey) return;
  const button = event.key === "r" ? $("reference") : $("sounds").querySelectorAll("button")[Number(event.key) - 1];
  if (event.key === "Enter" && event.target.tagName !== "BUTTON") next(event);
  else if (event.key === "Escape") stop();
  else button?.click();
});
player.addEventListener("ended", stop);
$("start").addEventListener("submit", (event) => {
  event.preventDefault();
  const listener = $("listener").value.trim().normalize();
  if (listener) begin(listener);
});
$("trial").addEventListener("submit", next);
$("reference")?.addEventListener("click", () => play(mine[index].reference, $("reference")));
$("back").addEventListener("click", () => showTrial(index - 1));
$("change").addEventListener("click", () => showTrial(0));
$("save").addEventListener("click", save);
$("other").addEventListener("click", () => {
  store.listener = $("listener").value = "";
  keep();
  show("start");
});
if (store.listener) begin(store.listener);
else show("start");
