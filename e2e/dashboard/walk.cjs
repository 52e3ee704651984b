// Walks through the dashboard in Chromium as somebody would: signs in, opens every page, decides, watches, loses the
// stream and gets it back. Each page is judged by axe and must be silent on its console.
"use strict";

const { told, openTab, fileNotice, play, check, Failure, LONG, SOON } = require("./tabs.cjs");

// feed waits until the activity of a page tells of the model.
async function feed(tab, words, wait = LONG) {
  try {
    await tab.page.locator(".feed li", { hasText: told.model }).filter({ hasText: words }).first().waitFor({ timeout: wait });
  } catch {
    await tab.shot("feed");
    throw new Failure(`the viewer's activity does not show ${words} of ${told.model}; it shows: ${await tab.page.locator(".feed").innerText()}`);
  }
}

// walkTo presses j and k until the record of the model is the chosen one. Each step waits for the one before, or it would
// walk past.
async function walkTo(tab, model) {
  const read = () => tab.page.evaluate((text) => {
    const items = [...document.querySelectorAll(".inbox [data-item]")];
    return { at: items.findIndex((item) => item.ariaCurrent === "true"), to: items.findIndex((item) => item.textContent.includes(text)) };
  }, model);
  for (let i = 0; i < 40; i++) {
    const { at, to } = await read();
    if (at === to && at >= 0) return;
    await tab.press(at < to ? "j" : "k");
    await tab.page.waitForFunction((old) => [...document.querySelectorAll(".inbox [data-item]")].findIndex((item) => item.ariaCurrent === "true") !== old, at, { timeout: SOON / 10 }).catch(() => undefined); // a key may be lost, and the list change
  }
  throw new Failure(`j and k do not lead to ${model}`);
}

const parts = {
  async login(browser) {
    const tab = await openTab(browser, "");
    tab.excuse(/status of 401/); // of the wrong password
    await tab.open("/runs?state=failed");
    const field = await tab.sees("main.login input[type=password]");
    await tab.judge("form");
    await field.fill("wrong");
    await field.press("Enter");
    await tab.sees("main.login .st-critical");
    await tab.judge("refused");
    await field.fill(told.admin);
    await field.press("Enter");
    await tab.gone("main.login");
    await tab.at("/runs", "Runs");
    check(new URL(tab.page.url()).searchParams.get("state") === "failed", `signing in leads to ${tab.page.url()}, not to the page that was asked for`);
    const stored = await tab.page.evaluate(() => JSON.parse(localStorage.getItem("dashboard_auth")));
    check(Object.keys(stored).sort().join() === "expires_at,role,token" && stored.role === "admin", `dashboard_auth holds ${Object.keys(stored)} as ${stored.role}`);
    await tab.page.getByRole("button", { name: "Account" }).click();
    await tab.page.getByRole("menuitem", { name: "Sign out" }).click();
    await tab.page.waitForURL((url) => url.pathname === "/login", { timeout: SOON });
    await tab.sees("main.login input[type=password]");
    check(await tab.page.evaluate(() => localStorage.getItem("dashboard_auth")) === null, "the credential is still stored after signing out");
    const after = await fetch(`${told.url}/api/v1/overview`, { headers: { authorization: `Bearer ${stored.token}` } });
    tab.secrets["the ended session's token"] = stored.token;
    check(after.status === 401, `the token is answered ${after.status} after signing out, want 401`);
  },

  async looks(browser) {
    const tab = await openTab(browser, "");
    await tab.signIn(told.admin);
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
        await tab.open(path);
        await tab.settle();
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
    await viewer.signIn(told.viewer);
    await viewer.badge("live");
    await viewer.page.evaluate(() => { window.openedOnce = true; });
    const admin = await openTab(browser, "admin");
    await admin.signIn(told.admin);
    const id = await fileNotice();
    await feed(viewer, /requested the training of/);
    await admin.page.getByRole("link", { name: "Approvals" }).first().click();
    await admin.at("/approvals", "Approvals");
    await admin.page.locator(".inbox a", { hasText: told.model }).first().click();
    await admin.sees(".detail h2", told.model); // until then another record's difference may be shown
    await admin.sees(".diff .add", "# walked");
    await admin.judge("approval");
    if (id) await admin.page.waitForURL((url) => url.searchParams.get("id") === id, { timeout: SOON });
    await admin.page.locator(".decide .primary").click();
    await admin.sees("[role=alertdialog]");
    await admin.judge("confirm");
    await admin.page.locator("[role=alertdialog] .primary").click();
    await feed(viewer, /approved/);
    await feed(viewer, /requested training of|training started|it is running/);
    await admin.gone("[role=alertdialog]"); // until then it covers the page
    await admin.page.getByRole("link", { name: "Runs" }).first().click();
    await admin.at("/runs", "Runs");
    await admin.sees("main", told.model);
    await admin.shot("training");
    await feed(viewer, /version 2 is trained|trained version 2|training completed|it has completed/);
    await feed(viewer, /v2 (promoted |moved )?to Production/);
    await viewer.judge("watched");
    await viewer.page.getByRole("link", { name: "Registry" }).first().click();
    await viewer.at("/models", "Registry");
    await viewer.page.locator("main tr", { hasText: told.model }).filter({ hasText: "v2" }).first().waitFor({ timeout: LONG });
    await viewer.judge("served");
    check(await viewer.page.evaluate(() => window.openedOnce === true), "the viewer's page was loaded again");
  },

  async keys(browser) {
    const admin = await openTab(browser, "");
    admin.excuse(/status of 401/);
    await admin.open("/");
    await admin.sees("main.login input[type=password]");
    await admin.reach("input[type=password]");
    await admin.type(told.admin);
    await admin.press("Enter");
    // The form has a heading too: keys pressed before it is gone would be typed into it.
    await admin.gone("main.login");
    await admin.ready();
    await fileNotice();
    await admin.chord(["g", "a"], "/approvals");
    await admin.sees(".inbox", told.model);
    await walkTo(admin, told.model);
    await admin.sees(".detail h2", told.model);
    await admin.sees(".diff .add", "# walked");
    await admin.press("a");
    await admin.sees("[role=alertdialog]");
    await admin.focused("[role=alertdialog] *");
    await admin.reach("[role=alertdialog] .primary");
    await admin.press("Enter");
    await admin.gone("[role=alertdialog]");
    await admin.chord(["g", "m"], "/models");
    await admin.page.locator("main tr", { hasText: told.model }).filter({ hasText: "v2" }).first().waitFor({ timeout: LONG });
    await admin.judge("promoted");
    await admin.press("?");
    await admin.sees("[role=dialog]", "Keys");
    await admin.focused("[role=dialog], [role=dialog] *"); // before that Escape goes to the page
    await admin.press("Escape");
    await admin.gone("[role=dialog]");
    await admin.press("Control+k");
    await admin.focused("[cmdk-input]");
    await admin.judge("palette");
    await admin.type(told.model);
    // Until the server has answered, the chosen row is that of the search for what was typed. The search has the tracker's
    // names, which are in lower case.
    await admin.sees(`[cmdk-item][aria-selected=true] b[title="${told.model}" i]`, told.model.toLowerCase());
    await admin.press("Enter");
    await admin.page.waitForURL(new RegExp(`/models/${told.model}$`, "i"), { timeout: LONG });
  },

  async cut(browser) {
    const tab = await openTab(browser, "");
    tab.excuse(/net::ERR_FAILED/); // of the stream that is cut
    tab.excuse(/status of 404/); // the notice names a commit that the model repository does not have: no diff
    let cut = false;
    await tab.page.route("**/api/v1/stream", (route) => (cut ? route.abort() : route.continue()));
    await tab.signIn(told.viewer, "/approvals");
    await tab.badge("live");
    await tab.settle();
    const listed = tab.page.locator(".inbox", { hasText: told.model });
    check(await listed.count() === 0, `${told.model} waits for approval already: nothing new could be seen`);
    cut = true;
    // What the browser says when the network changes: the page connects again at once, and cannot.
    await tab.page.evaluate(() => dispatchEvent(new Event("online")));
    await tab.badge("polling");
    await tab.judge("polling");
    await fileNotice();
    await listed.waitFor({ timeout: SOON }); // read again every 10 s
    cut = false;
    await tab.page.getByRole("button", { name: "Reconnect now" }).click();
    await tab.badge("live");
    await tab.judge("live");
  },

  async assistant(browser) {
    const tab = await openTab(browser, "");
    await tab.signIn(told.admin, "/models");
    await tab.settle();
    await tab.reach("#page-title, main a, main button, main input");
    await tab.page.getByRole("button", { name: "Cluster assistant" }).focus();
    await tab.press(".");
    await tab.sees(".drawer .welcome");
    await tab.judge("welcome");
    const idle = () => tab.page.waitForFunction(() => document.querySelector(".talk")?.getAttribute("aria-busy") === "false", undefined, { timeout: LONG });
    await tab.focused(".drawer textarea");
    await tab.type("Why are pods failing in shop?");
    await tab.press("Enter");
    await tab.sees(".drawer .prose", "DATABASE_URL");
    await idle();
    await tab.judge("answer");
    await tab.focused(".drawer textarea");
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
    await tab.gone(".drawer");
    await tab.page.getByRole("button", { name: "Cluster assistant" }).click();
    await tab.focused(".drawer textarea"); // before that Escape goes to the page
    await tab.press("Escape");
    await tab.page.waitForFunction(() => document.activeElement?.getAttribute("aria-label") === "Cluster assistant", undefined, { timeout: SOON });
  },
};

play(parts);
