// What the page asks of the server. Addresses are relative, so that it works behind a proxy's path as well.

class ServerError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

const server = { key: "", requests: 0 };

async function ask(path, { body, signal } = {}) {
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
  const text = await response.text();
  let answer = null;
  try {
    answer = JSON.parse(text);
  } catch {
    // A proxy's page, say: the status line is all there is to show.
  }
  if (!response.ok) {
    throw new ServerError(answer?.error?.message ?? `${response.status} ${response.statusText}`, response.status);
  }
  if (answer === null) throw new ServerError("The server's answer is not JSON", response.status);
  return answer;
}

const askVoices = async () => (await ask("v1/voices")).data;

const askSpeech = (fields, signal) => {
  const pitch = $("vocoder-pitch-field").hidden ? {} : { vocoder_pitch: $("vocoder-pitch").value };
  return ask("v1/audio/speech", { body: { ...fields, ...pitch, response_format: "wav", timings: true }, signal });
};
