// Runs of the store: a list with filter and pages, and one run in detail.

const STATES = ["proposed", "previewed", "admission_blocked", "admitted", "dispatched", "attempt_failed", "candidate_observed",
  "normalized", "verification_requested", "verification_error", "evidence_ready", "awaiting_human_decision", "decided", "cancelled"];

// trail holds the cursor of every page up to the shown one.
const runs = { trail: [""], next: null, chosen: "", asked: 0 };

function startRuns() {
  $("run-state").append(...STATES.map((s) => h("option", { value: s }, s.replaceAll("_", " "))));
  $("run-filter").addEventListener("submit", (e) => { e.preventDefault(); restartRuns(); });
  for (const id of ["run-state", "run-limit"]) $(id).addEventListener("change", restartRuns);
  $("run-previous").addEventListener("click", () => { runs.trail.pop(); showRuns(); });
  $("run-next").addEventListener("click", () => { runs.trail.push(runs.next); showRuns(); });
  fill($("run-detail"), h("h3", "Run"), empty("Choose a run to see its attempts and its retained evidence."));
}

function restartRuns() {
  runs.trail = [""];
  showRuns();
}

async function showRuns() {
  const place = $("run-list");
  const filter = { state: $("run-state").value, project_id: $("run-project").value.trim(), limit: $("run-limit").value };
  const turn = ++runs.asked; // a filter that is typed asks often, and only the last answer counts
  const filtered = Boolean(filter.state || filter.project_id);
  runs.next = null;
  $("run-page").textContent = "";
  await shown(place, async () => {
    const { value } = await call("/runs" + query({ ...filter, cursor: runs.trail.at(-1) }));
    if (turn !== runs.asked) return;
    runs.next = value.next_cursor;
    $("run-page").textContent = `Page ${runs.trail.length}, ${count(value.items.length, "run")}`;
    say(`${count(value.items.length, "run")} on page ${runs.trail.length}`);
    fill(place, value.items.length ? runTable(value.items)
      : empty(filtered ? "No stored run matches this filter." : ["The store holds no run yet. Create one with ", h("code", "svc run create"), "."]));
  });
  if (turn !== runs.asked) return;
  $("run-previous").disabled = runs.trail.length < 2;
  $("run-next").disabled = runs.next === null;
}

function runTable(items) {
  return table("Runs", ["Run", "State", "Project", "#Attempts", "Evidence"], items.map((r) => h("tr", { "aria-current": r.run_id === runs.chosen ? "true" : null, "data-run": r.run_id },
    h("th", { scope: "row" }, runLink(r.run_id)),
    h("td", badge(r.state)), h("td", r.project_id), h("td.num", r.attempts.length),
    h("td", r.evidence_report_digest ? badge("retained", "good") : h("span.muted", "none")))));
}

// chooseRun shows a run and makes every view tell of it.
function chooseRun(id) {
  if (views.current !== "evidence") views.go("evidence", true);
  return showRun(id);
}

async function showRun(id) {
  const place = $("run-detail");
  runs.chosen = id;
  forgetInspection(`The report of ${id} is being read.`);
  for (const row of document.querySelectorAll("[data-run]")) {
    if (row.dataset.run === id) row.setAttribute("aria-current", "true");
    else row.removeAttribute("aria-current");
  }
  await shown(place, async () => {
    const [{ value: detail }, { value: list }] = await Promise.all([call(`/runs/${idPath(id)}`), call(`/runs/${idPath(id)}/attempts`)]);
    if (detail.run.run_id !== id || list.run_id !== id) throw new Fault("protocol", "The server answered about another run.");
    if (runs.chosen !== id) return;
    const evidence = h("div.stack.tight"), project = h("div.stack.tight");
    fill(place, runFacts(detail), h("h3", "Attempts"), attemptCards(list.attempts), h("h3", "Retained evidence"), evidence, h("h3", "Its project"), project);
    place.focus();
    say(`Run ${id}, state ${detail.run.state}`);
    await Promise.all([
      shown(evidence, () => inspectRun(detail.run, evidence)),
      shown(project, async () => fill(project, await projectOf(detail.run.project_id))),
    ]);
  });
}

function runFacts(d) {
  const r = d.run;
  return [
    h("div.row.between", h("h3", r.run_id), badge(r.state)),
    facts([
      ["Project", h("code", r.project_id)],
      ["Work unit", [h("code", r.work_unit.id), ` version ${r.work_unit.version}`]],
      ["Its digest", digest(r.work_unit.digest)],
      ["Revision", h("span.digest", r.work_unit.source_revision)],
      ["Request", digest(r.request_digest)],
      ["Created by", digest(d.create_request_digest)],
      ["Key", h("code", d.idempotency_key)],
      ["Routing", `${r.routing.policy_version}, ${r.routing.authority_mode.replaceAll("_", " ")}`],
      ["Admitted", r.routing.admitted_connectors.length ? r.routing.admitted_connectors.join(", ") : "no connector"],
      ["Authority", "no canonical write, no push, no merge"],
    ]),
    h("p", h("button", { type: "button", onclick: () => followRun(r.run_id) }, "Its events")),
  ];
}

function attemptCards(list) {
  if (!list.length) return empty("This run has no attempts.");
  return h("div.attempts", list.map((a) => h("article.attempt",
    h("div.row.between", h("strong", `${a.order}. ${a.attempt_id}`), badge(a.state)),
    facts([["Connector", h("code", a.connector_id)], ["Provider", a.provider_reference ? h("code", a.provider_reference) : null],
      ["Candidate", digest(a.candidate_reference_digest)], ["Manifest", digest(a.result_manifest_digest)], ["Verification", digest(a.verification_semantic_digest)],
      ...(a.error_code ? [["Error", h("code", a.error_code)]] : [])]))));
}

// inspectRun reads the report that a run retains and inspects it, so that Provenance, Audit Timeline and Overview tell of
// the run that was chosen, and never of another one.
async function inspectRun(run, place) {
  if (!run.evidence_report_digest) {
    fill(place, empty("No report is retained for this run."));
    forgetInspection(`${run.run_id} retains no report.`);
    return;
  }
  forgetInspection(`The report of ${run.run_id} could not be read.`); // unless it can
  const { value } = await call(`/runs/${idPath(run.run_id)}/evidence`);
  await claims("retained evidence digest", value.evidence_report_digest, value.evidence_report);
  if (value.evidence_report_digest !== run.evidence_report_digest) throw new Fault("integrity", "The run names another report than the one retained.");
  if (runs.chosen !== run.run_id) return;
  const text = canonical(value.evidence_report, "  ");
  fill(place, facts([["Digest", [digest(value.evidence_report_digest), " ", badge("verified")]]]),
    h("div.row",
      h("button", { type: "button", onclick: () => $("inspection").focus() }, "Its inspection"),
      h("button", { type: "button", onclick: () => download("evidence-report.json", text + "\n") }, "Save it")));
  $("report").value = text;
  $("report").dispatchEvent(new Event("input"));
  await inspect();
}

async function projectOf(id) {
  const { value: { project } } = await call(`/projects/${idPath(id)}`);
  const states = Object.entries(project.runs_by_state).filter(([, n]) => Number(n) > 0);
  return facts([["Runs", `${count(project.run_count, "run")} over ${count(project.work_unit_count, "work unit")}`], ["By state", h("div.row", states.map(([s, n]) => h("span", badge(s), ` ${n}`)))]]);
}
