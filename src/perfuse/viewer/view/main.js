// The viewer's page: waits for the profile, then starts the application.

import { isAbort, Server, takeToken } from "../data/server.js";
import { h } from "../widgets/dom.js";
import { App } from "./app.js";
import { bindKeys } from "./keys.js";
import { Opening } from "./opening.js";
import { VIEWS } from "./views.js";

const main = document.getElementById("view");

/** Shows why there is nothing to see. */
function refuse(title, text) {
  main.replaceChildren(h("section.message", { role: "alert" }, h("h2", {}, title), h("p", {}, text)));
  document.documentElement.dataset.ready = "failed";
}

async function start() {
  const token = takeToken();
  if (!token) return refuse("This address has no token", "Open the address that `perfuse view` printed in the terminal: it contains a secret without which the server answers nothing.");
  const server = new Server(token);
  const opening = new Opening(main, server);
  try {
    const state = await opening.finished();
    if (state.state !== "ready") return refuse(state.state === "cancelled" ? "Opening was cancelled" : "The files could not be opened", [state.error?.message, state.error?.hint].filter(Boolean).join(" "));
    const overview = await server.json("overview");
    opening.remove();
    const app = new App(server, overview, VIEWS);
    bindKeys(app);
    document.documentElement.dataset.ready = "";
    addEventListener("pagehide", () => server.fetch("close", null, { method: "POST", keepalive: true }).catch(() => {}));
    opening.watch(app, state);
  } catch (error) {
    if (!isAbort(error)) refuse("The server does not answer", [error.message, error.hint].filter(Boolean).join(" "));
  }
}

start();
