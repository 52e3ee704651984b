// The Overview: is the server well, what may it do, what waits for a person, what is in the store.

const overview = { stateNames: [] };

async function showOverview() {
  const status = $("overview-status"), rest = $("overview-rest");
  await shown(status, async () => {
    const [{ value: s }, { value: m }] = await Promise.all([call("/status"), call("/metrics")]);
    fill(status, stats(s, m));
    const places = { attention: h("div.panel"), checkpoint: h("div.panel"), units: h("div.panel"), connectors: h("div.panel") };
    fill(rest, places.attention, places.checkpoint, places.units, places.connectors, capabilities(s), limits(s.operations.limits), counters(m));
    showAttention(places.attention);
    overview.attention = places.attention;
    await Promise.all([logHead(places.checkpoint), workUnits(places.units), connectors(places.connectors)]);
  });
}

function stat(name, v) { return h("div.stat", h("b", v), h("span", name)); }

function stats(s, m) {
  const store = m.dependencies.product_spine_store.state;
  return h("div.stats",
    stat(`version, ${s.mode.replaceAll("-", " ")}`, m.service_version),
    stat("store", store === "configured_unprobed" ? "configured" : "none"),
    stat("requests", m.requests.total),
    stat("refused or failed", Number(m.requests.client_errors_total) + Number(m.requests.server_errors_total)),
    stat("slowest answer", `${m.latency_ms.max} ms`),
    stat(`at work, of ${m.concurrency.max_concurrent_requests}`, m.concurrency.in_flight_requests),
    stat(`open streams, of ${m.concurrency.max_event_stream_clients}`, m.concurrency.event_stream_clients),
    stat("inspections", m.operations.run_evidence_inspections_total));
}

function showAttention(place) {
  const s = inspection.snapshot;
  fill(place, h("div.row.between", h("h3", "Needs attention"), s ? h("code", s.source.run_id) : null),
    s ? attention(s.attention) : empty("No report has been inspected yet. ", h("button.quiet", { type: "button", onclick: () => views.go("evidence", true) }, "Inspect one")));
}

// section fills a panel from the store, or says why it cannot.
async function section(place, title, task) {
  const body = h("div.stack.tight");
  fill(place, h("h3", title), body);
  await shown(body, async () => fill(body, await task()));
}

function logHead(place) {
  return section(place, "Event log", async () => {
    const { value: { checkpoint: c } } = await call("/events/checkpoint");
    return [
      facts([["Events", String(c.tree_size)], ["Root", h("span.digest", c.root_hash)], ["Log", h("code", c.origin)],
        ["Signed", c.signed_note ? badge("signed", "good") : "no: no signing key was used"], ["As of", c.created_at]]),
      h("p", h("button", { type: "button", onclick: () => { views.go("verification", true); verifyLog(); } }, "Verify it here")),
    ];
  });
}

function workUnits(place) {
  return section(place, "Work units", async () => {
    const { value } = await call("/work-units?limit=8");
    if (!value.items.length) return empty("No stored run names a work unit.");
    return [
      table("Work units", ["Work unit", "#Runs", "#Revisions"], value.items.map((u) => [h("code", u.id), u.run_count, u.revisions.length])),
      value.next_cursor ? h("p.muted.small", "The first 8 are shown; the API pages through all.") : null,
    ];
  });
}

function connectors(place) {
  return section(place, "Connectors", async () => {
    const { value } = await call("/connections?limit=20");
    if (!value.items.length) return empty("No connector is stored. Import a profile with ", h("code", "svc connections import"), ".");
    return table("Connectors", ["Connector", "Kind", "Tiers", "Risk up to", "Enabled"],
      value.items.map((c) => [h("code", c.id), c.kind, c.capability_tiers.join(" "), c.max_risk, yesNo(c.enabled)]));
  });
}

function capabilities(s) {
  return h("div.panel", h("h3", "What this server can do"),
    table("Capabilities", ["Capability", "Offered"], Object.entries(s.capabilities).map(([name, on]) => [name.replaceAll("_", " "), yesNo(on)])));
}

function limits(all) {
  return h("div.panel", h("h3", "Limits"), table("Limits", ["Limit", "#Value"], Object.entries(all).map(([name, v]) => [name.replaceAll("_", " "), String(v)])));
}

function counters(m) {
  const classes = Object.entries(m.requests.by_status_class);
  // Buckets are cumulative: past the first that holds all, they say nothing more.
  const all = m.latency_ms.buckets, full = all.findIndex((b) => b.count.text === m.latency_ms.count.text);
  const buckets = full < 0 ? all : all.slice(0, full + 1);
  return h("div.panel", h("h3", "Answers since the start"),
    table("Answers by class", ["Class", "#Answers"], classes),
    table("Answers by time", ["Within", "#Answers"], buckets.map((b) => [`${b.le_ms} ms`, b.count])));
}

inspection.changed.push(() => { if (overview.attention) showAttention(overview.attention); });
