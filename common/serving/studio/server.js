// The page's requests to the server. Addresses are relative, so they also work under a proxy's path.


class ServerError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

export const server = { key: "", requests: 0 };

async function open(path, { body, signal } = {}) {
  const headers = body ? { "Content-Type": "application/json" } : {};
  if (server.key) headers.Authorization = `Bearer ${server.key}`;
  let response;
  try {
    response = await fetch(path, {
      method: body ? "POST" : "GET",
      headers,
      body: body && JSON.stringify(body),
      signal,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError("The server does not answer; is it still running?", 0);
  }
  if (response.ok) return response;
  let answer = null;
  try {
    answer = await response.json();
  } catch {
    // A proxy's page, for example; show only the status line.
  }
  throw new ServerError(answer?.error?.message ?? `${response.status} ${response.statusText}`, response.status);
}

async function ask(path) {
  const response = await open(path);
  try {
    return await response.json();
  } catch {
    throw new ServerError("The server's answer is not JSON", response.status);
  }
}

// Yields the objects of server-sent events as they arrive.
async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let [text, isOver] = ["", false];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      isOver = done;
      if (done) return;
      const lines = (text + value).split("\n");
      text = lines.pop();
      for (const line of lines) if (line.startsWith("data: ")) yield JSON.parse(line.slice(6));
    }
  } finally {
    if (!isOver) reader.cancel().catch(() => {}); // the rest isn't needed
  }
}

export const askVoices = async () => (await ask("v1/voices")).data;

// Returns what will be said for a text: {utterances: [{words, phones}], warning}.
export const askReading = async (fields) => (await open("v1/audio/speech", { body: { ...fields, show: true } })).json();

// Returns the file that the server makes from a text or a table.
export const askFile = async (fields, signal) =>
  (await open("v1/audio/speech", { body: fields, signal })).blob();

// Speaks a text or a table, and yields each utterance as it is made, with its sound, mel, words and prosody.
export async function* askSpeech(fields, signal) {
  const form = { response_format: "wav", timings: true, stream_format: "sse" };
  const response = await open("v1/audio/speech", { body: { ...fields, ...form }, signal });
  let isWhole = false;
  for await (const event of eventsOf(response)) {
    if (event.type === "error") throw new ServerError(event.error.message, 500);
    if (event.type === "speech.done") isWhole = true;
    else yield event;
  }
  if (!isWhole) throw new ServerError("The server ended its answer too early", 0);
}
