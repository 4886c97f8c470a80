// The views of the page, in the order of their tabs. `make(app, host)` makes one when it is first shown.

import { CodeView } from "../source/code_view.js";
import { HeapView } from "../heap/view.js";
import { HeatView } from "../heat/view.js";
import { TimelineView } from "../timeline/view.js";
import { CallTreeView } from "../tree/call_tree.js";
import { AnnotateView, hasCode } from "../annotate/view.js";
import { CallersView } from "../tree/callers.js";
import { FlameView } from "../tree/flame_view.js";
import { FunctionsView } from "../tree/functions.js";
import { SlowestView } from "../tree/slowest.js";
import { FilesView } from "./files.js";
import { OverviewView } from "./overview.js";
import { SqlView } from "./sql.js";

const hasStacks = ({ has }) => has.samples || has.calls || has.allocations;

export const VIEWS = [
  { id: "overview", label: "Overview", filtered: true, make: (app, host) => new OverviewView(app, host) },
  { id: "timeline", label: "Timeline", available: ({ has }) => has.timeline, make: (app, host) => new TimelineView(app, host) },
  { id: "heat", label: "Heat map", filtered: true, available: ({ has, span_ns }) => (has.samples || has.calls) && span_ns > 0, make: (app, host) => new HeatView(app, host) },
  { id: "flame", label: "Flame graph", filtered: true, available: hasStacks, make: (app, host) => new FlameView(app, host) },
  { id: "tree", label: "Call tree", filtered: true, available: hasStacks, make: (app, host) => new CallTreeView(app, host) },
  { id: "functions", label: "Functions", filtered: true, available: hasStacks, make: (app, host) => new FunctionsView(app, host) },
  { id: "callers", label: "Callers", filtered: true, available: hasStacks, make: (app, host) => new CallersView(app, host) },
  { id: "annotate", label: "Annotate", available: hasCode, make: (app, host) => new AnnotateView(app, host) },
  { id: "calls", label: "Slowest calls", available: ({ has }) => has.calls && has.timeline, make: (app, host) => new SlowestView(app, host) },
  { id: "heap", label: "Heap", available: ({ has }) => has.heap, make: (app, host) => new HeapView(app, host) },
  { id: "code", label: "Code", available: ({ has }) => has.code, make: (app, host) => new CodeView(app, host) },
  { id: "files", label: "Files", make: (app, host) => new FilesView(app, host) },
  { id: "sql", label: "SQL", make: (app, host) => new SqlView(app, host) },
];
