// Requests to the server that serves the page. No other host is ever contacted.

import { readContainer } from "./container.js";

const TOKEN = "perfuse-token";
/** The code of the error that there is no server any more. */
export const ENDED = "ended";
const HEADER = "X-Perfuse-Token";

/** An answer that is an error: its code, message and hint are the server's. */
class ServerError extends Error {
  constructor(status, { code = `http-${status}`, message = `the server answered ${status}`, hint = "" } = {}) {
    super(message);
    Object.assign(this, { status, code, hint });
  }
}

/** Moves the token from the address, where the terminal's link has it, to the session, and returns it. */
export function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1));
  const token = given.get("t");
  if (token) {
    sessionStorage.setItem(TOKEN, token);
    given.delete("t");
    history.replaceState(null, "", `#${given}`);
  }
  return token ?? sessionStorage.getItem(TOKEN);
}

/** The server, as functions that return its answers. */
export class Server {
  constructor(token) {
    this.token = token;
    this.running = new Map();
  }

  /** An answer as JSON. */
  async json(path, parameters, options) {
    return (await this.fetch(path, parameters, options)).json();
  }

  /** An answer as columns. */
  async columns(path, parameters, options) {
    return readContainer(await (await this.fetch(path, parameters, options)).arrayBuffer());
  }

  /** An answer as bytes. */
  async bytes(path, parameters, options) {
    return (await this.fetch(path, parameters, options)).arrayBuffer();
  }

  /** Sends an object and returns the answer as JSON. */
  async post(path, content, options = {}) {
    const headers = { "Content-Type": "application/json" };
    return (await this.fetch(path, null, { ...options, method: "POST", headers, body: JSON.stringify(content) })).json();
  }

  /**
   * Sends a request. A request with a `latest` name cancels the one before it of the same name; those that were
   * cancelled reject with an AbortError, which callers ignore with `ignoreAbort`.
   */
  async fetch(path, parameters, { latest, headers = {}, ...options } = {}) {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(parameters ?? {})) if (value !== null && value !== undefined && value !== "") query.set(name, value);
    const url = `/api/${path}${query.size ? `?${query}` : ""}`;
    let { signal } = options;
    if (latest) {
      this.running.get(latest)?.abort();
      const controller = new AbortController();
      this.running.set(latest, controller);
      ({ signal } = controller);
    }
    let answer;
    try {
      answer = await fetch(url, { ...options, signal, headers: { ...headers, [HEADER]: this.token ?? "" }, cache: "no-store" });
    } catch (failure) {
      if (isAbort(failure)) throw failure;
      throw new ServerError(0, { code: ENDED, message: "The server does not answer: it has ended.", hint: "Start `perfuse view` again." });
    }
    if (answer.ok) return answer;
    let error;
    try {
      ({ error } = await answer.json());
    } catch {
      // The answer is not ours: its status is all there is.
    }
    throw new ServerError(answer.status, error);
  }
}

/** Whether an error only states that a newer request replaced this one. */
export function isAbort(error) {
  return error?.name === "AbortError";
}
