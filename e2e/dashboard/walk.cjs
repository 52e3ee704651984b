// Walks through the dashboard in Chromium as somebody would: signs in, opens every page, decides, watches, loses the
// stream and gets it back. Each page is judged by axe and must be silent on its console.
"use strict";

const { chromium } = require("playwright-core");
const fs = require("node:fs");
const { check, Failure, Tab, FLAGS } = require("../browser/drive.cjs");

const told = JSON.parse(fs.readFileSync(0, "utf8"));
const LONG = 120_000; // a training run on a busy machine
const SOON = 20_000;

// tabs are all pages that were opened: at the end none may have complained.
const tabs = [];

async function openTab(browser, name) {
  const context = await browser.newContext({ viewport: { width: told.width, height: told.height }, colorScheme: told.scheme, reducedMotion: "reduce", hasTouch: told.width < 700 });
  await context.addInitScript(() => {
    window.policyViolations = [];
    addEventListener("securitypolicyviolation", (e) => window.policyViolations.push(`${e.violatedDirective} ${e.blockedURI}`));
  });
  const tab = new Tab(await context.newPage(), told, `${told.scheme}-${told.width}${name ? `-${name}` : ""}`);
  tabs.push(tab);
  return tab;
}

async function signIn(tab, password, path = "/") {
  // Whether a cookie is there only the server knows, so the page asks; Chromium reports the 401 of a first visit.
  tab.excuse(/status of 401/);
  await tab.page.goto(told.url + path);
  await tab.sees("input[type=password]");
  await tab.page.locator("input[type=password]").fill(password);
  await tab.press("Enter");
  await tab.page.waitForURL((url) => url.pathname !== "/login", { timeout: SOON });
  await tab.sees("main h1");
  tab.excused.pop();
}

// settle waits until nothing loads any more: skeletons are gone and what moves stands still.
async function settle(tab) {
  await tab.sees("h1");
  try {
    await tab.page.waitForFunction(() => !document.querySelector(".sk, .sk-row, [aria-busy=true]"), undefined, { timeout: SOON });
  } catch {
    await tab.shot("unsettled");
    throw new Failure(`${tab.page.url()} never finishes loading`);
  }
  await tab.page.evaluate(() => Promise.all(document.getAnimations().filter((a) => a.effect?.getTiming().iterations !== Infinity).map((a) => a.finished.catch(() => undefined))));
}

const badge = (tab, state, wait = SOON) => tab.page.waitForSelector(`[data-connection=${state}]`, { state: "attached", timeout: wait });

// fileNotice tells the control plane of a change, as CI does, and returns the approval's id.
async function fileNotice() {
  const answer = await fetch(`${told.control_plane}/api/changes`, {
    method: "POST",
    headers: { authorization: `Bearer ${told.ci_token}`, "content-type": "application/json" },
    body: JSON.stringify({ model_ids: [told.model], commit_sha: told.commit, commit_msg: `Deeper trees for ${told.model}`, changed_files: [told.file] }),
  });
  const body = await answer.text();
  check(answer.ok, `the change notice was answered ${answer.status} ${body}`);
  return JSON.parse(body).created?.[0];
}

// feed waits until the activity of a page tells of the model.
async function feed(tab, words, wait = LONG) {
  try {
    await tab.page.locator(".feed li", { hasText: told.model }).filter({ hasText: words }).first().waitFor({ timeout: wait });
  } catch {
    await tab.shot("feed");
    throw new Failure(`the viewer's activity does not show ${words} of ${told.model}; it shows: ${await tab.page.locator(".feed").innerText()}`);
  }
}

const parts = {
  async login(browser) {
    const tab = await openTab(browser, "");
    tab.excuse(/status of 401/); // of the wrong password
    await tab.page.goto(`${told.url}/runs?state=failed`);
    await tab.sees("input[type=password]");
    await tab.judge("form");
    await tab.page.locator("input[type=password]").fill("wrong");
    await tab.press("Enter");
    await tab.sees("[slot=errorMessage], .st-critical");
    await tab.judge("refused");
    await tab.page.locator("input[type=password]").fill(told.admin);
    await tab.press("Enter");
    await tab.page.waitForURL((url) => url.pathname === "/runs" && url.searchParams.get("state") === "failed", { timeout: SOON });
    const stored = await tab.page.evaluate(() => JSON.parse(localStorage.getItem("dashboard_auth")));
    check(Object.keys(stored).sort().join() === "expires_at,role,token" && stored.role === "admin", `dashboard_auth holds ${Object.keys(stored)} as ${stored.role}`);
    await tab.page.getByRole("button", { name: "Account" }).click();
    await tab.page.getByRole("menuitem", { name: "Sign out" }).click();
    await tab.page.waitForURL((url) => url.pathname === "/login", { timeout: SOON });
    check(await tab.page.evaluate(() => localStorage.getItem("dashboard_auth")) === null, "the credential is still stored after signing out");
    const after = await fetch(`${told.url}/api/v1/overview`, { headers: { authorization: `Bearer ${stored.token}` } });
    check(after.status === 401, `the token is answered ${after.status} after signing out, want 401`);
  },

  async looks(browser) {
    const tab = await openTab(browser, "");
    await signIn(tab, told.admin);
    const token = (await tab.page.evaluate(() => JSON.parse(localStorage.getItem("dashboard_auth")))).token;
    const snapshot = await fetch(`${told.url}/api/v1/collab/snapshot`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify({ view: { kind: "page", title: "Overview", path: "/", taken_at: new Date().toISOString(), data: { services: [{ name: "serving", status: "ok" }] } } }),
    });
    const made = await snapshot.json();
    check(snapshot.ok && made.token, `a snapshot was answered ${snapshot.status} ${JSON.stringify(made)}`);
    const model = `/models/${told.model}`;
    const pages = {
      overview: "/", registry: "/models", model, drift: "/drift", approvals: "/approvals", runs: "/runs", alerts: "/alerts",
      versions: `${model}?tab=versions`, "model-drift": `${model}?tab=drift`, traffic: `${model}?tab=traffic`, cost: `${model}?tab=cost`,
      "model-governance": `${model}?tab=governance`, discussion: `${model}?tab=discussion`,
      promote: `${model}/promote`, "promote-metrics": `${model}/promote?version=1&step=metrics`, "promote-gate": `${model}/promote?version=1&step=gate`,
      "promote-approve": `${model}/promote?version=1&step=approve`, "promote-watch": `${model}/promote?version=1&step=watch`,
      facility: "/facility", finops: "/finops", llmops: "/llmops", governance: "/governance", health: "/health", documents: "/documents",
      search: "/search?q=jpcp", flags: "/flags", audit: "/audit", config: "/config", preferences: "/preferences", more: "/more",
      snapshot: `/snapshot/${made.token}`, "not-found": "/no-such-page",
    };
    const wrong = [];
    for (const [name, path] of Object.entries(pages)) {
      try {
        await tab.page.goto(told.url + path);
        await settle(tab);
        check(await tab.page.getByText("Switched off", { exact: true }).count() === 0, `${name}: the page is not built`);
        await tab.judge(name);
        await tab.done();
      } catch (err) {
        if (!(err instanceof Failure)) throw err;
        wrong.push(`${name}: ${err.message}`);
        tab.wrong.length = 0;
      }
    }
    check(wrong.length === 0, `${wrong.length} of ${Object.keys(pages).length} pages:\n${wrong.join("\n")}`);
  },

  async loop(browser) {
    const viewer = await openTab(browser, "viewer");
    await signIn(viewer, told.viewer);
    await badge(viewer, "live");
    const admin = await openTab(browser, "admin");
    await signIn(admin, told.admin);
    const id = await fileNotice();
    await feed(viewer, /waits for approval/);
    await admin.page.getByRole("link", { name: "Approvals" }).first().click();
    await admin.page.locator(".inbox a, .inbox button", { hasText: told.model }).first().click();
    await admin.sees(".diff .add", "# walked");
    await admin.judge("approval");
    check(!id || admin.page.url().includes(id), `the address ${admin.page.url()} does not name ${id}`);
    await admin.page.locator(".decide .primary").click();
    await admin.sees("[role=alertdialog]");
    await admin.judge("confirm");
    await admin.page.locator("[role=alertdialog] .primary").click();
    await feed(viewer, /approved/);
    await feed(viewer, /training started|training was asked for/);
    await admin.page.getByRole("link", { name: "Runs" }).first().click();
    await admin.sees("main", told.model);
    await admin.shot("training");
    await feed(viewer, /trained version 2|training completed/);
    await feed(viewer, /v2 promoted to Production|v2 moved to Production/);
    await viewer.judge("watched");
    await viewer.page.getByRole("link", { name: "Registry" }).first().click();
    await viewer.page.locator("main tr", { hasText: told.model }).filter({ hasText: "v2" }).first().waitFor({ timeout: LONG });
    await viewer.judge("served");
    const reloads = await viewer.page.evaluate(() => performance.getEntriesByType("navigation").length);
    check(reloads === 1, "the viewer's page was loaded again");
  },

  async keys(browser) {
    const admin = await openTab(browser, "");
    admin.excuse(/status of 401/);
    await admin.page.goto(told.url);
    await admin.sees("input[type=password]");
    await admin.reach("input[type=password]");
    await admin.type(told.admin);
    await admin.press("Enter");
    // The form has a heading too: keys pressed before it is gone would be typed into it.
    await admin.page.waitForURL((url) => url.pathname !== "/login", { timeout: SOON });
    await admin.sees("main h1");
    await fileNotice();
    await admin.press("g", "a");
    await admin.page.waitForURL((url) => url.pathname === "/approvals");
    await admin.sees(".inbox", told.model);
    // The newest comes first or last: walk until the detail is that of the model.
    for (let i = 0; i < 20 && !(await admin.page.locator(".detail h2", { hasText: told.model }).count()); i++) await admin.press("j");
    await admin.sees(".detail h2", told.model);
    await admin.sees(".diff .add", "# walked");
    await admin.press("a");
    await admin.sees("[role=alertdialog]");
    await admin.reach("[role=alertdialog] .primary");
    await admin.press("Enter");
    await admin.page.waitForSelector("[role=alertdialog]", { state: "detached", timeout: SOON });
    await admin.press("g", "m");
    await admin.page.waitForURL((url) => url.pathname === "/models");
    await admin.page.locator("main tr", { hasText: told.model }).filter({ hasText: "v2" }).first().waitFor({ timeout: LONG });
    await admin.judge("promoted");
    await admin.press("?");
    await admin.sees("[role=dialog]", "Keys");
    await admin.press("Escape");
    await admin.press("Control+k");
    await admin.sees("[cmdk-input]");
    await admin.judge("palette");
    await admin.type(told.model);
    await admin.press("Enter");
    await admin.page.waitForURL((url) => url.pathname === `/models/${told.model}`);
  },

  async cut(browser) {
    const tab = await openTab(browser, "");
    tab.excuse(/net::ERR_FAILED/); // of the stream that is cut
    tab.excuse(/status of 404/); // the notice names a commit that the model repository does not have: no diff
    let cut = false;
    await tab.page.route("**/api/v1/stream", (route) => (cut ? route.abort() : route.continue()));
    await signIn(tab, told.viewer, "/approvals");
    await badge(tab, "live");
    cut = true;
    // What the browser says when the network changes: the page connects again at once, and cannot.
    await tab.page.evaluate(() => dispatchEvent(new Event("online")));
    await badge(tab, "polling", 60_000);
    await tab.judge("polling");
    await fileNotice();
    await tab.page.locator(".inbox", { hasText: told.model }).waitFor({ timeout: 15_000 });
    cut = false;
    await tab.page.getByRole("button", { name: "Reconnect now" }).click();
    await badge(tab, "live", 40_000);
    await tab.judge("live");
  },

  async assistant(browser) {
    const tab = await openTab(browser, "");
    await signIn(tab, told.admin, "/models");
    await settle(tab);
    await tab.reach("#page-title, main a, main button, main input");
    await tab.page.getByRole("button", { name: "Cluster assistant" }).focus();
    await tab.press(".");
    await tab.sees(".drawer .welcome");
    await tab.judge("welcome");
    const idle = () => tab.page.waitForFunction(() => document.querySelector(".talk")?.getAttribute("aria-busy") === "false", undefined, { timeout: LONG });
    await tab.type("Why are pods failing in shop?");
    await tab.press("Enter");
    await tab.sees(".drawer .prose", "DATABASE_URL");
    await idle();
    await tab.judge("answer");
    await tab.type("Restart the web deployment in shop");
    await tab.press("Enter");
    await tab.sees(".drawer .card .diff .add", "restartedAt");
    await idle();
    await tab.judge("card");
    await tab.page.reload();
    await tab.sees(".drawer .card .diff .add", "restartedAt");
    await tab.sees(".drawer .ask-q", "Why are pods failing in shop?");
    await tab.page.locator(".drawer .card footer .primary").click();
    await tab.sees("[role=alertdialog]");
    await tab.judge("confirm");
    await tab.page.locator("[role=alertdialog] .primary").click();
    await tab.page.waitForSelector(".drawer .card[data-state=succeeded]", { timeout: LONG });
    await idle();
    await tab.judge("done");
    await tab.page.locator(".drawer textarea").focus();
    await tab.press("Escape");
    await tab.page.waitForSelector(".drawer", { state: "detached" });
    await tab.page.getByRole("button", { name: "Cluster assistant" }).click();
    await tab.sees(".drawer textarea");
    await tab.press("Escape");
    await tab.page.waitForFunction(() => document.activeElement?.getAttribute("aria-label") === "Cluster assistant", undefined, { timeout: SOON });
  },
};

(async () => {
  fs.mkdirSync(told.shots, { recursive: true });
  const browser = await chromium.launch({ executablePath: told.chromium, args: FLAGS, chromiumSandbox: false });
  const wrong = [];
  try {
    await parts[told.part](browser);
  } catch (err) {
    for (const tab of tabs) await tab.shot("failed").catch(() => undefined);
    wrong.push(err instanceof Failure ? err.message : err.stack);
  }
  for (const tab of tabs) await tab.done().catch((err) => wrong.push(`${tab.label}: ${err.message}`));
  await browser.close();
  for (const sentence of wrong) console.error(sentence);
  process.exitCode = wrong.length ? 1 : 0;
})();
