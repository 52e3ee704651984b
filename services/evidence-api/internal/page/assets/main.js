// What shows when: views, keys, the token.

const views = { current: "", begun: false, go() {} };
const SHOW = {
  overview: showOverview,
  evidence: showRuns,
  provenance: showProvenance,
  timeline: showTimeline,
  events: () => { if (!feed.started) runFeed(null); drawEvents(); },
  reference: showReference,
  verification: showVerification,
};

function lock(err) {
  stopEvents();
  feed.started = false;
  session.forget();
  askToken(open, err);
}

function refresh() {
  if (views.current === "reference") $("reference-list").replaceChildren();
  if (views.current === "events" && !feed.paused) restartEvents();
  else SHOW[views.current]?.();
  say("Refreshed");
}

const go = tabs($("tabs"), (panel) => {
  views.current = panel;
  history.replaceState(null, "", `#/${panel}`);
  SHOW[panel]();
});
views.go = go;

// The slash keeps the browser from taking the view's name for a place to jump to.
function open() {
  const wanted = location.hash.slice(2);
  go(SHOW[wanted] ? wanted : "overview", false);
  if (!views.begun) {
    views.begun = true;
    inspect();
  }
}

startInspection();
startRuns();
startEvents();
startVerify();
$("refresh").addEventListener("click", refresh);
addEventListener("keydown", (e) => {
  if (e.key !== "Enter" || !(e.ctrlKey || e.metaKey) || document.body.classList.contains("locked")) return;
  e.preventDefault();
  if (views.current !== "evidence") go("evidence", true);
  inspect();
});

const keys = Object.fromEntries(Object.keys(SHOW).map((panel, i) => [String(i + 1), [`Open ${$("tab-" + panel).textContent}`, () => go(panel, true)]]));
shortcuts({
  ...keys,
  r: ["Refresh this view", refresh],
  p: ["Pause or resume events", () => { if (feed.started) togglePause(); }],
}, [["Ctrl/⌘ Enter", "Inspect the report"], ["← →", "Move between views, on the tabs"]]);

if (session.token) unlock(open);
else askToken(open);
