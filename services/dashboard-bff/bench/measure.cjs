// Measures the dashboard in Chromium as its user sees it: the first screen with nothing cached, scrolling, filtering.
// Reads what to do from standard input as JSON and prints the figures, in milliseconds, as JSON.
"use strict";

const { chromium } = require("playwright-core");
const fs = require("node:fs");

const told = JSON.parse(fs.readFileSync(0, "utf8"));
const PATIENCE = 30_000;
const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

const sorted = (values) => [...values].sort((a, b) => a - b);
const quantile = (values, q) => sorted(values)[Math.min(values.length - 1, Math.floor(q * values.length))];

// painted resolves with the time since the navigation began at which the selector's element had been painted.
const painted = (page, selector) =>
  page.evaluate(
    (s) =>
      new Promise((resolve) => {
        const look = () => {
          if (!document.querySelector(s)) return requestAnimationFrame(look);
          requestAnimationFrame(() => setTimeout(() => resolve(performance.now())));
        };
        look();
      }),
    selector,
  );

async function signIn(browser) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  await page.goto(`${told.url}/`);
  await page.locator("input[type=password]").fill(told.password);
  await page.keyboard.press("Enter");
  await page.waitForURL((url) => url.pathname !== "/login", { timeout: PATIENCE });
  await page.waitForSelector("main h1", { timeout: PATIENCE });
  const state = await context.storageState();
  await context.close();
  return state;
}

// firstScreen opens a page in a context of its own, whose cache is empty.
async function firstScreen(browser, state, path, selector) {
  const context = await browser.newContext({ storageState: state, viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  await page.goto(told.url + path, { waitUntil: "commit" });
  const took = await painted(page, selector);
  await context.close();
  return took;
}

// scroll moves the table by a step in each frame, from the top on, and returns the times between frames.
const scroll = (page) =>
  page.evaluate(
    () =>
      new Promise((resolve) => {
        const box = document.querySelector(".tablewrap.virtual");
        const frames = [];
        let longTasks = 0;
        const watch = new PerformanceObserver((list) => (longTasks += list.getEntries().length));
        watch.observe({ type: "longtask" });
        let last = performance.now();
        const step = (now) => {
          frames.push(now - last);
          last = now;
          box.scrollTop += 400;
          if (frames.length < 300) return requestAnimationFrame(step);
          setTimeout(() => {
            watch.disconnect();
            resolve({ frames: frames.slice(1), longTasks, rows: box.querySelectorAll("tr[data-key]").length, end: box.scrollTop });
          }, 100);
        };
        requestAnimationFrame(step);
      }),
  );

// idleFrames are the times between frames of a page that does nothing: what the machine allows.
const idleFrames = (page) =>
  page.evaluate(
    () =>
      new Promise((resolve) => {
        const frames = [];
        let last = performance.now();
        const step = (now) => {
          frames.push(now - last);
          last = now;
          if (frames.length < 120) requestAnimationFrame(step);
          else resolve(frames.slice(1));
        };
        requestAnimationFrame(step);
      }),
  );

// filter types text letter by letter and returns, for each, the time from the key to the changed rows on the screen.
async function filter(page, text) {
  await page.evaluate(() => {
    window.filtered = [];
    let pressed = 0;
    addEventListener("keydown", (e) => (pressed = e.timeStamp), true);
    new MutationObserver(() => {
      if (!pressed) return;
      const since = pressed;
      pressed = 0;
      requestAnimationFrame(() => setTimeout(() => window.filtered.push(performance.now() - since)));
    }).observe(document.querySelector(".tablewrap.virtual table"), { attributes: true, attributeFilter: ["aria-rowcount"] });
  });
  const input = page.locator("main input[type=text], main input[type=search], main .fi input").first();
  await input.focus();
  for (let i = 0; i < text.length; i++) {
    await page.keyboard.press(text[i]);
    await page.waitForFunction((n) => window.filtered.length >= n, i + 1, { timeout: PATIENCE });
  }
  return page.evaluate(() => window.filtered);
}

async function main() {
  const browser = await chromium.launch({ executablePath: told.chromium, args: FLAGS });
  try {
    const state = await signIn(browser);
    const overview = [], registry = [];
    for (let i = 0; i < told.rounds; i++) {
      overview.push(await firstScreen(browser, state, "/", told.overview));
      registry.push(await firstScreen(browser, state, "/models", "table[data-rows] tr[data-key]"));
    }
    const context = await browser.newContext({ storageState: state, viewport: { width: 1440, height: 900 } });
    const page = await context.newPage();
    await page.goto(`${told.url}/models`);
    await page.waitForSelector(".tablewrap.virtual tr[data-key]", { timeout: PATIENCE });
    await page.waitForLoadState("networkidle").catch(() => undefined); // the event stream stays open
    const idle = await idleFrames(page);
    const moved = await scroll(page);
    const letters = [];
    // Each letter narrows the list further, and it stays virtual.
    for (let i = 0; i < told.rounds; i++) {
      letters.push(...(await filter(page, "49")));
      await page.keyboard.press("Escape");
      await page.waitForFunction((n) => Number(document.querySelector("table[data-rows]").getAttribute("aria-rowcount")) > n, told.models, { timeout: PATIENCE });
    }
    console.log(JSON.stringify({
      "overview-ms": quantile(overview, 0.5), "registry-ms": quantile(registry, 0.5),
      "idle-frame-ms": quantile(idle, 0.5), "idle-frame-p95-ms": quantile(idle, 0.95),
      "scroll-frame-ms": quantile(moved.frames, 0.5), "scroll-frame-p95-ms": quantile(moved.frames, 0.95), "long-tasks": moved.longTasks, "rows-drawn": moved.rows,
      "filter-ms": quantile(letters, 0.5), "filter-max-ms": Math.max(...letters),
    }));
  } finally {
    await browser.close();
  }
}

main().catch((err) => {
  console.error(err);
  process.exit(1);
});
