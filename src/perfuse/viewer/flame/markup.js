// The elements of the flame graph, which its own page and the viewer both put into theirs.

const MARKUP = `
<nav id="toolbar" aria-label="View">
  <div class="group" role="group" aria-label="Direction">
    <button data-view="flame" title="From callers down to what they call">Callees</button>
    <button data-view="inverted" title="From the functions that ran down to their callers (i)">Inverted</button>
    <button data-view="sandwich" title="Callers and callees of one function, wherever it occurs (s)">Sandwich</button>
  </div>
  <label id="thread-label">Thread <select id="thread"></select></label>
  <div class="group" id="widths" role="group" aria-label="Widths">
    <button data-metric="weight" id="by-weight">Time</button>
    <button data-metric="samples">Samples</button>
  </div>
  <label><input type="checkbox" id="merge-tiers"> merge tiers</label>
  <label title="A function that calls itself is one box"><input type="checkbox" id="merge-recursion"> merge recursion</label>
  <span id="search-box">
    <input id="search" type="search" placeholder="Search, regex ( / )" aria-label="Search functions by name or regular expression" spellcheck="false" autocomplete="off">
    <output id="matched" for="search" aria-live="polite"></output>
  </span>
  <button id="toggle-table" aria-controls="functions" title="Show or hide the table (t)">Table</button>
  <button id="show-keys" title="Keys (?)" aria-label="Keyboard shortcuts">?</button>
</nav>
<div id="legend" role="group" aria-label="Origin of code: highlight one"></div>
<div id="panes">
  <section id="graphs">
    <nav id="crumbs" aria-label="Zoomed into"></nav>
    <div id="callers" class="pane" tabindex="-1" role="img" aria-label="Callers" hidden><canvas></canvas><div class="spacer"></div></div>
    <div id="graph" class="pane" tabindex="0" role="application" aria-label="Flame graph" aria-roledescription="flame graph" aria-describedby="selected"><canvas></canvas><div class="spacer"></div></div>
    <footer id="detail">
      <span id="selected" aria-live="polite"></span>
      <button id="copy" title="Copy the name (c)" hidden>Copy name</button>
      <button id="focus" title="Callers and callees (s)" hidden>Callers &amp; callees</button>
    </footer>
  </section>
  <div id="divider" role="separator" aria-orientation="vertical" aria-label="Width of the table" tabindex="0"></div>
  <aside id="functions" aria-label="Functions">
    <table aria-label="Functions by time">
      <thead><tr>
        <th data-order="self" class="number"><button title="Sort by what ran in the function itself">Self</button></th>
        <th data-order="total" class="number"><button title="Sort by what ran in it or below it">Total</button></th>
        <th>Function</th>
      </tr></thead>
      <tbody></tbody>
    </table>
    <p class="more"></p>
  </aside>
</div>
<div id="tooltip" role="tooltip" hidden></div>
`;

/** Fills an element with the controls, panes and table of a flame graph. */
export function mount(host) {
  host.innerHTML = MARKUP;
}
