// The grid: a row a candidate, a column a verifier, a button a verdict.

const ROWS = 50;
const grid = { page: 0, at: [0, 0], changed() {} };

function pages() { return Math.max(1, Math.ceil(model.candidates.length / ROWS)); }

// field is a text input whose change is one step that can be undone.
function field(label, v, set) {
  return h("input", { type: "text", "aria-label": label, maxlength: "256", autocomplete: "off", spellcheck: "false", value: v,
    onchange: (e) => { grid.changed(() => set(e.target.value.trim())); } });
}

function drawGrid() {
  grid.page = Math.min(grid.page, pages() - 1);
  const first = grid.page * ROWS;
  const shownRows = model.candidates.slice(first, first + ROWS);
  const head = h("tr", h("th", { scope: "col" }, "Candidate"), h("th", { scope: "col" }, "Truth"),
    model.verifiers.map((v, k) => h("th", { scope: "col" }, h("span.head", field(`Id of verifier ${k + 1}`, v.id, (s) => { v.id = s; }),
      drop(`Remove verifier ${v.id}`, () => model.verifiers.splice(k, 1))))),
    h("th", { scope: "col" }, "Probe"), h("th", { scope: "col" }, "Kind of probe"), h("th", h("span.hidden-text", "Remove")));
  const body = shownRows.map((c, j) => row(c, first + j));
  fill($("grid"), model.candidates.length || model.verifiers.length
    ? h("div.scroll", { role: "region", "aria-label": "Verdicts", tabindex: "0" }, h("table", h("caption.hidden-text", "Verdicts of each verifier on each candidate"), h("thead", head), h("tbody", body)))
    : empty("The matrix is empty. Add candidates and verifiers, or import one."));
  $("grid-pages").hidden = pages() === 1;
  $("grid-page").textContent = `Candidates ${first + 1} to ${first + shownRows.length} of ${model.candidates.length}`;
  $("grid-previous").disabled = grid.page === 0;
  $("grid-next").disabled = grid.page === pages() - 1;
  rove();
}

function drop(label, act) { return h("button.drop", { type: "button", "aria-label": label, title: label, onclick: () => grid.changed(act) }, "×"); }

function row(c, i) {
  const truth = h("button", { type: "button", class: `cell ${word(c.good)}`, "aria-label": `Truth of ${c.id}: ${word(c.good)}`, disabled: c.probe,
    onclick: () => grid.changed(() => { c.good = !c.good; }) }, word(c.good));
  const probe = h("input", { type: "checkbox", "aria-label": `${c.id} is a probe`, checked: c.probe, onchange: () => grid.changed(() => { c.probe = !c.probe; if (c.probe) c.good = false; }) });
  const kind = h("input", { type: "text", "aria-label": `Kind of probe ${c.id}`, maxlength: "256", autocomplete: "off", spellcheck: "false", value: c.kind,
    onchange: (e) => grid.changed(() => { c.kind = e.target.value.trim(); }) });
  return h("tr", h("th", { scope: "row" }, field(`Id of candidate ${i + 1}`, c.id, (s) => { c.id = s; })), h("td", truth),
    model.verifiers.map((v, k) => h("td", cell(c, i, v, k))),
    h("td.mid", probe), h("td.kind", c.probe ? kind : null), h("td", drop(`Remove candidate ${c.id}`, () => dropCandidate(i))));
}

function cell(c, i, v, k) {
  const accepts = v.accepts[i], wrong = accepts !== c.good;
  return h("button", { type: "button", class: `cell ${word(accepts)}${wrong ? " wrong" : ""}`, "data-cell": `${i} ${k}`, tabindex: "-1",
    "aria-label": `${v.id} on ${c.id}: ${word(accepts)}${wrong ? ", wrong" : ""}`, onclick: () => setVerdict(i, k, !v.accepts[i]) }, word(accepts), wrong ? " ×" : null);
}

function setVerdict(i, k, accepts) {
  grid.at = [i, k];
  if (model.verifiers[k].accepts[i] === accepts) return;
  grid.changed(() => { model.verifiers[k].accepts[i] = accepts; });
  say(`${model.verifiers[k].id} on ${model.candidates[i].id}: ${word(accepts)}`);
}

function at(i, k) { return document.querySelector(`[data-cell="${i} ${k}"]`); }

// rove makes one verdict the grid's stop on the way of the Tab key.
function rove(focus) {
  const first = grid.page * ROWS, last = Math.min(model.candidates.length, first + ROWS) - 1;
  const i = Math.max(first, Math.min(grid.at[0], last)), k = Math.max(0, Math.min(grid.at[1], model.verifiers.length - 1));
  grid.at = [i, k];
  for (const c of document.querySelectorAll('[data-cell][tabindex="0"]')) c.tabIndex = -1;
  const here = at(i, k);
  if (!here) return;
  here.tabIndex = 0;
  if (focus) here.focus();
}

function startGrid() {
  $("grid").addEventListener("keydown", (e) => {
    const spot = e.target.dataset?.cell;
    if (!spot || e.ctrlKey || e.metaKey || e.altKey) return;
    const [i, k] = spot.split(" ").map(Number);
    const move = { ArrowUp: [i - 1, k], ArrowDown: [i + 1, k], ArrowLeft: [i, k - 1], ArrowRight: [i, k + 1], Home: [i, 0], End: [i, model.verifiers.length - 1] }[e.key];
    const set = { a: true, r: false }[e.key];
    if (!move && set === undefined) return;
    e.preventDefault();
    e.stopPropagation();
    if (move) { grid.at = move; turnTo(move[0]); rove(true); } else setVerdict(i, k, set);
  });
  $("grid").addEventListener("focusin", (e) => {
    const spot = e.target.dataset?.cell;
    if (!spot) return;
    grid.at = spot.split(" ").map(Number);
    rove();
  });
  $("grid-previous").addEventListener("click", () => { grid.page--; drawGrid(); });
  $("grid-next").addEventListener("click", () => { grid.page++; drawGrid(); });
}

// turnTo shows the page that holds candidate i.
function turnTo(i) {
  const page = Math.floor(Math.max(0, Math.min(i, model.candidates.length - 1)) / ROWS);
  if (page === grid.page) return;
  grid.page = page;
  drawGrid();
}
