// What the walks through the dashboard share: tabs that note what goes wrong in them, and steps that wait for what they
// need before they go on. A step that is too early on a slow machine types into the page before.
"use strict";

const { chromium } = require("playwright-core");
const fs = require("node:fs");
const { check, Failure, Tab, FLAGS } = require("../browser/drive.cjs");

const told = JSON.parse(fs.readFileSync(0, "utf8"));
const LONG = 300_000; // a training run on a busy machine
const SOON = 60_000; // an answer on a busy machine
const TRIES = 5;

// The only entries that the dashboard may keep in the browser. dashboard_auth holds the person's own token.
const KEPT = { local: /^(dashboard_auth$|platform\.)/, session: /^(platform\.|tsr-)/ };

// tabs are all that were opened: at the end none may have complained.
const tabs = [];

// readStorage is all that scripts of the page can read.
const readStorage = (page) => page.evaluate(async () => {
  const settled = (request) => new Promise((done, failed) => { request.onsuccess = () => done(request.result); request.onerror = () => failed(request.error); });
  const found = { local: { ...localStorage }, session: { ...sessionStorage }, cookie: document.cookie, databases: [], caches: [] };
  for (const { name } of await indexedDB.databases()) {
    const db = await settled(indexedDB.open(name));
    for (const store of db.objectStoreNames) found.databases.push([name, store, await settled(db.transaction(store).objectStore(store).getAll())]);
    db.close();
  }
  for (const name of await caches.keys()) {
    const cache = await caches.open(name);
    for (const request of await cache.keys()) found.caches.push([name, request.url, await (await cache.match(request)).text()]);
  }
  return found;
});

class DashboardTab extends Tab {
  constructor(page, label) {
    super(page, told, label);
    this.reads = new Set(); // under way
    this.answers = []; // of the API, as text
    this.stored = []; // [key, value] of each write to the browser's storage, also of what was taken out again
    this.secrets = { ...told.secrets }; // by name; more may be added
    page.setDefaultTimeout(SOON);
    page.on("request", (r) => {
      const { pathname } = new URL(r.url());
      if (["fetch", "xhr", "script", "stylesheet"].includes(r.resourceType()) && !/^\/api\/v1\/(stream|assistant)/.test(pathname)) this.reads.add(r);
    });
    for (const end of ["requestfinished", "requestfailed"]) page.on(end, (r) => this.reads.delete(r));
    page.on("response", (r) => this.keepAnswer(r));
  }

  async keepAnswer(r) {
    const u = new URL(r.url());
    const stream = (r.headers()["content-type"] ?? "").startsWith("text/event-stream"); // without an end
    if (u.origin !== told.url || !u.pathname.startsWith("/api/") || u.pathname === "/api/auth/login" || stream) return;
    try { this.answers.push(`${r.request().method()} ${r.url()} ${await r.text()}`); } catch { /* the page was left before it had the answer */ }
  }

  // open loads a page and waits for nothing.
  async open(path) {
    this.reads.clear(); // those of the page before are cut off
    await this.page.goto(told.url + path);
  }

  // ready waits for the frame around every page but that of the login, which has a heading in main too.
  async ready() { await this.sees(".app main h1"); }

  // at waits for the page of a path; its predecessor is still drawn when the address changes.
  async at(path, heading) {
    await this.page.waitForURL((url) => url.pathname === path, { timeout: SOON });
    await this.sees(".app main h1", heading);
  }

  // settle waits until nothing loads any more: no request is under way, skeletons are gone and what moves stands still.
  async settle() {
    await this.sees("h1");
    const isDrawn = () => !document.querySelector(".sk, .sk-row, [aria-busy=true]");
    const until = Date.now() + SOON;
    for (;;) {
      const drawn = await this.page.evaluate(isDrawn);
      if (drawn && this.reads.size === 0) {
        // What the last answer brought is in the next frame, and may ask for more.
        await this.page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));
        if (this.reads.size === 0 && await this.page.evaluate(isDrawn)) break;
      } else if (Date.now() > until) {
        await this.shot("unsettled");
        throw new Failure(`${this.page.url()} never finishes loading; under way: ${[...this.reads].map((r) => r.url()).join(" ") || "nothing, but a skeleton is shown"}`);
      } else await this.page.waitForTimeout(50);
    }
    await this.page.evaluate(() => Promise.all(document.getAnimations().filter((a) => a.effect?.getTiming().iterations !== Infinity).map((a) => a.finished.catch(() => undefined))));
  }

  // focused waits until keys go to the selector: what is in sight may get the focus a moment later.
  async focused(selector) {
    try {
      await this.page.waitForFunction((s) => document.activeElement?.matches(s), selector, { timeout: SOON });
    } catch {
      throw new Failure(`${selector} never gets the focus; ${await this.page.evaluate(() => document.activeElement?.outerHTML.slice(0, 200))} has it`);
    }
  }

  // gone waits until the selector is not there any more.
  async gone(selector) { await this.page.waitForSelector(selector, { state: "detached", timeout: SOON }); }

  // chord presses keys that belong together until the page of the path is open: between them a slow page may take too long.
  async chord(keys, path) {
    await this.page.waitForFunction(() => !document.querySelector("[role=dialog], [role=alertdialog], [role=menu], [role=listbox]") && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName ?? ""), undefined, { timeout: SOON });
    for (let i = 0; i < TRIES; i++) {
      await this.press(...keys);
      try {
        await this.page.waitForURL((url) => url.pathname === path, { timeout: SOON / TRIES });
        return;
      } catch (err) {
        if (err.name !== "TimeoutError") throw err;
      }
    }
    throw new Failure(`${keys.join(" ")} does not lead to ${path}`);
  }

  async badge(state, wait = SOON) { await this.page.waitForSelector(`[data-connection=${state}]`, { state: "attached", timeout: wait }); }

  async signIn(password, path = "/") {
    // Whether a cookie is there only the server knows, so the page asks; Chromium reports the 401 of a first visit.
    this.excuse(/status of 401/);
    await this.open(path);
    const field = await this.sees("main.login input[type=password]");
    await field.fill(password);
    await field.press("Enter");
    await this.gone("main.login");
    await this.ready();
    this.excused.pop();
  }

  // checkSecrets looks for each secret in what scripts of the page can read and in what they were answered.
  async checkSecrets() {
    if (new URL(this.page.url()).origin !== told.url) return;
    const found = await readStorage(this.page);
    for (const place of ["local", "session"]) {
      const strange = Object.keys(found[place]).filter((key) => !KEPT[place].test(key));
      check(strange.length === 0, `${place}Storage keeps ${strange}`);
    }
    check(found.cookie === "", `scripts can read the cookies ${found.cookie}`);
    check(found.databases.length === 0 && found.caches.length === 0, `the page keeps data: ${JSON.stringify([found.databases, found.caches]).slice(0, 500)}`);
    const secrets = { ...this.secrets };
    if (found.local.dashboard_auth) {
      const { token, ...rest } = JSON.parse(found.local.dashboard_auth);
      check(Object.keys(rest).sort().join() === "expires_at,role", `dashboard_auth holds ${Object.keys(rest)} beside the token`);
      secrets["the session's token"] = token;
      found.local.dashboard_auth = JSON.stringify(rest);
    }
    for (const c of await this.page.context().cookies(told.url)) {
      check(c.httpOnly, `the cookie ${c.name} is not HttpOnly`);
      for (const part of c.value.split(".")) if (part.length >= 16) secrets[`a part of the cookie ${c.name}`] = part;
    }
    check(Object.keys(secrets).length > 10, `only ${Object.keys(secrets)} are searched for`);
    const written = JSON.stringify(this.stored.filter(([key]) => key !== "dashboard_auth"));
    const places = { "the browser's storage": JSON.stringify(found), "what was stored for a while": written, "the answers": this.answers.join("\n"), "the address": this.page.url() };
    for (const [name, secret] of Object.entries(secrets)) {
      check(secret.length >= 16, `${name} has ${secret.length} characters; this search would find it anywhere`);
      for (const form of [secret, encodeURIComponent(secret), Buffer.from(secret).toString("base64"), Buffer.from(secret).toString("hex")]) {
        for (const [place, text] of Object.entries(places)) check(!text.includes(form), `${name} is in ${place}`);
      }
    }
    this.answers.length = 0; // searched
  }

  async done() {
    await this.checkSecrets();
    await super.done();
  }
}

async function openTab(browser, name) {
  const context = await browser.newContext({ viewport: { width: told.width, height: told.height }, colorScheme: told.scheme, reducedMotion: "reduce", hasTouch: told.width < 700 });
  await context.addInitScript(() => {
    window.policyViolations = [];
    addEventListener("securitypolicyviolation", (e) => window.policyViolations.push(`${e.violatedDirective} ${e.blockedURI}`));
  });
  const page = await context.newPage();
  await page.exposeBinding("noteStored", (_, key, value) => { tab.stored.push([key, value]); });
  await page.addInitScript(() => {
    const { setItem } = Storage.prototype;
    Storage.prototype.setItem = function (key, value) {
      window.noteStored(key, value);
      return setItem.call(this, key, value);
    };
  });
  const slow = Number(process.env.E2E_SLOW_BROWSER); // so many times: finds steps that do not wait for what they need
  if (slow > 1) await (await context.newCDPSession(page)).send("Emulation.setCPUThrottlingRate", { rate: slow });
  const tab = new DashboardTab(page, `${told.scheme}-${told.width}${name ? `-${name}` : ""}`);
  tabs.push(tab);
  return tab;
}

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

// play runs the part that was asked for in a Chromium of its own.
async function play(parts) {
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
}

module.exports = { told, openTab, fileNotice, play, check, Failure, LONG, SOON };
