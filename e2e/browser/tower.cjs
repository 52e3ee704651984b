// The control tower: seven views, one reader, no mouse.
"use strict";

const { run, check } = require("./drive.cjs");

const VIEWS = ["overview", "evidence", "provenance", "timeline", "events", "reference", "verification"];

run(async ({ config, open, svc }) => {
  const tab = await open();
  await tab.page.goto(config.launch);
  await tab.sees("#overview", "What this server can do");
  check(!tab.page.url().includes("launch"), `the address still holds the code: ${tab.page.url()}`);
  await tab.sees("#overview .attention", "A human decision is pending");
  await tab.sees("#overview", "demo-agent");
  await priorities(tab);
  await fits(tab, config);
  await tab.judge("overview");

  await skipAndHelp(tab);
  await arrows(tab);
  await evidence(tab);
  await chosen(tab);
  await story(tab);
  await events(tab, config, svc);
  await reference(tab);
  await verification(tab);
  await reload(tab);
  await tab.done();
  await strangers(open, config);
});

// priorities: what waits for a person and where the runs stand come before what the server can do and its limits.
async function priorities(tab) {
  await tab.sees("#overview", "run/demo:0002");
  const titles = await tab.page.locator("#overview h3").allInnerTexts();
  const want = ["Waits for a person", "Runs by state", "Limits"].map((title) => titles.indexOf(title));
  check(want[0] === 0 && want[1] === 1 && want[2] > 1, `the Overview shows ${titles.join(", ")}; what waits, the states, later the limits were wanted`);
  const states = await tab.page.locator('[aria-label="Runs by state"] tbody tr').allInnerTexts();
  check(states.length === 3 && states.every((row) => row.trim().endsWith("1")), `runs by state are ${states.join(", ")}, want one each in three states`);
}

// fits: on a narrow screen the header is a line of title and buttons and a line of badges.
async function fits(tab, config) {
  if (config.size !== "narrow") return;
  const { height, lines } = await tab.page.evaluate(() => ({
    height: document.querySelector(".bar").getBoundingClientRect().height,
    lines: new Set([...document.querySelectorAll(".bar > button")].map((b) => Math.round(b.getBoundingClientRect().top))).size,
  }));
  check(lines === 1 && height < 90, `the header is ${height} px high with buttons on ${lines} lines, want two lines in all`);
}

async function skipAndHelp(tab) {
  await tab.press("Tab");
  await tab.reach("#skip");
  await tab.press("Enter");
  check(await tab.focusIs("#main"), "the skip link leads to the content");
  await tab.press("?");
  await tab.sees("#help", "Inspect the report");
  await tab.judge("help");
  await tab.press("Escape");
  await tab.page.locator("#help").waitFor({ state: "hidden" });
}

// arrows walks through all tabs and comes round to the first.
async function arrows(tab) {
  await tab.reach('[role="tab"][aria-selected="true"]', "Shift+Tab");
  for (const view of VIEWS.slice(1)) {
    await tab.press("ArrowRight");
    await tab.sees(`#${view}`);
    check(await tab.focusIs(`#tab-${view}`), `the focus is on the tab of ${view}`);
  }
  await tab.press("ArrowRight");
  await tab.sees("#overview");
  await tab.press("End", "Home");
  await tab.sees("#overview");
}

async function evidence(tab) {
  await tab.press("2");
  await tab.sees("#run-list", "run/demo:0001");
  await tab.reach("#run-state");
  await tab.type("await");
  await tab.page.locator("#run-list tbody tr").filter({ hasText: "run/demo:0001" }).waitFor({ state: "detached" });
  await tab.sees("#run-list", "run/demo:0002");
  await tab.reach("#run-list button.link");
  await tab.press("Enter");
  await tab.sees("#run-detail", "run/demo:0002");
  await tab.sees("#run-detail", "Its inspection");
  await tab.sees("#inspection", "digests verified"); // without a further word
  await tab.sees("#inspection", "The verifiers do not agree");
  await tab.judge("run");

  await tab.reach("#report", "Shift+Tab");
  await tab.replace('{"a": 1, "a": 2}');
  await tab.excuse(/status of 400/);
  await tab.press("Control+Enter");
  await tab.sees("#inspection .notice.bad", "invalid_run_evidence");
  await tab.sees("#inspection .notice.bad", "Request id");
  await tab.judge("refused");
  await tab.press("Escape");
}

// chosen: a run that retains no report leaves no view telling of another run.
async function chosen(tab) {
  await tab.reach("#tab-evidence", "Shift+Tab"); // single keys are text in the editor
  await tab.press("1");
  await tab.reach('#overview [aria-label="Runs by state"] button.link');
  await tab.press("Enter"); // the state proposed
  await tab.page.locator("#run-list tbody tr").filter({ hasText: "run/demo:0002" }).waitFor({ state: "detached" });
  await tab.reach("#run-list button.link");
  await tab.press("Enter");
  await tab.sees("#inspection", "run/demo:0001 retains no report");
  for (const [key, view] of [["3", "#provenance-chain"], ["4", "#timeline-list"], ["1", "#overview"]]) {
    await tab.press(key);
    await tab.sees(view, "run/demo:0001 retains no report");
  }
  await tab.reach('#overview [aria-label="Runs that wait for a person"] button.link');
  await tab.press("Enter");
  await tab.sees("#inspection", "The verifiers do not agree");
}

async function story(tab) {
  await tab.reach("#tab-evidence", "Shift+Tab");
  await tab.press("ArrowRight");
  await tab.sees("#provenance-chain", "Result manifest");
  await tab.judge("provenance");
  await tab.press("ArrowRight");
  await tab.sees("#timeline-list", "authority");
  await tab.reach("#timeline-type");
  await tab.type("recomm");
  await tab.judge("timeline");
}

async function events(tab, config, svc) {
  await tab.reach("#tab-timeline", "Shift+Tab");
  await tab.press("ArrowRight");
  await tab.sees("#event-state", "live");
  await tab.sees("#event-list", "run.cancelled");
  const edges = await tab.page.evaluate(() => ["thead th.num", "tbody th.num button"].map((s) => document.querySelector(`#event-list ${s}`).getBoundingClientRect()).map((b) => [Math.round(b.left), Math.round(b.right)]));
  check(edges[1][0] >= edges[0][0] && edges[0][1] - edges[1][1] < 20, `the numbers stand at ${edges[1]}, their header at ${edges[0]}`);
  const key = `browser-${config.scheme}-${config.size}`;
  const id = `run/${key}`;
  svc("run", "create", config.projection, "--store", config.store, "--idempotency-key", key);
  await tab.sees("#event-list", id);
  await tab.reach("#event-list button.link");
  await tab.press("Enter");
  await tab.sees("#event-detail", "Payload digest");
  await tab.reach("#event-detail button");
  await tab.press("Enter");
  await tab.sees("#event-detail .notice.good", "holds this event");
  await tab.judge("events");
}

async function reference(tab) {
  await tab.press("6");
  await tab.sees("#reference", "/api/v1/runs");
  await tab.reach("#reference details:nth-child(2) summary");
  await tab.press("Enter");
  await tab.judge("reference");
}

async function verification(tab) {
  await tab.press("7");
  await tab.reach("#verify-events");
  await tab.press("Enter");
  await tab.sees("#verify-events-result", "The log is whole");
  await tab.press("Enter");
  await tab.sees("#verify-events-result", "still the same");
  await tab.reach("#any-json");
  await tab.page.keyboard.insertText('{"\\ue000":1,"\\ud83d\\ude00":2,"z":3,"Z":4,"\\u00e9":5}');
  await tab.sees("#any-result", "sha256:6a2d2162f704f56935a9359d7403e3d04382c610c1453c71e13fff39cc065685");
  await tab.judge("verification");
  check((await tab.page.locator("#integrity").innerText()).endsWith("verified"), "every digest agrees");
}

async function reload(tab) {
  await tab.page.reload();
  await tab.sees("#verification");
  check(!tab.page.url().includes("launch"), "a reload brings no code back");
}

// strangers come with a spent code and a wrong token, and learn nothing but what to do.
async function strangers(open, config) {
  const tab = await open();
  await tab.page.goto(config.launch);
  await tab.sees("#token-form", "needs the session's token");
  check(!(await tab.page.content()).includes(config.token), "the bare page holds the token");
  check(await tab.focusIs("#token"), "the focus is where the token goes");
  await tab.judge("token");
  await tab.type("short");
  await tab.press("Enter");
  await tab.sees("#token-why", "32 to 4096 characters");
  tab.excuse(/status of 403/);
  await tab.replace("x".repeat(32));
  await tab.press("Enter");
  await tab.sees("#token-why", "invalid_session_token");
  await tab.sees("#token-why", "Request id");
  await tab.judge("wrong-token");
  await tab.type(config.token);
  await tab.press("Enter");
  await tab.sees("#overview", "What this server can do");
  await tab.done();
}
