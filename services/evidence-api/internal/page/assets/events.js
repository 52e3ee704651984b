// Events, live: the newest first, each with its payload digest verified before it is shown.

const KEPT = 500, REPLAYED = 200;
const feed = { rows: [], stop: null, paused: false, started: false, state: "off", counted: 0, expecting: false };

function eventFilter() {
  return { run_id: $("event-run").value.trim(), project_id: $("event-project").value.trim(), work_unit_id: $("event-unit").value.trim(), event_type: $("event-type").value };
}

function startEvents() {
  $("event-filter").addEventListener("submit", (e) => { e.preventDefault(); restartEvents(); });
  $("event-type").addEventListener("change", restartEvents);
  $("event-pause").addEventListener("click", togglePause);
  addEventListener("pagehide", stopEvents);
}

function stopEvents() {
  feed.stop?.abort();
  feed.stop = null;
}

function togglePause() {
  feed.paused = !feed.paused;
  $("event-pause").setAttribute("aria-pressed", String(feed.paused));
  $("event-pause").textContent = feed.paused ? "Resume" : "Pause";
  if (feed.paused) {
    stopEvents();
    eventState("paused");
    say("Events paused");
  } else {
    runFeed(feed.rows.length ? Number(feed.rows[0].sequence) : null);
  }
}

function eventState(state, err) {
  feed.state = state;
  const tone = { live: "good", waiting: "warn", stopped: "bad" }[state];
  fill($("event-state"), badge(state, tone));
  $("live").className = `badge ${tone ?? ""}`;
  $("live").textContent = `events ${state}`;
  fill($("event-problem"), err ? h("div.notice.warn", h("p", err.code ? [h("code", err.code), " "] : null, err.message, " Trying again."),
    err.requestID ? h("p.small", "Request id ", h("code", err.requestID)) : null) : null);
}

function restartEvents() {
  feed.rows = [];
  feed.paused = false;
  $("event-pause").setAttribute("aria-pressed", "false");
  $("event-pause").textContent = "Pause";
  $("event-detail").hidden = true;
  drawEvents();
  runFeed(null);
}

// runFeed opens the stream after a sequence; without one it starts far enough back to show the latest events.
async function runFeed(after) {
  stopEvents();
  feed.started = true;
  const stop = feed.stop = new AbortController();
  const place = $("event-problem");
  const filter = eventFilter();
  await shown(place, async () => {
    try {
      const from = after ?? await startingPoint();
      if (stop.signal.aborted) return;
      await follow(filter, from, stop.signal, {
        state: (state, err) => { if (!stop.signal.aborted) { eventState(state, err); if (state === "live") drawEvents(); } },
        event: (e) => { if (!stop.signal.aborted) arrived(e); },
      });
    } catch (err) {
      if (feed.stop === stop) eventState("stopped");
      throw err;
    }
  });
}

async function startingPoint() {
  const { value: { checkpoint } } = await call("/events/checkpoint");
  return Math.max(0, Number(checkpoint.tree_size) - REPLAYED);
}

function arrived(e) {
  if (feed.rows.some((known) => known.event_id === e.event_id)) return;
  feed.rows.unshift(e);
  feed.rows.length = Math.min(feed.rows.length, KEPT);
  feed.counted++;
  scheduleDraw(e);
}

// A replay brings many events at once; they are drawn together.
function scheduleDraw(e) {
  feed.latest = e;
  if (feed.expecting) return;
  feed.expecting = true;
  requestAnimationFrame(() => {
    feed.expecting = false;
    drawEvents();
    if (views.current === "events") say(`${feed.latest.event_type} of ${feed.latest.run_id}`);
  });
}

function drawEvents() {
  const place = $("event-list");
  if (!feed.rows.length) {
    fill(place, empty(feed.state === "live" ? "No event yet. The next one appears here by itself." : "Waiting for the stream."));
    return;
  }
  // The focus survives a redraw, so that live events do not throw a reader out of the table.
  const focused = document.activeElement?.dataset?.event;
  const before = place.querySelector(".scroll")?.scrollLeft ?? 0;
  fill(place, table("Events, the newest first", ["#Sequence", "Type", "Run", "Time", "Payload"], feed.rows.map(eventRow)),
    feed.rows.length === KEPT ? h("p.muted.small", `The newest ${KEPT} are shown.`) : null);
  place.querySelector(".scroll").scrollLeft = before;
  if (focused) place.querySelector(`[data-event="${CSS.escape(focused)}"]`)?.focus();
}

function eventRow(e) {
  return h("tr", h("th.num", { scope: "row" }, h("button.link", { type: "button", "data-event": e.event_id, onclick: () => showEvent(e) }, e.sequence)),
    h("td", badge(e.event_type, e.event_type === "run.cancelled" ? "warn" : "accent")), h("td", runLink(e.run_id)), h("td.whole", e.occurred_at), h("td", badge("verified")));
}

async function showEvent(e) {
  const place = $("event-detail");
  const proof = h("div", { role: "status" });
  place.hidden = false;
  fill(place, h("h3", e.event_id),
    facts([["Principal", `${e.principal.type}, ${e.principal.id}`], ["Authority", e.authority_class], ["Project", h("code", e.project_id)], ["Work unit", h("code", e.work_unit_id)],
      ["Revision", e.source_revision ? h("span.digest", e.source_revision) : null], ["Evidence", e.evidence_reference ? digest(e.evidence_reference.digest) : null], ["Payload digest", digest(e.payload_digest)]]),
    h("pre", { tabindex: "0", role: "region", "aria-label": "Payload" }, canonical(e.payload, "  ")),
    h("div.row", h("button", { type: "button", onclick: () => shown(proof, async () => fill(proof, await inclusion(e))) }, "Prove that the log holds it"),
      h("button", { type: "button", onclick: () => chooseRun(e.run_id) }, "Its run")),
    proof);
  place.focus();
}

// followRun shows the events of one run.
function followRun(id) {
  $("event-run").value = id;
  for (const other of ["event-project", "event-unit"]) $(other).value = "";
  $("event-type").value = "";
  views.go("events", true);
  restartEvents();
}
