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

// changes returns the times from an input (a key or a pointer) to the next painted change of a list. act makes one
// input; sign is read before and after it, and a change is what makes it another.
async function changes(page, sign, acts, pause = 350) {
  await page.evaluate((source) => {
    const read = new Function(`return (${source})()`);
    window.changed = [];
    let began = 0, before;
    const note = (e) => {
      before = read();
      began = e.timeStamp;
    };
    addEventListener("keydown", note, true);
    addEventListener("pointerdown", note, true);
    window.beginsNow = () => {
      before = read();
      began = performance.now();
    };
    new MutationObserver(() => {
      if (!began || read() === before) return;
      const since = began;
      began = 0;
      requestAnimationFrame(() => setTimeout(() => window.changed.push(performance.now() - since)));
    }).observe(document.body, { attributes: true, childList: true, subtree: true, characterData: true });
  }, sign.toString());
  for (const [i, act] of acts.entries()) {
    await act();
    await page.waitForFunction((n) => window.changed.length >= n, i + 1, { timeout: PATIENCE });
    await page.waitForTimeout(pause); // the address follows; a person has 30 searches in 10 s
  }
  return page.evaluate(() => window.changed);
}

const keys = (page, text) => [...text].map((letter) => () => page.keyboard.press(letter));
// What a reader sees of a list: its first rows.
const firstRows = () => document.querySelector("table[data-rows]")?.innerText.slice(0, 400);
const rowCount = () => document.querySelector("table[data-rows]")?.getAttribute("aria-rowcount");
// The models that the server found: what was typed shows in other rows at once.
const found = () => [...document.querySelectorAll('[cmdk-item][data-value^="model "]')].map((item) => item.textContent).join();

// toEnd scrolls to the last row that the browser has; the next page follows.
const toEnd = (page) => () =>
  page.evaluate(() => {
    window.beginsNow();
    const box = document.querySelector(".tablewrap.virtual");
    box.scrollTop = box.scrollHeight;
  });

async function main() {
  const browser = await chromium.launch({ executablePath: told.chromium, args: FLAGS });
  try {
    const state = await signIn(browser);
    const overview = [], registry = [], audit = [];
    for (let i = 0; i < told.rounds; i++) {
      overview.push(await firstScreen(browser, state, "/", told.overview));
      registry.push(await firstScreen(browser, state, "/models", "table[data-rows] tr[data-key]"));
      audit.push(await firstScreen(browser, state, "/audit", "table[data-rows] tr[data-key]"));
    }
    const context = await browser.newContext({ storageState: state, viewport: { width: 1440, height: 900 } });
    const page = await context.newPage();
    let largest = 0;
    page.on("response", async (response) => {
      const { pathname } = new URL(response.url());
      if (!pathname.startsWith("/api/") || pathname === "/api/v1/stream") return;
      largest = Math.max(largest, (await response.body().catch(() => "")).length);
    });
    await page.goto(`${told.url}/models`);
    await page.waitForSelector(".tablewrap.virtual tr[data-key]", { timeout: PATIENCE });
    await page.waitForLoadState("networkidle").catch(() => undefined); // the event stream stays open
    const idle = await idleFrames(page);
    const moved = await scroll(page);
    await page.reload();
    await page.waitForSelector(".tablewrap.virtual tr[data-key]", { timeout: PATIENCE });
    const pages = await changes(page, rowCount, Array(told.rounds).fill(toEnd(page)));
    await page.reload();
    await page.waitForSelector(".tablewrap.virtual tr[data-key]", { timeout: PATIENCE });
    await page.locator("main .fi input").first().fill("model-0");
    await page.waitForTimeout(1000);
    const letters = await changes(page, firstRows, keys(page, "4913")); // each leaves other rows
    await page.goto(`${told.url}/models`);
    await page.waitForSelector(".tablewrap.virtual tr[data-key]", { timeout: PATIENCE });
    const header = page.locator("th button.sort").nth(1);
    const sorts = await changes(page, firstRows, Array(told.rounds).fill(() => header.click()));
    const palette = [];
    let shown = 0;
    // Each digit finds other models.
    for (const digits of ["4123", "3210"]) {
      await page.goto(`${told.url}/preferences`);
      await page.waitForSelector("main h1", { timeout: PATIENCE });
      await page.keyboard.press("Control+k");
      await page.locator(".palette input").fill("model-0");
      await page.waitForFunction(() => document.querySelectorAll('[cmdk-item][data-value^="model "]').length >= 20, undefined, { timeout: PATIENCE });
      palette.push(...(await changes(page, found, keys(page, digits), 600)));
      shown = Math.max(shown, await page.evaluate(() => document.querySelectorAll('[cmdk-item]').length));
    }
    await page.goto(`${told.url}/audit`);
    await page.waitForSelector(".tablewrap.virtual tr[data-key]", { timeout: PATIENCE });
    const auditPages = await changes(page, rowCount, Array(told.rounds).fill(toEnd(page)));
    await page.goto(`${told.url}/audit`);
    await page.waitForSelector(".tablewrap.virtual tr[data-key]", { timeout: PATIENCE });
    await page.locator("main .fi input").first().focus();
    // The text as pasted: a letter begins a search only after a pause.
    const searches = await changes(page, firstRows, ["model-00412", "model-00413", "model-00414"].map((name) => async () => {
      await page.evaluate(() => window.beginsNow());
      await page.locator("main .fi input").first().fill(name);
    }));
    console.log(JSON.stringify({
      "overview-ms": quantile(overview, 0.5), "registry-ms": quantile(registry, 0.5),
      "idle-frame-ms": quantile(idle, 0.5), "idle-frame-p95-ms": quantile(idle, 0.95),
      "scroll-frame-ms": quantile(moved.frames, 0.5), "scroll-frame-p95-ms": quantile(moved.frames, 0.95), "long-tasks": moved.longTasks, "rows-drawn": moved.rows,
      "audit-ms": quantile(audit, 0.5), "page-ms": quantile(pages, 0.5), "sort-ms": quantile(sorts, 0.5), "palette-key-ms": quantile(palette, 0.5), "palette-key-max-ms": Math.max(...palette),
      "palette-rows": shown, "audit-page-ms": quantile(auditPages, 0.5), "audit-search-ms": quantile(searches, 0.5), "largest-answer-kib": largest / 1024,
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
