// The audit's report, as a headline, two plots and tables.

function round(v, digits) { return v === null || v === undefined ? null : typeof v === "string" ? v : Number(v).toFixed(digits); }

function percent(v) { return v === null ? null : `${(100 * Number(v)).toFixed(1)} %`; }

function showReport(r) {
  const p = r.panel;
  const votes = p.effective_votes === null ? null : Number(p.effective_votes) >= 199 ? "199 or more" : round(p.effective_votes, 2);
  fill($("result"),
    h("p.headline", votes === null ? `${p.nominal_votes} verifiers, ${Number(p.mean_verifier_accuracy) > 0.5 ? "not comparable with independent ones" : "no better than chance"}` : `${p.nominal_votes} verifiers count as ${votes} independent ${votes === "1.00" ? "vote" : "votes"}`),
    r.warnings.length ? h("div.notice.warn", h("ul.plain", r.warnings.map((w) => h("li", w)))) : h("div.notice.good", "The audit has no warning."),
    h("div.stats", figure("panel error", percent(p.error)), figure("false accepts", percent(p.false_accept_rate)), figure("false rejects", percent(p.false_reject_rate)),
      figure("mean accuracy", percent(p.mean_verifier_accuracy)), figure("error correlation", round(p.mean_pairwise_error_correlation, 3)),
      r.probes ? figure("probes breached", `${r.probes.breached} of ${r.probes.total}`) : figure("probes", "none")),
    h("h3", "Votes"), votesPlot(p),
    h("h3", "Verifiers"), accuracyPlot(r.verifiers), table("Verifiers", ["Verifier", "#Accuracy", "#Errors"], r.verifiers.map((v) => [v.id, round(v.accuracy, 4), v.errors])),
    h("h3", "Errors made together"), h("div", pairs()),
    r.probes ? [h("h3", "Probes"), table("Probes by kind", ["Kind", "#Breached", "#Total", "#Rate"], Object.entries(r.probes.by_kind).map(([k, n]) => [k, n.breached, n.total, percent(n.breach_rate)]))] : null,
    h("h3", "What was audited"),
    facts([["Gate", r.gate_id], ["Evidence", r.evidence_class], ["Candidates", `${r.inputs.non_probe_candidates} and ${r.inputs.probe_candidates} probes; ${r.inputs.known_good} good, ${r.inputs.known_bad} bad`],
      ["Heuristic votes", round(p.heuristic_n_eff, 4) ?? "not defined"], ["Ceiling of votes", round(p.effective_votes_ceiling, 4) ?? "not defined"],
      ["Matrix", [h("span.digest", r.provenance.input_digest_sha256), " ", badge("verified here", "good")]], ["Tool", `${r.provenance.tool} ${r.provenance.tool_version}`]]),
    h("div.row", h("button", { type: "button", onclick: () => download("gate-audit-report.json", canonical(r, "  ") + "\n") }, "Save the report")));
}

function figure(name, v) { return h("div.stat", h("b", v ?? "not defined"), h("span", name)); }

// svg makes a node of a drawing; only presentation by class, since the page's policy allows no style attributes.
function svg(tag, attributes, ...content) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [k, v] of Object.entries(attributes)) node.setAttribute(k, String(v));
  node.append(...content.map((c) => (c instanceof Node ? c : document.createTextNode(String(c)))));
  return node;
}

function drawing(label, height, parts) {
  return svg("svg", { class: "plot", viewBox: `0 0 480 ${height}`, role: "img", "aria-label": label }, ...parts);
}

const LEFT = 130, RIGHT = 430;

function clipped(s) { return s.length > 18 ? s.slice(0, 17) + "…" : s; }

// accuracyPlot draws a bar for each verifier, and where guessing would end.
function accuracyPlot(all) {
  const shownBars = all.slice(0, 24);
  const x = (a) => LEFT + (RIGHT - LEFT) * Number(a);
  const parts = shownBars.flatMap((v, i) => {
    const y = 6 + i * 22;
    return [svg("text", { class: "label", x: LEFT - 8, y: y + 12, "text-anchor": "end" }, clipped(v.id)),
      svg("rect", { class: "track", x: LEFT, y, width: RIGHT - LEFT, height: 15, rx: 3 }),
      svg("rect", { class: Number(v.accuracy) > 0.5 ? "bar-good" : "bar-bad", x: LEFT, y, width: Math.max(1, x(v.accuracy) - LEFT), height: 15, rx: 3 }),
      svg("text", { class: "quiet", x: RIGHT + 6, y: y + 12 }, round(v.accuracy, 3))];
  });
  const bottom = 6 + shownBars.length * 22;
  parts.push(svg("line", { class: "rule", x1: x(0.5), x2: x(0.5), y1: 2, y2: bottom }), svg("text", { class: "quiet", x: x(0.5), y: bottom + 12, "text-anchor": "middle" }, "chance"));
  return drawing(`Accuracy of ${shownBars.length} verifiers; the table below has the figures`, bottom + 18, parts);
}

// votesPlot sets the votes that are left beside the votes that there are, on a scale of powers.
function votesPlot(p) {
  const points = [["nominal", Number(p.nominal_votes), "votes in the panel"]];
  if (p.effective_votes !== null) points.push(["effective", Number(p.effective_votes), "independent votes they count as"]);
  if (p.effective_votes_ceiling instanceof Num) points.push(["ceiling", Number(p.effective_votes_ceiling), "most that more such verifiers could reach"]);
  const most = Math.max(2, ...points.map(([, v]) => v));
  const x = (v) => 14 + 440 * Math.log(Math.max(1, v)) / Math.log(most * 1.15);
  const ticks = [1, 2, 3, 5, 10, 20, 50, 100, 199].filter((t) => t <= most * 1.15);
  const parts = [svg("line", { class: "axis", x1: 14, x2: 454, y1: 26, y2: 26 }),
    ...ticks.flatMap((t) => [svg("line", { class: "axis", x1: x(t), x2: x(t), y1: 23, y2: 29 }), svg("text", { class: "quiet", x: x(t), y: 44, "text-anchor": "middle" }, t)]),
    ...points.map(([kind, v]) => kind === "effective" ? svg("circle", { class: "mark", cx: x(v), cy: 26, r: 8 })
      : svg("rect", { class: `mark ${kind}`, x: x(v) - 5, y: 19, width: 10, height: 14, rx: kind === "ceiling" ? 5 : 1 }))];
  return h("div", drawing("Votes on a scale of powers; the list below has the figures", 50, parts),
    h("ul.legend.plain.small", points.map(([, v, what]) => h("li", h("strong", v >= 199 ? "≥ 199" : Number.isInteger(v) ? v : v.toFixed(2)), ` ${what}`))));
}

// pairs shows how much two verifiers err together: what makes many votes count as few.
function pairs() {
  const all = model.verifiers.slice(0, 16);
  if (all.length < 2) return h("p.muted", "One verifier has nobody to err with.");
  const cellOf = (a, b) => {
    if (a === b) return h("td", h("span.muted", "·"));
    const v = phi(a, b);
    if (v === null) return h("td", h("span.muted", "n/a"));
    return h("td" + (v >= 0.2 ? ".together" : v <= -0.2 ? ".apart" : ""), v.toFixed(2));
  };
  return [h("div.scroll.pairs", { role: "region", "aria-label": "Error correlation of pairs", tabindex: "0" }, h("table", h("caption.hidden-text", "Error correlation of pairs"),
    h("thead", h("tr", h("th", { scope: "col" }, "Verifier"), all.map((v, i) => h("th.num", { scope: "col", title: v.id, "aria-label": v.id }, i + 1)))),
    h("tbody", all.map((a, i) => h("tr", h("th", { scope: "row" }, h("span.place", { "aria-hidden": "true" }, i + 1), a.id), all.map((b) => cellOf(a, b))))))),
    h("p.small.muted", "From -1 to 1, computed in this page. n/a: one of the two makes no errors, or nothing but errors.",
      model.verifiers.length > all.length ? ` The first ${all.length} verifiers are shown.` : null)];
}
