// The views that a page without a server has.

import { TimelineView } from "../timeline/view.js";
import { CallTreeView } from "../tree/call_tree.js";
import { CallersView } from "../tree/callers.js";
import { FlameView } from "../tree/flame_view.js";
import { FunctionsView } from "../tree/functions.js";
import { FilesView } from "./files.js";
import { OverviewView } from "./overview.js";

export const VIEWS = [
  { id: "overview", label: "Overview", make: (app, host) => new OverviewView(app, host) },
  { id: "timeline", label: "Timeline", available: ({ has }) => has.timeline, make: (app, host) => new TimelineView(app, host) },
  { id: "flame", label: "Flame graph", make: (app, host) => new FlameView(app, host) },
  { id: "tree", label: "Call tree", make: (app, host) => new CallTreeView(app, host) },
  { id: "functions", label: "Functions", make: (app, host) => new FunctionsView(app, host) },
  { id: "callers", label: "Callers", make: (app, host) => new CallersView(app, host) },
  { id: "files", label: "Files", make: (app, host) => new FilesView(app, host) },
];
