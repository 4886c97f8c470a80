// Pointer, wheel and touch on the timeline: pan, zoom, select.

import { AXIS } from "./painter.js";

const CLICK = 4;
const ZOOM_PER_STEP = 0.0022;

/**
 * Binds gestures. `target` has `scale`, `zoom(factor, x)`, `pan(pixels)`, `scrollBy(pixels)`, `click(x, y)`,
 * `open(x, y)`, `hover(x, y)`, `leave()`, `selecting(from, to, isBase)` and `selected(from, to, isBase)`.
 *
 * Dragging selects; with Shift it selects what to compare with. Dragging the axis, or with the middle button, pans.
 * The wheel scrolls, with Ctrl it zooms, with Shift or sideways it pans; on the axis it zooms. Two fingers pan and zoom.
 */
export function bindGestures(element, target) {
  const at = (event) => {
    const { left, top } = element.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top];
  };
  const fingers = new Map();
  let drag = null;

  element.addEventListener("wheel", (event) => {
    const [x, y] = at(event);
    const unit = event.deltaMode === 1 ? 18 : 1;
    const [dx, dy] = [event.deltaX * unit, event.deltaY * unit];
    if (event.ctrlKey || event.metaKey || (y < AXIS && dy)) target.zoom(Math.exp(dy * ZOOM_PER_STEP * (event.ctrlKey && !Number.isInteger(dy) ? 4 : 1)), x);
    else if (event.shiftKey) target.pan(dy || dx);
    else {
      if (dx) target.pan(dx);
      if (dy) target.scrollBy(dy);
    }
    event.preventDefault();
  }, { passive: false });

  element.addEventListener("pointerdown", (event) => {
    const [x, y] = at(event);
    fingers.set(event.pointerId, [x, y]);
    element.setPointerCapture(event.pointerId);
    if (fingers.size === 2) return (drag = { kind: "pinch", ...spread(fingers) });
    if (event.button === 2) return;
    const touch = event.pointerType === "touch";
    const kind = event.button === 1 || y < AXIS || touch ? "pan" : "select";
    drag = { kind, x, y, lastX: x, lastY: y, isBase: event.shiftKey, moved: false, touch };
    if (event.button === 1) event.preventDefault();
  });

  element.addEventListener("pointermove", (event) => {
    const [x, y] = at(event);
    if (fingers.has(event.pointerId)) fingers.set(event.pointerId, [x, y]);
    if (!drag) return target.hover(x, y);
    if (drag.kind === "pinch") {
      if (fingers.size < 2) return;
      const now = spread(fingers);
      target.zoom(drag.apart / Math.max(1, now.apart), now.middle);
      target.pan(drag.middle - now.middle);
      return Object.assign(drag, now);
    }
    drag.moved ||= Math.abs(x - drag.x) > CLICK || (drag.kind === "pan" && Math.abs(y - drag.y) > CLICK);
    if (!drag.moved) return;
    if (drag.kind === "pan") {
      target.pan(drag.lastX - x);
      if (drag.touch) target.scrollBy(drag.lastY - y);
    } else target.selecting(...ends(drag.x, x), drag.isBase);
    Object.assign(drag, { lastX: x, lastY: y });
  });

  const end = (event) => {
    fingers.delete(event.pointerId);
    const [x, y] = at(event);
    const done = drag;
    drag = null;
    if (!done || event.type === "pointercancel") return target.selecting(null);
    if (done.kind === "select" && done.moved) target.selected(...ends(done.x, x), done.isBase);
    else if (done.kind !== "pinch" && !done.moved) target.click(x, y);
  };
  element.addEventListener("pointerup", end);
  element.addEventListener("pointercancel", end);
  element.addEventListener("pointerleave", () => drag || target.leave());
  element.addEventListener("dblclick", (event) => target.open(...at(event)));
  element.addEventListener("auxclick", (event) => event.preventDefault());
}

function ends(a, b) {
  return a < b ? [a, b] : [b, a];
}

function spread(fingers) {
  const [a, b] = [...fingers.values()];
  return { apart: Math.hypot(a[0] - b[0], a[1] - b[1]), middle: (a[0] + b[0]) / 2 };
}
