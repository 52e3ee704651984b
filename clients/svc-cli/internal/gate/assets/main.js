// Edits, undo, import, export, audits.

const undo = [];
const MOST_UNDO = 100, SMALL = 20_000, REST = 400;
const work = { timer: 0, stop: null, audited: "" };

function keepStep() {
  undo.push(saved());
  if (undo.length > MOST_UNDO) undo.shift();
}

// changed makes one step that can be taken back.
grid.changed = (act) => {
  keepStep();
  const focus = document.activeElement?.dataset?.cell || document.activeElement?.getAttribute("aria-label");
  act();
  redraw();
  const again = focus && (document.querySelector(`[data-cell="${CSS.escape(focus)}"]`) ?? document.querySelector(`#grid [aria-label="${CSS.escape(focus)}"]`));
  if (again) again.focus(); else if (document.activeElement === document.body) rove(true);
};

// redraw shows the model, keeps it in the tab and has it audited.
function redraw() {
  $("gate-id").value = model.gate;
  $("evidence-class").value = model.evidence;
  $("quorum").value = model.quorum;
  $("undo").disabled = undo.length === 0;
  drawGrid();
  let doc = null, wrong = null;
  try { doc = writeMatrix(); } catch (err) { wrong = err; }
  $("quorum").setAttribute("aria-invalid", String(wrong?.path === "/quorum"));
  fill($("matrix-problem"), wrong ? problem(wrong, wrong.path ? h("p.small", "At ", h("code", wrong.path)) : null) : null);
  $("quorum-hint").textContent = hint();
  fill($("result-state"), badge("changed since", "warn"));
  clearTimeout(work.timer);
  if (!doc) return;
  const text = canonical(doc, "  ");
  session.keep("document", text);
  if (document.activeElement !== $("source")) $("source").value = text;
  fill($("source-problem"));
  const size = model.candidates.length * model.verifiers.length;
  if (size === 0) {
    work.stop?.abort();
    fill($("result-state"));
    fill($("result"), empty("Figures appear here once there are candidates and a verifier."));
  } else if (size <= SMALL) work.timer = setTimeout(audit, REST);
}

function hint() {
  const n = model.verifiers.length;
  const most = threshold(model.quorum, n);
  return !n || most === null ? "" : `The panel accepts with ${most + 1} of ${n} votes or more`;
}

function ascii(s) { return s.replace(/[\u0080-\uffff]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0")); }

async function audit() {
  clearTimeout(work.timer);
  work.stop?.abort();
  const stop = work.stop = new AbortController();
  fill($("result-state"), badge("auditing"));
  try {
    const form = canonical(writeMatrix());
    const r = await ask(form, stop.signal);
    if (r.provenance.input_digest_sha256 !== await sha256(ascii(form))) throw { code: "integrity", message: "The report is about another matrix than the one sent." };
    if (work.stop !== stop) return;
    showReport(r);
    fill($("result-state"), badge("up to date", "good"));
    say(`Audited: ${r.panel.nominal_votes} verifiers, panel error ${percent(r.panel.error)}`);
  } catch (err) {
    if (err.name === "AbortError" || work.stop !== stop) return;
    fill($("result-state"));
    if (err.code === "invalid_session_token") { askToken(open, err); return; }
    if (!err.code) console.error(err);
    fill($("result"), problem(err, err.path ? h("p.small", "At ", h("code", err.path)) : null));
  }
}

async function ask(form, signal) {
  let answer;
  try {
    answer = await fetch("/api/audit", { method: "POST", body: form, cache: "no-store", credentials: "omit", redirect: "error", signal,
      headers: { "Content-Type": "application/json", "X-SVC-UI-Token": session.token } });
  } catch (err) {
    if (err.name === "AbortError") throw err;
    throw { code: "unreachable", message: "The editor's server does not answer. See whether svc gate-audit-ui still runs." };
  }
  const requestID = answer.headers.get("X-Request-ID");
  let doc;
  try {
    doc = parseJSON(await answer.text());
  } catch {
    throw { code: "protocol", message: `The answer has status ${answer.status} and is no JSON.`, requestID };
  }
  if (doc.ok !== true) throw { ...doc.error, requestID };
  return doc.report;
}

// take replaces the matrix by a text's.
function take(text, place) {
  try {
    const next = readMatrix(parseJSON(text));
    keepStep();
    Object.assign(model, next);
    grid.page = 0;
    redraw();
    return true;
  } catch (err) {
    fill(place, problem({ code: err.reason ?? err.code, message: (err.path ? `${err.path}: ` : "") + err.message }));
    return false;
  }
}

function takeBack() {
  const before = undo.pop();
  if (before === undefined) return;
  Object.assign(model, before);
  redraw();
  say("Undone");
}

function open() {
  const text = session.kept("document");
  if (!text || !take(text, $("matrix-problem"))) redraw();
  undo.length = 0;
  $("undo").disabled = true;
}

async function importFile() {
  const chosen = $("import-file").files[0];
  $("import-file").value = "";
  if (!chosen) return;
  if (chosen.size > 2 << 20) { fill($("matrix-problem"), problem({ code: "payload_too_large", message: `${chosen.name} is larger than 2 MiB.` })); return; }
  if (take(await chosen.text(), $("matrix-problem"))) say(`Imported ${chosen.name}`);
}

function exportFile() {
  try {
    download(`${model.gate.replace(/[^A-Za-z0-9._-]+/g, "-") || "gate"}.json`, canonical(writeMatrix(), "  ") + "\n");
    say("Exported");
  } catch (err) {
    fill($("matrix-problem"), problem(err));
  }
}

startGrid();
$("gate-id").addEventListener("change", (e) => grid.changed(() => { model.gate = e.target.value.trim(); }));
$("evidence-class").addEventListener("change", (e) => grid.changed(() => { model.evidence = e.target.value; }));
$("quorum").addEventListener("change", (e) => grid.changed(() => { model.quorum = e.target.value.trim(); }));
$("add-candidate").addEventListener("click", () => { grid.changed(() => addCandidate(false)); turnTo(model.candidates.length - 1); });
$("add-probe").addEventListener("click", () => { grid.changed(() => addCandidate(true)); turnTo(model.candidates.length - 1); });
$("add-verifier").addEventListener("click", () => grid.changed(addVerifier));
$("undo").addEventListener("click", takeBack);
$("audit").addEventListener("click", audit);
$("import").addEventListener("click", () => $("import-file").click());
$("import-file").addEventListener("change", importFile);
$("export").addEventListener("click", exportFile);
$("source-take").addEventListener("click", () => take($("source").value, $("source-problem")));
addEventListener("keydown", (e) => {
  if (!(e.ctrlKey || e.metaKey) || document.body.classList.contains("locked")) return;
  if (e.key === "Enter") {
    e.preventDefault();
    document.activeElement?.blur?.(); // a text being typed becomes an edit first
    audit();
  } else if (e.key === "z" && !e.target.closest("input, textarea")) {
    e.preventDefault();
    takeBack();
  }
});
shortcuts({
  c: ["Add a candidate", () => $("add-candidate").click()],
  p: ["Add a probe", () => $("add-probe").click()],
  v: ["Add a verifier", () => $("add-verifier").click()],
  i: ["Import a file", () => $("import").click()],
  e: ["Export the matrix", exportFile],
}, [["Ctrl/⌘ Enter", "Audit"], ["Ctrl/⌘ z", "Undo"], ["← ↑ → ↓", "Move between verdicts"], ["Space", "Turn a verdict round"], ["a, r", "Accept, reject, on a verdict"]]);

if (session.token) unlock(open);
else askToken(open);
