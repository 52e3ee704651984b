// What the scenarios share: one Chromium, worked by keyboard only, judged by axe, and silent on its console.
"use strict";

const { chromium } = require("playwright-core");
const axeSource = require("axe-core").source;
const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");

const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const SIZES = { wide: { width: 1440, height: 900 }, narrow: { width: 360, height: 740 } };
const WAIT = 60_000; // on a machine that others work on

class Failure extends Error {}

function check(ok, sentence) { if (!ok) throw new Failure(sentence); }

// Tab is one page of one reader, with what went wrong in it.
class Tab {
  constructor(page, config, label) {
    Object.assign(this, { page, config, label, wrong: [], excused: [] });
    page.on("console", (m) => { if (["error", "warning"].includes(m.type())) this.complain(`console ${m.type()}: ${m.text()}`); });
    page.on("pageerror", (err) => this.complain(`uncaught: ${err.stack}`));
    page.on("request", (r) => {
      const u = new URL(r.url());
      if (u.protocol === "http:" && u.origin !== new URL(config.url).origin) this.complain(`a request went out to ${u.origin}`);
    });
  }

  complain(sentence) { if (!this.excused.some((form) => form.test(sentence))) this.wrong.push(sentence); }

  // excuse lets the browser say what it says of an answer that a scenario provokes.
  excuse(form) { this.excused.push(form); }

  async press(...keys) { for (const k of keys) await this.page.keyboard.press(k); }
  async type(text) { await this.page.keyboard.type(text); }

  async replace(text) {
    await this.press("Control+a");
    await this.page.keyboard.insertText(text);
  }

  focusIs(selector) { return this.page.evaluate((s) => document.activeElement?.matches(s) ?? false, selector); }

  // reach walks with the Tab key until the focus is on the selector: what cannot be reached so cannot be used so.
  async reach(selector, key = "Tab") {
    for (let i = 0; i < 300; i++) {
      if (await this.focusIs(selector)) return;
      await this.press(key);
    }
    throw new Failure(`${selector} is not reached by ${key}`);
  }

  async sees(selector, text) {
    const found = this.page.locator(selector).filter(text === undefined ? {} : { hasText: text }).filter({ visible: true }).first();
    try {
      await found.waitFor({ state: "visible", timeout: WAIT });
    } catch {
      await this.shot("failed");
      throw new Failure(`${selector} does not show ${text ?? "itself"}; the page shows: ${(await this.page.locator("body").innerText()).slice(0, 1500)}`);
    }
    return found;
  }

  // judge runs axe over the page as it is, and looks for what sticks out sideways.
  async judge(name) {
    // Axe is the judge's tool, not the page's: it comes in past the page's policy.
    if (!await this.page.evaluate(() => "axe" in window)) await this.page.evaluate(axeSource);
    const { violations } = await this.page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
    const found = violations.map((v) => `${v.id} (${v.impact}): ${v.help}: ${v.nodes.slice(0, 4).map((n) => `${n.target.join(" ")} ${n.any.concat(n.all).map((a) => a.message).join("; ")}`).join(" | ")}`);
    const sideways = await this.page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    await this.shot(name);
    check(found.length === 0, `${name}: axe finds\n  ${found.join("\n  ")}`);
    check(sideways <= 0, `${name}: the page is ${sideways} px wider than the window`);
  }

  async shot(name) {
    const file = path.join(this.config.shots, `${this.config.name}-${name}-${this.label}.png`);
    await this.page.screenshot({ path: file, fullPage: true });
  }

  async done() {
    const policy = await this.page.evaluate(() => window.policyViolations ?? []);
    check(policy.length === 0, `the page breaks its policy: ${policy.join("; ")}`);
    check(this.wrong.length === 0, `the console says: ${this.wrong.join("; ")}`);
  }
}

// run gives every scenario a fresh reader, for each scheme and size that the caller names.
async function run(scenario) {
  const config = JSON.parse(fs.readFileSync(0, "utf8"));
  fs.mkdirSync(config.shots, { recursive: true });
  const browser = await chromium.launch({ executablePath: config.chromium, args: FLAGS, chromiumSandbox: false });
  let failed = false;
  try {
    const label = `${config.scheme}-${config.size}`;
    const open = async () => {
      const context = await browser.newContext({ viewport: SIZES[config.size], colorScheme: config.scheme, reducedMotion: "reduce", acceptDownloads: true });
      await context.addInitScript(() => {
        window.policyViolations = [];
        addEventListener("securitypolicyviolation", (e) => window.policyViolations.push(`${e.violatedDirective} ${e.blockedURI}`));
      });
      return new Tab(await context.newPage(), config, label);
    };
    await scenario({ config, open, svc: (...args) => execFileSync(config.svc, args, { encoding: "utf8" }) });
  } catch (err) {
    failed = true;
    console.error(err instanceof Failure ? err.message : err.stack);
  } finally {
    await browser.close();
  }
  process.exitCode = failed ? 1 : 0;
}

module.exports = { run, check, Failure, Tab, FLAGS, WAIT };
