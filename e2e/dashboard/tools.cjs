// Opens the tools on the tools origin in Chromium, as somebody would: pages show, links lead on, calls and sockets work,
// and nothing goes out to another origin. A hostile page reaches the dashboard from neither origin.
"use strict";

const { chromium } = require("playwright-core");
const fs = require("node:fs");
const path = require("node:path");

const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const WAIT = 60_000; // on a machine that others work on

const told = JSON.parse(fs.readFileSync(0, "utf8"));
const faults = [];

function check(ok, sentence) { if (!ok) faults.push(sentence); }

// openTab is a fresh reader who notes what the page did.
async function openTab(browser, name, headers) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, extraHTTPHeaders: headers });
  const page = await context.newPage();
  page.setDefaultTimeout(WAIT);
  const seen = { calls: [], failed: [], sockets: [] };
  // Also what is never answered: the machine of the test may have no way out.
  page.on("request", (r) => {
    const u = new URL(r.url());
    check(!u.protocol.startsWith("http") || u.origin === told.tools || u.origin === told.dashboard, `${name}: a request went out to ${u.origin}${u.pathname}`);
  });
  page.on("response", (r) => {
    const u = new URL(r.url());
    if (!u.protocol.startsWith("http")) return;
    check(u.origin === told.tools || u.origin === told.dashboard, `${name}: an answer came from ${u.origin}`);
    seen.calls.push({ method: r.request().method(), path: u.pathname, status: r.status() });
  });
  page.on("websocket", (w) => {
    seen.sockets.push(w.url());
    check(new URL(w.url()).host === new URL(told.tools).host, `${name}: a socket goes to ${w.url()}`);
    w.on("socketerror", (err) => faults.push(`${name}: socket ${w.url()}: ${err}`));
  });
  page.on("pageerror", (err) => seen.failed.push(String(err)));
  const shot = () => page.screenshot({ path: path.join(told.shots, `tools-${name}.png`) });
  const shows = async (text) => {
    try {
      await page.getByText(text, { exact: false }).filter({ visible: true }).first().waitFor({ timeout: WAIT });
    } catch {
      await shot();
      throw new Error(`${name} at ${page.url()} does not show ${text}; it shows: ${(await page.locator("body").innerText()).slice(0, 800)}`);
    }
  };
  return { context, page, seen, shot, shows };
}

// ticket opens a service on the tools origin, once and soon: it is taken when it is needed.
async function ticket(service) {
  const answer = await fetch(`${told.dashboard}/api/proxy-ticket`, {
    method: "POST",
    headers: { authorization: `Bearer ${told.token}`, "content-type": "application/json" },
    body: JSON.stringify({ service }),
  });
  if (!answer.ok) throw new Error(`a ticket for ${service} was answered ${answer.status} ${await answer.text()}`);
  return (await answer.json()).url;
}

// allServed holds the calls of a page against what the proxy must have answered.
function allServed(name, seen, allowed) {
  for (const { method, path: p, status } of seen.calls) {
    const excused = allowed.some((form) => form.test(`${method} ${status} ${p}`));
    check(status < 400 || excused, `${name}: ${method} ${p} was answered with ${status}`);
  }
  check(seen.failed.length === 0, `${name}: the page failed: ${seen.failed.join("; ")}`);
}

async function useTracker(browser) {
  const { context, page, seen, shot, shows } = await openTab(browser, "tracker");
  const opened = await ticket("tracker");
  await page.goto(opened);
  check(page.url().startsWith(`${told.tools}/api/proxy/tracker/`), `tracker: the ticket led to ${page.url()}`);
  await page.getByRole("link", { name: "Experiments" }).first().click({ timeout: WAIT });
  await shows(told.experiment);
  await page.getByRole("link", { name: told.experiment }).first().click({ timeout: WAIT });
  await page.waitForURL(new RegExp(`/experiments/${told.experiment_id}\\b`), { timeout: WAIT });
  await page.goto(`${told.tools}/api/proxy/tracker/#/experiments/${told.experiment_id}/runs/${told.run_id}`);
  // The list before shows the run's name too; what was recorded is on the run's own page alone.
  await shows(told.run_id);
  await shows(told.metric);
  await page.reload();
  await shows(told.run_id);
  await shows(told.param);
  // The tracker's page of models greets its first visitors with a dialog over everything. Its button is pressed: a key that
  // comes before the dialog has the focus is lost.
  await page.addLocatorHandler(page.getByRole("dialog"), (dialog) => dialog.getByRole("button", { name: "Close" }).click());
  await page.goto(`${told.tools}/api/proxy/tracker/#/models`);
  await page.getByRole("link", { name: told.registered }).first().click();
  await page.waitForURL(new RegExp(`#/models/${told.registered}`), { timeout: WAIT });
  await shows(told.description);
  check(seen.calls.some((c) => c.method === "POST" && c.path.endsWith("/search") && c.status === 200), "tracker: no search call was answered with 200");
  // Without a login of its own the tracker has no users to tell of.
  allServed("tracker", seen, [/^GET 404 .*\/users\/current$/]);
  await shot();
  const reused = await page.goto(opened);
  check(reused.status() === 401, `tracker: a spent ticket was answered with ${reused.status()}`);
  await context.close();
}

async function useOrchestrator(browser) {
  const { context, page, seen, shot, shows } = await openTab(browser, "orchestrator");
  await page.goto(await ticket("orchestrator"));
  await page.getByRole("link", { name: "Flows", exact: true }).first().click({ timeout: WAIT });
  await shows(told.flow);
  await page.reload();
  await shows(told.flow);
  await page.getByRole("link", { name: told.flow }).first().click({ timeout: WAIT });
  await page.waitForURL(/\/flows\/flow\//, { timeout: WAIT });
  await shows(told.flow_run); // of this flow: the list does not name it
  // The older pages follow another scheme: a router that needs a base, and sockets.
  await page.goto(`${told.tools}/api/proxy/orchestrator/flows`);
  await shows(told.flow);
  await page.goto(`${told.tools}/api/proxy/orchestrator/events`);
  await shows("event");
  allServed("orchestrator", seen, [/^GET 404 .*\/favicon/]);
  await shot();
  const socket = await page.evaluate(() => new Promise((done) => {
    const ws = new WebSocket(`ws://${location.host}/api/proxy/orchestrator/api/events/out`, ["prefect"]);
    ws.onopen = () => { ws.send(JSON.stringify({ type: "auth", token: null })); };
    ws.onmessage = (m) => { done(JSON.parse(m.data).type); ws.close(); };
    ws.onclose = (e) => done(`closed with ${e.code}`);
  }));
  check(socket === "auth_success", `orchestrator: the events' socket said ${socket}`);
  await context.close();
}

async function useMetricsStore(browser) {
  const { context, page, seen, shot, shows } = await openTab(browser, "metrics-store");
  await page.goto(await ticket("metrics_store"));
  await page.waitForURL(`${told.tools}/api/proxy/metrics_store/classic/graph`);
  await page.locator("textarea[name=expr]").fill("up");
  await page.getByRole("button", { name: "Execute" }).click();
  await page.locator(".console td", { hasText: told.instance }).first().waitFor();
  await page.getByRole("tab", { name: "Graph" }).first().click();
  await page.locator(".graph_area svg path").first().waitFor({ state: "attached" });
  check(seen.calls.some((c) => c.path === "/api/proxy/metrics_store/api/v1/query" && c.status === 200), "metrics store: no query was answered with 200");
  check(seen.calls.some((c) => c.path === "/api/proxy/metrics_store/api/v1/query_range" && c.status === 200), "metrics store: no range was answered with 200");
  await shot();
  await page.getByRole("button", { name: "Status" }).click();
  await page.getByRole("link", { name: "Targets" }).click();
  await page.waitForURL(`${told.tools}/api/proxy/metrics_store/classic/targets`);
  await shows(told.instance);
  // Debian's package serves a Popper that is a module to a page that loads it as a script; without the proxy it says so too.
  seen.failed = seen.failed.filter((err) => !/Unexpected token 'export'|require Popper/.test(err));
  allServed("metrics store", seen, []);
  await context.close();
}

async function meetHostilePage(browser) {
  const onTools = await openTab(browser, "hostile-tools");
  await onTools.page.goto(await ticket("dashboards"));
  await onTools.page.goto(`${onTools.page.url()}#${told.dashboard}`);
  await onTools.page.reload();
  await onTools.page.waitForFunction(() => document.title.startsWith("ran"), null, { timeout: WAIT });
  check(await onTools.page.title() === "ran", `a hostile page on the tools origin got: ${await onTools.page.title()}`);
  await onTools.context.close();

  const inside = await openTab(browser, "hostile-dashboard", { Authorization: `Bearer ${told.token}` });
  const answer = await inside.page.goto(`${told.dashboard}/api/proxy/dashboards/#${told.dashboard}`);
  check(answer.status() === 200, `the hostile page on the dashboard's origin: ${answer.status()}`);
  check(answer.headers()["content-security-policy"] === "sandbox allow-forms allow-popups", `its policy is ${answer.headers()["content-security-policy"]}`);
  await inside.shows("a page");
  check(await inside.page.title() === "untouched", `a hostile page on the dashboard's origin got: ${await inside.page.title()}`);
  await inside.context.close();
}

(async () => {
  fs.mkdirSync(told.shots, { recursive: true });
  const browser = await chromium.launch({ executablePath: told.chromium, args: FLAGS, chromiumSandbox: false });
  try {
    await useTracker(browser);
    await useOrchestrator(browser);
    await useMetricsStore(browser);
    await meetHostilePage(browser);
  } catch (err) {
    faults.push(err.stack);
  } finally {
    await browser.close();
  }
  for (const f of faults) console.error(f);
  process.exitCode = faults.length ? 1 : 0;
})();
