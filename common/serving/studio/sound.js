// Cuts the server's sound and mels into utterances, joins them again, and plays them.

import { fail } from "./messages.js";
import { clamp, framesOf, timelineOf } from "./table.js";

function bytesOf(base64) {
  const characters = atob(base64);
  const bytes = new Uint8Array(characters.length);
  for (let index = 0; index < bytes.length; index++) bytes[index] = characters.charCodeAt(index);
  return bytes;
}

// Returns the samples of a wav file with one channel of 16-bit integers or 32-bit floats.
function readWav(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const name = (offset) => String.fromCharCode(...bytes.subarray(offset, offset + 4));
  let format = null;
  for (let offset = 12; offset + 8 <= bytes.length;) {
    const size = Math.min(view.getUint32(offset + 4, true), bytes.length - offset - 8);
    if (name(offset) === "fmt ")
      format = { code: view.getUint16(offset + 8, true), bits: view.getUint16(offset + 22, true) };
    if (name(offset) === "data") {
      const data = bytes.slice(offset + 8, offset + 8 + size);
      if (format?.bits === 32) return new Float32Array(data.buffer, 0, size >> 2);
      return Float32Array.from(new Int16Array(data.buffer, 0, size >> 1), (value) => value / 32768);
    }
    offset += 8 + size + (size % 2);
  }
  throw new Error("the server's sound isn't a wav file");
}

export function writeWav(samples, rate) {
  const view = new DataView(new ArrayBuffer(44 + 2 * samples.length));
  const text = (offset, value) => [...value].forEach((letter, i) => view.setUint8(offset + i, letter.charCodeAt(0)));
  text(0, "RIFF");
  view.setUint32(4, 36 + 2 * samples.length, true);
  text(8, "WAVEfmt ");
  [
    [16, 16, 4],
    [20, 1, 2],
    [22, 1, 2],
    [24, rate, 4],
    [28, 2 * rate, 4],
    [32, 2, 2],
    [34, 16, 2],
  ].forEach(([offset, value, size]) =>
    size === 4 ? view.setUint32(offset, value, true) : view.setUint16(offset, value, true),
  );
  text(36, "data");
  view.setUint32(40, 2 * samples.length, true);
  samples.forEach((value, i) => view.setInt16(44 + 2 * i, clamp(Math.round(value * 32768), -32768, 32767), true));
  return new Blob([view.buffer], { type: "audio/wav" });
}

// A clip is the sound and mel of one utterance, without the pause after it: {samples, mel, frames, n_mels, low, high}.
export function cutAnswer(answer, table) {
  const samples = readWav(bytesOf(answer.audio));
  const { n_mels, frames: total, data, min: low, max: high } = answer.mel;
  const mel = bytesOf(data);
  const { starts, frames: expected } = timelineOf(table);
  if (total !== expected) throw new Error(`the server spoke ${total} frames, the prosody table has ${expected}`);
  return table.utterances.map((utterance, u) => {
    const [start, frames] = [starts[u], framesOf(utterance)];
    const part = new Uint8Array(n_mels * frames);
    for (let row = 0; row < n_mels; row++) {
      part.set(mel.subarray(row * total + start, row * total + start + frames), row * frames);
    }
    const hop = table.hop_length;
    return { samples: samples.slice(start * hop, (start + frames) * hop), mel: part, frames, n_mels, low, high };
  });
}

// Returns the sound of a whole table; null if a clip is missing.
export function joinClips(table, clips) {
  const { starts, frames } = timelineOf(table);
  const samples = new Float32Array(frames * table.hop_length);
  for (const [u, clip] of clips.entries()) {
    if (!clip) return null;
    samples.set(clip.samples, starts[u] * table.hop_length);
  }
  return samples;
}

// Returns consecutive pieces of sound, one for each utterance with the silence around it, up to the first missing clip:
// [{start: s, samples}].
export function piecesToPlay(table, clips) {
  const { starts, frames } = timelineOf(table);
  const rate = table.sampling_rate;
  const missing = clips.findIndex((clip) => !clip);
  return clips.slice(0, missing < 0 ? clips.length : missing).map(({ samples: own }, u) => {
    const [from, until] = [u === 0 ? 0 : starts[u], starts[u + 1] ?? frames].map((frame) => frame * table.hop_length);
    const samples = new Float32Array(until - from);
    samples.set(own, starts[u] * table.hop_length - from);
    return { start: from / rate, samples };
  });
}

// Plays one sound at a time; `source` is the table or take that it belongs to. A sound may grow while it plays.
export class Player {
  constructor(onChange, onEnd) {
    Object.assign(this, { onChange, onEnd });
    this.source = null;
    this.offset = 0; // s
    this.started = null; // the context's time; null: paused
    this.isGrowing = false;
    this.pieces = [];
    this.nodes = [];
  }

  // Must be called from a click or a key press; until then, browsers don't let a page play sound.
  wake() {
    try {
      this.context ??= new AudioContext();
      this.context.resume().catch(() => {}); // if refused, the next press tries again
    } catch (error) {
      fail(`This browser cannot play sound: ${error.message}`);
    }
  }

  get isPlaying() {
    return this.started !== null;
  }

  get position() {
    if (!this.isPlaying) return this.offset;
    return Math.min(this.duration, this.offset + Math.max(0, this.context.currentTime - this.started));
  }

  load(source, pieces, rate, position) {
    const wasPlaying = this.isPlaying;
    this.pause();
    Object.assign(this, { source, pieces, rate, until: Infinity, isGrowing: false });
    this.offset = clamp(position, 0, this.duration);
    if (wasPlaying) this.play();
  }

  get duration() {
    const last = this.pieces.at(-1);
    return last ? last.start + last.samples.length / this.rate : 0;
  }

  // Appends to the loaded sound; if playback was waiting for more, it continues.
  extend(source, pieces) {
    const [before, end] = [this.pieces.length, this.duration];
    const isWaiting = this.isPlaying && this.position >= end;
    Object.assign(this, { source, pieces });
    if (!this.isPlaying) return;
    if (isWaiting) {
      this.offset = end;
      this.started = this.context.currentTime;
    }
    for (const piece of pieces.slice(before)) this.schedule(piece);
  }

  // Marks the sound as complete.
  finish() {
    this.isGrowing = false;
    if (this.isPlaying && this.position >= this.duration) this.end();
  }

  play(until = Infinity) {
    this.pause();
    this.wake();
    if (this.duration === 0 || !this.context) return;
    if (this.offset >= this.duration - 0.005) this.offset = 0;
    this.until = until;
    this.started = this.context.currentTime;
    for (const piece of this.pieces) this.schedule(piece);
    this.onChange();
  }

  schedule({ start, samples }) {
    const from = Math.max(0, this.offset - start);
    const length = Math.min(samples.length / this.rate, Math.max(0.02, this.until - start)) - from;
    if (length <= 0 || start >= this.until) return;
    const buffer = this.context.createBuffer(1, samples.length, this.rate);
    buffer.copyToChannel(samples, 0);
    const node = this.context.createBufferSource();
    node.buffer = buffer;
    node.connect(this.context.destination);
    node.addEventListener("ended", () => {
      if (node === this.nodes.at(-1) && !(this.isGrowing && this.until === Infinity)) this.end();
    });
    node.start(this.started + Math.max(0, start - this.offset), from, length);
    this.nodes.push(node);
  }

  end() {
    const isWhole = this.until === Infinity;
    this.pause();
    if (isWhole) this.offset = 0;
    this.onChange();
    this.onEnd();
  }

  pause() {
    if (!this.isPlaying) return;
    this.offset = this.position;
    this.started = null;
    const nodes = this.nodes.splice(0);
    for (const node of nodes) node.stop();
    this.onChange();
  }

  seek(seconds) {
    const wasPlaying = this.isPlaying;
    this.pause();
    this.offset = clamp(seconds, 0, this.duration);
    if (wasPlaying) this.play();
    this.onChange();
  }
}
