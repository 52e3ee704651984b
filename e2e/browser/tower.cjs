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
  await tab.judge("overview");

  await skipAndHelp(tab);
  await arrows(tab);
  await evidence(tab);
  await story(tab);
  await events(tab, config, svc);
  await reference(tab);
  await verification(tab);
  await reload(tab);
  await tab.done();
  await strangers(open, config);
});

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
  await tab.sees("#run-detail", "Inspect it");
  await tab.judge("run");
  await tab.reach("#run-detail button.primary");
  await tab.press("Enter");
  await tab.sees("#inspection", "digests verified");
  await tab.sees("#inspection", "The verifiers do not agree");

  await tab.reach("#report", "Shift+Tab");
  await tab.replace('{"a": 1, "a": 2}');
  await tab.excuse(/status of 400/);
  await tab.press("Control+Enter");
  await tab.sees("#inspection .notice.bad", "invalid_run_evidence");
  await tab.sees("#inspection .notice.bad", "Request id");
  await tab.judge("refused");
  await tab.press("Escape");
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
