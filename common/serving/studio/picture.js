// The picture: mel-spectrogram, words, phones, pitch curve and handles of each utterance on one axis of time.
//
// Places are in frames and the style sheet multiplies them by --frame, pixels a frame: zooming changes one number.

const FRAME_LIMITS = [0.5, 24]; // px a frame
const DECADES = 8; // of the natural logarithm from the loudest to the quietest color: 70 dB
const AXIS_MARKS = [40, 50, 60, 80, 100, 125, 150, 200, 250, 300, 400, 500, 600, 800, 1000]; // Hz
const RULER_STEPS = [0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30]; // s

const $ = (id) => document.getElementById(id);

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

const place = (element, values) => {
  for (const [name, value] of Object.entries(values)) element.style.setProperty(`--${name}`, value);
};

const nameOf = (symbol) => (symbol.trim() === "" ? "space" : symbol.replace(/^@/, ""));

// "HH in Hello", or where a pause or a comma stands.
function describe(utterance, { w, word, symbol }) {
  const name = nameOf(symbol.symbol);
  if (word.text) return `${name} in ${word.text}`;
  const before = utterance.words.slice(0, w).findLast((one) => one.text);
  const after = utterance.words.slice(w).find((one) => one.text);
  return before ? `${name} after ${before.text}` : after ? `${name} before ${after.text}` : name;
}

// 256 colors from quiet to loud, of the page's own.
function melColors() {
  const context = make("canvas", { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
  const style = getComputedStyle(document.documentElement);
  const stops = ["--mel-quiet", "--mel-middle", "--mel-loud"].map((name) => {
    context.fillStyle = style.getPropertyValue(name);
    context.fillRect(0, 0, 1, 1);
    return context.getImageData(0, 0, 1, 1).data;
  });
  return Uint32Array.from({ length: 256 }, (_, level) => {
    const [from, to, part] = level < 128 ? [stops[0], stops[1], level / 128] : [stops[1], stops[2], (level - 128) / 127];
    const [red, green, blue] = [0, 1, 2].map((i) => Math.round(from[i] + (to[i] - from[i]) * part));
    return (255 << 24) | (blue << 16) | (green << 8) | red;
  });
}

function drawMel(clip, colors, loudest) {
  const canvas = make("canvas", { width: Math.max(1, clip.frames), height: clip.n_mels });
  const image = new ImageData(canvas.width, canvas.height);
  const pixels = new Uint32Array(image.data.buffer);
  const [floor, step] = [loudest - DECADES, (clip.high - clip.low) / 255];
  const levels = Uint32Array.from({ length: 256 }, (_, value) => {
    return colors[Math.round(clamp((clip.low + value * step - floor) / DECADES, 0, 1) * 255)];
  });
  for (let row = 0; row < clip.n_mels; row++) {
    const target = (clip.n_mels - 1 - row) * clip.frames; // low frequencies below
    for (let x = 0; x < clip.frames; x++) pixels[target + x] = levels[clip.mel[row * clip.frames + x]];
  }
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

// One utterance's part of the picture; made once for all versions of it.
class UtteranceView {
  constructor(u, utterance) {
    this.words = make("div", { role: "listbox", class: "words-lane", "aria-label": `Words of sentence ${u + 1}`, "aria-orientation": "horizontal" });
    this.phones = make("div", { role: "listbox", class: "phones-lane", "aria-label": `Phones of sentence ${u + 1}`, "aria-orientation": "horizontal" });
    this.canvas = make("canvas", { "aria-hidden": "true" });
    this.curve = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    this.curve.setAttribute("aria-hidden", "true");
    this.curve.setAttribute("preserveAspectRatio", "none");
    for (const name of ["first", "halo", "pitch"]) {
      const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
      path.setAttribute("class", name);
      this.curve.append(path);
    }
    this.mel = make("div", { class: "mel" }, this.canvas, this.curve, make("span", { class: "note", "aria-hidden": "true" }, "not spoken yet"));
    this.borders = make("div", { class: "borders-lane" });
    this.element = make("div", { class: "utterance" }, this.words, this.phones, this.mel, this.borders);
    const [option, handle] = [{ role: "option", tabindex: "-1", "data-u": u }, { role: "slider", tabindex: "-1", "data-u": u }];
    this.wordOptions = utterance.words.map((word, w) => {
      if (word.text === "") return null;
      const made = make("div", { ...option, class: "word", "data-kind": "word", "data-w": w, title: word.text }, word.text);
      this.words.append(made);
      return made;
    });
    this.parts = placesOf(utterance).map((one, i) => {
      const at = { "data-i": i };
      const name = describe(utterance, one);
      const phone = make("div", { ...option, ...at, class: "phone", "data-kind": "phone", "aria-label": name }, nameOf(one.symbol.symbol));
      phone.classList.toggle("outside", one.word.text === "");
      phone.classList.toggle("long", phone.textContent.length > 1 && /^[A-Z]/.test(phone.textContent));
      if (nameOf(one.symbol.symbol) === "space") phone.textContent = "";
      const pitch = make("div", { ...handle, ...at, class: "handle pitch", "data-kind": "pitch", "aria-orientation": "vertical", "aria-label": `pitch of ${name}` });
      pitch.classList.toggle("outside", one.word.text === "");
      const border = make("div", { ...handle, ...at, class: "handle border", "data-kind": "border", "aria-label": `end of ${name}` });
      this.phones.append(phone);
      this.mel.append(pitch);
      this.borders.append(border);
      return { phone, pitch, border };
    });
    this.pause = make("div", { ...handle, class: "handle pause", "data-kind": "pause", "aria-label": `pause after sentence ${u + 1}` });
    this.silence = make("div", { class: "silence", "aria-hidden": "true" });
    this.element.append(this.silence, this.pause);
  }

  update({ table, base, u, start, axis, shaped, isLast }) {
    const utterance = table.utterances[u];
    const places = placesOf(utterance);
    const frames = framesOf(utterance);
    const silence = pauseFrames(table, utterance);
    place(this.element, { at: start, for: frames });
    this.element.classList.toggle("unshaped", !shaped);
    const lasts = places.findLastIndex((one) => one.symbol.frames > 0);
    places.forEach((one, i) => this.updatePart(this.parts[i], one, { axis, isEnd: i === lasts, table, next: nextSpoken(places, i) }));
    this.wordOptions.forEach((option, w) => {
      const own = option && places.filter((one) => one.w === w);
      if (own?.length) place(option, { at: own[0].start, for: own.at(-1).end - own[0].start });
    });
    place(this.silence, { at: frames, for: silence });
    this.silence.textContent = silence > 0 ? `${round(utterance.pause, 2)} s` : "";
    this.pause.hidden = isLast || !shaped;
    place(this.pause, { at: frames + silence });
    setRange(this.pause, { now: utterance.pause, low: 0, high: MOST_PAUSE, text: `${round(utterance.pause, 2)} s` });
    this.curve.setAttribute("viewBox", `0 0 ${Math.max(1, frames)} 100`);
    const [first, ...drawn] = this.curve.children;
    first.setAttribute("d", shaped ? curveOf(stretchedPitch(places, placesOf(base.utterances[u])), axis) : "");
    for (const path of drawn) path.setAttribute("d", shaped ? curveOf(places.map((one) => [one, one.symbol.pitch]), axis) : "");
  }

  updatePart({ phone, pitch, border }, { symbol, start, end }, { axis, isEnd, table, next }) {
    const seconds = (frames) => `${Math.round(1000 * secondsOf(table, frames))} ms`;
    for (const element of [phone, pitch, border]) element.hidden = symbol.frames === 0;
    place(phone, { at: start, for: symbol.frames });
    place(pitch, { at: (start + end) / 2, top: `${heightOf(symbol.pitch, axis)}%` });
    place(border, { at: end });
    if (!(symbol.pitch > 0)) pitch.hidden = true;
    setRange(pitch, { now: symbol.pitch, low: PITCH_LIMITS[0], high: PITCH_LIMITS[1], text: `${Math.round(symbol.pitch)} Hz` });
    const most = isEnd ? MOST_FRAMES : symbol.frames + (next?.symbol.frames ?? 1) - 1;
    const text = `${symbol.frames} frame${symbol.frames === 1 ? "" : "s"}, ${seconds(symbol.frames)}`;
    setRange(border, { now: symbol.frames, low: 1, high: most, text });
  }

  // `spoken` is of the clip; where the version differs from it, each phone's mel is stretched to its new length.
  paint({ clip, spoken, image }, utterance) {
    const [old, now] = [placesOf(spoken), placesOf(utterance)];
    this.canvas.width = Math.max(1, framesOf(utterance));
    this.canvas.height = clip.n_mels;
    const context = this.canvas.getContext("2d");
    now.forEach(({ start, symbol }, i) => {
      if (symbol.frames === 0 || old[i].symbol.frames === 0) return;
      context.drawImage(image, old[i].start, 0, old[i].symbol.frames, clip.n_mels, start, 0, symbol.frames, clip.n_mels);
    });
  }
}

const nextSpoken = (places, i) => places.slice(i + 1).find((one) => one.symbol.frames > 0);

function setRange(element, { now, low, high, text }) {
  element.setAttribute("aria-valuenow", round(now, 2));
  element.setAttribute("aria-valuemin", Math.min(low, now));
  element.setAttribute("aria-valuemax", Math.max(high, now));
  element.setAttribute("aria-valuetext", text);
}

// Percent from the top, on a scale of tones.
const heightOf = (pitch, [low, high]) =>
  pitch > 0 ? clamp(100 * (1 - Math.log(pitch / low) / Math.log(high / low)), 0, 100) : 100;

// The first version's pitch at the places of this one.
const stretchedPitch = (places, first) => places.map((one, i) => [one, first[i].symbol.pitch]);

// A smooth line through the middle of each voiced phone.
function curveOf(pitched, axis) {
  let [path, last] = ["", null];
  for (const [{ start, end, symbol }, pitch] of pitched) {
    if (symbol.frames === 0) continue;
    if (!(pitch > 0)) {
      if (last) path += `H${last.end}`;
      last = null;
      continue;
    }
    const [x, y] = [(start + end) / 2, round(heightOf(pitch, axis), 2)];
    const middle = last && (last.x + x) / 2;
    path += last ? `C${middle} ${last.y} ${middle} ${y} ${x} ${y}` : `M${start} ${y}H${x}`;
    last = { x, y, end };
  }
  return last ? `${path}H${last.end}` : path;
}

class Picture {
  constructor({ onSeek }) {
    this.scroller = $("picture");
    this.strip = $("strip");
    this.views = [];
    this.shown = []; // of each utterance: the clip and image that are drawn
    this.frame = 4; // px
    this.scroller.addEventListener("scroll", () => this.refresh(), { passive: true });
    new ResizeObserver(() => this.refresh()).observe(this.scroller);
    this.strip.addEventListener("click", (event) => {
      if (!event.target.closest(".handle, [role=option]")) onSeek(this.frameAt(event.clientX));
    });
    this.recolor();
  }

  frameAt(x) {
    return (x - this.strip.getBoundingClientRect().left) / this.frame;
  }

  // version: {table, base, shaped}; clips: of each utterance its clip or null; loudest: of the first version's mels.
  show(version, clips, loudest) {
    if (this.version?.base !== version.base) {
      this.strip.querySelectorAll(".utterance").forEach((element) => element.remove());
      [this.views, this.shown] = [[], []];
      this.axis = null;
      this.scroller.scrollLeft = 0;
    }
    const isNew = this.axis === null || this.axis === undefined;
    [this.version, this.clips, this.loudest] = [version, clips, loudest];
    if (!this.isDragging) this.fitAxis();
    if (isNew) this.fit();
    this.refresh(true);
  }

  fitAxis() {
    const { table, base } = this.version;
    const pitches = [table, base].flatMap((one) => symbolsIn(one, {})).flatMap(({ pitch, frames }) => (pitch > 0 && frames > 0 ? [pitch] : []));
    $("axis").hidden = pitches.length === 0;
    if (pitches.length === 0) pitches.push(100, 200);
    const needed = [pitches.reduce((a, b) => Math.min(a, b)) / 1.19, pitches.reduce((a, b) => Math.max(a, b)) * 1.19];
    const middle = Math.sqrt(needed[0] * needed[1]);
    this.axis = [Math.max(PITCH_LIMITS[0], Math.min(needed[0], middle / 1.5)), Math.min(PITCH_LIMITS[1], Math.max(needed[1], middle * 1.5))];
    const marks = AXIS_MARKS.filter((hertz) => hertz > this.axis[0] * 1.05 && hertz < this.axis[1] / 1.05);
    $("axis").replaceChildren(...marks.map((hertz) => {
      const mark = make("span", {}, String(hertz));
      place(mark, { top: `${heightOf(hertz, this.axis)}%` });
      return mark;
    }));
  }

  // As wide as there is room, where that leaves the phones wide enough to be gripped.
  fit() {
    const frames = timelineOf(this.version.table).frames;
    this.setFrame(clamp((this.scroller.clientWidth - 24) / Math.max(1, frames), 2.8, 10));
  }

  zoom(factor) {
    const middle = this.frameAt(this.scroller.getBoundingClientRect().left + this.scroller.clientWidth / 2);
    this.setFrame(this.frame * factor);
    this.scroller.scrollLeft = middle * this.frame - this.scroller.clientWidth / 2;
    this.refresh();
  }

  setFrame(pixels) {
    this.frame = clamp(pixels, ...FRAME_LIMITS);
    place(this.scroller, { frame: `${this.frame}px` });
  }

  // Draws what is to be seen, and a screen on both sides; `all` again what is there already.
  refresh(all = false) {
    if (!this.version) return;
    const { table, base } = this.version;
    const { starts, frames } = timelineOf(table);
    place(this.strip, { for: frames });
    const width = this.scroller.clientWidth / this.frame;
    const from = this.scroller.scrollLeft / this.frame - width;
    for (const u of table.utterances.keys()) {
      const end = starts[u + 1] ?? frames;
      const isNear = end >= from && starts[u] <= from + 3 * width;
      if (this.views[u] ? all : isNear) this.draw(u);
    }
    this.drawRuler(from, from + 3 * width);
    this.scroller.dispatchEvent(new CustomEvent("drawn"));
  }

  draw(u) {
    const { table, base, shaped } = this.version;
    const utterance = table.utterances[u];
    if (!this.views[u]) {
      this.views[u] = new UtteranceView(u, base.utterances[u]);
      const following = this.views.slice(u + 1).find(Boolean);
      this.strip.insertBefore(this.views[u].element, following ? following.element : null);
    }
    const { starts } = timelineOf(table);
    const isLast = u === table.utterances.length - 1;
    const seen = [utterance, starts[u], isLast, this.clips[u], this.colors, ...this.axis];
    if (seen.every((value, index) => value === this.views[u].seen?.[index])) return this.views[u];
    this.views[u].seen = seen;
    this.views[u].update({ table, base, u, start: starts[u], axis: this.axis, shaped, isLast });
    const clip = this.clips[u];
    if (clip && this.shown[u]?.clip !== clip) {
      this.shown[u] = { clip, spoken: utterance, image: drawMel(clip, this.colors, this.loudest) };
    }
    this.views[u].element.classList.toggle("changed", !clip);
    if (this.shown[u]) this.views[u].paint(this.shown[u], utterance);
    return this.views[u];
  }

  viewOf(u) {
    return this.views[u] ?? this.draw(u);
  }

  recolor() {
    this.colors = melColors();
    for (const shown of this.shown) if (shown) shown.image = drawMel(shown.clip, this.colors, this.loudest);
    this.refresh(true);
  }

  drawRuler(from, until) {
    const { table } = this.version;
    const perSecond = (table.sampling_rate / table.hop_length) * this.frame; // px
    const step = RULER_STEPS.find((seconds) => seconds * perSecond >= 56) ?? 60;
    const first = Math.max(0, Math.floor(secondsOf(table, from) / step));
    const last = Math.floor(secondsOf(table, Math.min(until, timelineOf(table).frames)) / step);
    const marks = [];
    for (let index = first; index <= last; index++) {
      const mark = make("span", {}, `${round(index * step, 2)} s`);
      place(mark, { at: (index * step * table.sampling_rate) / table.hop_length });
      marks.push(mark);
    }
    $("ruler").replaceChildren(...marks);
  }

  // Puts the cursor at a frame, and with `follow` keeps it in view.
  point(frame, follow) {
    place($("cursor"), { at: frame });
    const [x, left, width] = [frame * this.frame, this.scroller.scrollLeft, this.scroller.clientWidth];
    if (follow && (x < left || x > left + width - 24)) this.scroller.scrollLeft = x - 24;
  }

  select(scope) {
    for (const option of this.strip.querySelectorAll("[aria-selected=true]")) option.setAttribute("aria-selected", "false");
    if (scope.w === undefined) return;
    const view = this.viewOf(scope.u);
    view.wordOptions[scope.w]?.setAttribute("aria-selected", "true");
    placesOf(this.version.base.utterances[scope.u]).forEach(({ w, s }, i) => {
      if (isWithin(scope, scope.u, w, s)) view.parts[i].phone.setAttribute("aria-selected", "true");
    });
  }
}
