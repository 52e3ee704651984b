// One inspected report: the editor, the answer, and what other views show of it.

const inspection = { snapshot: null, why: "No report has been inspected yet.", asked: 0, changed: [] };

// forgetInspection leaves every view without a report and says why.
function forgetInspection(why) {
  inspection.asked++; // an answer that is still to come is about another report
  inspection.snapshot = null;
  inspection.why = why;
  fill($("inspection"), h("h3", "Inspection"), empty(why));
  for (const tell of inspection.changed) tell();
}

async function inspect() {
  const text = $("report").value;
  const place = $("inspection");
  session.keep("document", text);
  if (!text.trim()) {
    fill(place, h("h3", "Inspection"), empty("Paste a report or open a file, then inspect it."));
    return;
  }
  const turn = ++inspection.asked; // of several at once, the last one counts
  await shown(place, async () => {
    const { value } = await call("/run-evidence/inspect", { method: "POST", body: text, headers: { "Content-Type": "application/json" } });
    await claims("snapshot digest", value.snapshot_digest, value.snapshot);
    await claims("evidence report digest", value.snapshot.source.evidence_report_digest, parseJSON(text));
    if (turn !== inspection.asked) return;
    inspection.snapshot = value.snapshot;
    fill(place, inspected(value));
    for (const tell of inspection.changed) tell();
    say(`Inspected ${value.snapshot.source.run_id}: ${count(value.snapshot.attention.length, "point")} to attend to`);
  });
}

function attention(list) {
  return h("ul.attention", list.map((a) => h("li", h("span", badge(a.severity)), h("div", h("strong", a.title), h("p.muted", a.why)))));
}

function inspected(answer) {
  const s = answer.snapshot;
  const n = s.summary;
  return [
    h("div.row.between", h("h3", "Inspection"), badge("digests verified", "good")),
    facts([
      ["Run", h("code", s.source.run_id)],
      ["Report", digest(s.source.evidence_report_digest)],
      ["Snapshot", digest(answer.snapshot_digest)],
      ["Attempts", `${n.attempt_count}: ${n.supported} supported, ${n.rejected} rejected, ${n.inconclusive} inconclusive, ${n.control_errors} control errors`],
      ["Human decision", [badge(s.human_decision.status), " by ", s.human_decision.integration_authority.replaceAll("_", " ")]],
    ]),
    h("h3", "Needs attention"), attention(s.attention),
    h("h3", "Attempts: what was claimed, what was found"),
    h("div.attempts", s.attempts.map(attemptCard)),
    h("h3", "Warnings of the report"), h("ul.rules", s.warnings.map((w) => h("li", w))),
    h("h3", "How to read this"), h("ul.rules", s.interpretation_rules.map((r) => h("li", r))),
  ];
}

function attemptCard(a) {
  return h("article.attempt",
    h("div.row.between", h("strong", `${a.order}. ${a.attempt_id}`), badge(a.evidence_state)),
    a.error ? h("p.notice.bad", a.error) : null,
    h("p.muted.small", "Claim by the worker, ", a.worker_adapter),
    a.claim ? facts([["Worker", h("code", a.claim.worker_id)], ["Says", badge(a.claim.worker_status)], ["Manifest", digest(a.claim.result_manifest_digest)]]) : h("p", "No claim was made."),
    h("p.muted.small", "Evidence of the verifier"),
    a.evidence ? [
      facts([["Verifier", h("code", a.evidence.verifier_id)], ["Advises", badge(a.evidence.recommendation)], ["Result", digest(a.evidence.verification_digest)]]),
      table(`Checks of ${a.attempt_id}`, ["Check", "Status", "Required"], a.evidence.checks.map((c) => [c.id, badge(c.status), yesNo(c.required)])),
    ] : h("p", "Nothing was verified."));
}

function startInspection() {
  const report = $("report"), file = $("report-file");
  const measure = () => {
    const bytes = new Blob([report.value]).size;
    $("report-size").textContent = bytes > 2 * MIB ? `${bytes} bytes, over the 2 MiB the server takes` : `${bytes} bytes`;
  };
  report.value = session.kept("document");
  measure();
  report.addEventListener("input", measure);
  $("inspect").addEventListener("click", inspect);
  $("report-open").addEventListener("click", () => file.click());
  file.addEventListener("change", async () => {
    const chosen = file.files[0];
    file.value = "";
    if (!chosen) return;
    if (chosen.size > 2 * MIB) {
      fill($("inspection"), problem({ message: `${chosen.name} is larger than 2 MiB.` }));
      return;
    }
    report.value = await chosen.text();
    measure();
    await inspect();
  });
  $("report-indent").addEventListener("click", () => {
    try {
      report.value = canonical(parseJSON(report.value), "  ");
      measure();
    } catch (err) {
      fill($("inspection"), h("h3", "Inspection"), problem({ code: err.reason, message: err.message }));
      if (err.offset !== undefined) { report.focus(); report.setSelectionRange(err.offset, err.offset + 1); }
    }
  });
}
