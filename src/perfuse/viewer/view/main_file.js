// The page of one file: its data is in it, so there is nothing to wait for and nobody to ask.

import { Embedded } from "../data/embedded.js";
import { App } from "./app.js";
import { bindKeys } from "./keys.js";
import { VIEWS } from "./views_file.js";

async function unpacked(id) {
  const binary = atob(document.getElementById(id).textContent.trim());
  const bytes = Uint8Array.from(binary, (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

async function start() {
  const [tree, answers, slices, steps] = await Promise.all(["profile", "answers", "slices", "steps"].map(unpacked));
  const server = new Embedded(tree, JSON.parse(new TextDecoder().decode(answers)), slices, steps);
  const { state } = document.body.dataset;
  if (state && location.hash.length < 2) location.hash = state;
  const app = new App(server, await server.json("overview"), VIEWS);
  bindKeys(app);
  document.documentElement.dataset.ready = "";
}

start();
