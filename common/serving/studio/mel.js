// A mel-spectrogram as an image in the page's own colors.

import { make } from "./dom.js";
import { clamp } from "./table.js";

const DECADES = 8; // difference of the natural logarithm between the loudest and the quietest color: 70 dB

// Returns 256 colors from quiet to loud, blended from the page's own.
export function melColors() {
  const context = make("canvas", { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
  const style = getComputedStyle(document.documentElement);
  const stops = ["--mel-quiet", "--mel-middle", "--mel-loud"].map((name) => {
    context.fillStyle = style.getPropertyValue(name);
    context.fillRect(0, 0, 1, 1);
    return context.getImageData(0, 0, 1, 1).data;
  });
  return Uint32Array.from({ length: 256 }, (_, level) => {
    const [from, to, part] =
      level < 128 ? [stops[0], stops[1], level / 128] : [stops[1], stops[2], (level - 128) / 127];
    const [red, green, blue] = [0, 1, 2].map((i) => Math.round(from[i] + (to[i] - from[i]) * part));
    return (255 << 24) | (blue << 16) | (green << 8) | red;
  });
}

export function drawMel(clip, colors, loudest) {
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
