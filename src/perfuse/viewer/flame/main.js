// The page of one flame graph: unpacks its data and shows it.

import { readAddress, writeAddress } from "./address.js";
import { FlameApp } from "./app.js";
import { fillKeys } from "./keys.js";
import { mount } from "./markup.js";
import { unpack } from "./profile.js";

mount(document.getElementById("flame"));
const dialog = document.getElementById("keys");
fillKeys(dialog);
const app = new FlameApp(await unpack(document.getElementById("profile").textContent), {
  address: { read: readAddress, write: writeAddress },
  onTotals: (text) => (document.getElementById("totals").textContent = text),
});
addEventListener("hashchange", () => {
  app.readState();
  app.rebuild();
});
document.getElementById("show-keys").addEventListener("click", () => dialog.showModal());
addEventListener("keydown", (event) => {
  if (dialog.open || app.key(event) || event.key !== "?" || event.target.closest("input[type=search], select")) return;
  event.preventDefault();
  dialog.showModal();
});
document.documentElement.dataset.ready = "";
