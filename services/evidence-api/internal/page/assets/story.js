// Provenance and Audit Timeline: two tellings of the inspected report.

function noReport() {
  return empty(inspection.why, " ", h("button.quiet", { type: "button", onclick: () => views.go("evidence", true) }, "Inspect one"));
}

function link(title, tone, ...content) {
  return h("li" + (tone ? `.${tone}` : ""), h("div.panel", h("h3", title), content));
}

function showProvenance() {
  const s = inspection.snapshot;
  if (!s) { fill($("provenance-chain"), noReport()); return; }
  const p = s.provenance;
  fill($("provenance-chain"),
    h("p.muted", "What leads to what, each by the digest of what went before. Read from the report; it proves no more than the report does."),
    h("ol.chain",
      link("Work unit", "accent", facts([["Id", h("code", p.work_unit.id)], ["Version", String(p.work_unit.version)], ["Digest", digest(p.work_unit.digest)]])),
      link("Run", "accent", facts([["Id", h("code", p.run.run_id)], ["Run record", digest(p.run.source_run_digest)], ["Configuration", digest(p.run.source_config_digest)],
        ["Verifier policy", digest(p.run.verifier_policy_digest)], ["Orchestrator", String(p.run.orchestrator_version)]])),
      p.attempts.map(provenanceOf),
      link("Authority", "warn", facts([
        ["Human decision", badge(p.authority.human_decision_status)], ["Integration", p.authority.integration_authority.replaceAll("_", " ")],
        ...["canonical_state_write", "git_push", "merge", "automatic_candidate_selection"].map((f) => [f.replaceAll("_", " "), yesNo(p.authority[f])])]))));
}

const STATE_TONE = { supported: "good", inconclusive: "warn" };

function provenanceOf(a) {
  const v = a.verification;
  return link(`Attempt ${a.order}: ${a.attempt_id}`, STATE_TONE[a.evidence_state] ?? "high",
    facts([["Adapter", h("code", a.worker_adapter)], ["Evidence", badge(a.evidence_state)],
      ["Result manifest", a.result_manifest ? [h("code", a.result_manifest.id), " ", digest(a.result_manifest.digest)] : null],
      ["Verification", v ? [h("code", v.verifier_id), " ", badge(v.recommendation), " ", digest(v.verification_semantic_digest)] : null],
      ...(v ? [["Required checks", h("div.row", v.required_checks.map((c) => h("span", h("code", c.id), " ", badge(c.status))))], ["Independence", v.independence_claim]] : []),
      ...(a.error ? [["Error", a.error]] : [])]));
}

function showTimeline() {
  const s = inspection.snapshot;
  const place = $("timeline-list");
  if (!s) { fill(place, noReport()); return; }
  const list = h("ol.chain");
  const kinds = [...new Set(s.timeline.map((m) => m.type))];
  const draw = (kind) => fill(list, s.timeline.filter((m) => !kind || m.type === kind).map(moment));
  const choose = h("select", { id: "timeline-type", onchange: () => draw(choose.value) }, h("option", { value: "" }, "everything"), kinds.map((k) => h("option", { value: k }, k.replaceAll("_", " "))));
  draw("");
  fill(place,
    h("div.row.between", h("p.muted", "The order in which the report tells it. It holds no clock times."), h("div.row", h("label", { for: "timeline-type" }, "Show"), choose)),
    list);
}

const MOMENT_TONE = { evidence: "good", recommendation: "accent", control_error: "high", attention: "warn", authority: "accent" };

function moment(m) {
  const tone = MOMENT_TONE[m.type];
  return h("li" + (tone ? `.${tone}` : ""), h("div.panel.moment",
    h("span.num", m.sequence), h("span", badge(m.type)),
    h("div", h("strong", m.title), h("p", m.detail),
      h("p.small.muted", [m.actor, m.attempt_id].filter(Boolean).join(", ")),
      m.evidence_ref ? h("p", digest(m.evidence_ref)) : null)));
}

inspection.changed.push(showProvenance, showTimeline);
