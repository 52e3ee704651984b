// The Overview: what waits for a person, where the runs stand, what is in the store, and last how the server is.

const overview = { attention: null };

// COUNTED limits the pages of runs that are read to count them: 200 runs a page.
const COUNTED = 5;

async function showOverview() {
  const first = $("overview-first"), rest = $("overview-rest"), status = $("overview-status");
  const places = Object.fromEntries(["waiting", "states", "attention", "checkpoint", "units", "connectors"].map((name) => [name, h("div.panel")]));
  fill(first, places.waiting, places.states);
  fill(rest, places.attention, places.checkpoint, places.units, places.connectors);
  overview.attention = places.attention;
  showAttention(places.attention);
  await Promise.all([waitingRuns(places.waiting), runsByState(places.states), logHead(places.checkpoint), workUnits(places.units), connectors(places.connectors),
    shown(status, async () => {
      const [{ value: s }, { value: m }] = await Promise.all([call("/status"), call("/metrics")]);
      fill(status, h("h3", "This server"), stats(s, m), h("div.columns", capabilities(s), limits(s.operations.limits), counters(m)));
    })]);
}

function runLink(id) { return h("button.link", { type: "button", onclick: () => chooseRun(id) }, id); }

// waitingRuns lists the runs whose evidence is there and whose decision is a person's.
function waitingRuns(place) {
  return section(place, "Waits for a person", async () => {
    const { value } = await call("/runs?state=awaiting_human_decision&limit=8");
    if (!value.items.length) return empty("No run waits for a decision.");
    return [
      table("Runs that wait for a person", ["Run", "Project", "#Attempts"], value.items.map((r) => [runLink(r.run_id), r.project_id, r.attempts.length])),
      value.next_cursor ? h("p", h("button.quiet", { type: "button", onclick: () => listRuns("awaiting_human_decision") }, "The first 8 are shown: see all")) : null,
    ];
  });
}

function runsByState(place) {
  return section(place, "Runs by state", async () => {
    const counts = Object.fromEntries(STATES.map((state) => [state, 0]));
    let cursor = "", pages = 0, total = 0;
    do {
      const { value } = await call("/runs" + query({ limit: 200, cursor }));
      for (const r of value.items) counts[r.state]++;
      total += value.items.length;
      cursor = value.next_cursor;
    } while (cursor && ++pages < COUNTED);
    if (!total) return empty("The store holds no run yet. Create one with ", h("code", "svc run create"), ".");
    return [
      table("Runs by state", ["State", "#Runs"], STATES.filter((state) => counts[state]).map((state) => [
        h("button.link", { type: "button", onclick: () => listRuns(state) }, state.replaceAll("_", " ")), counts[state]])),
      cursor ? h("p.muted.small", `Only the first ${total} runs are counted.`) : null,
    ];
  });
}

// listRuns shows the runs of one state.
function listRuns(state) {
  $("run-state").value = state;
  $("run-project").value = "";
  runs.trail = [""];
  views.go("evidence", true);
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
  fill(place, h("div.row.between", h("h3", "Attention in the inspected report"), s ? h("code", s.source.run_id) : null),
    s ? attention(s.attention) : noReport());
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
