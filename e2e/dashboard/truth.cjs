// Stops each source in turn and opens every page: none claims anything of what that source would have measured.
"use strict";

const { told, openTab, play, check, Failure } = require("./tabs.cjs");

// GRACE covers an answer that was on its way when the source was stopped.
const GRACE = 1_000;

const model = `/models/${told.model}`;
const pages = [
  "/", "/models", model, ...["versions", "drift", "traffic", "cost", "governance", "discussion"].map((tab) => `${model}?tab=${tab}`),
  `${model}/promote`, `${model}/promote?version=1&step=metrics`, `${model}/promote?version=1&step=gate`,
  "/drift", "/drift?of=inputs", "/approvals", "/approvals?status=approved", "/runs", "/runs?as=timeline", "/alerts", "/alerts?state=resolved",
  "/facility", "/finops", "/llmops", "/governance", "/audit", "/health", "/search?q=jpcp",
];

async function gate(source, state) {
  const answer = await fetch(`${told.gates}/${source}/${state}`, { method: "POST" });
  check(answer.ok, `the gate of ${source} was answered ${answer.status}`);
}

// readPage returns what the page claims: the figures with their sources, and what looks like a claim but is in no figure.
const readPage = (tab) => tab.page.evaluate(() => {
  const nameOf = (element) => [...element.querySelectorAll("h2, dt, .name")].slice(0, 1).map((e) => e.textContent).join() || element.textContent.trim().slice(0, 80);
  const figures = [...document.querySelectorAll(".main [data-figure], .side [data-figure], .drawer [data-figure]")].map((e) => ({
    of: e.dataset.source.split(" "), state: e.dataset.figure, asOf: e.dataset.asOf, name: nameOf(e),
  }));
  const loose = [];
  // What is no claim: it says itself that nothing was measured, or of when it is, or it is the page's own.
  const free = "[data-figure], .nm, .big-nm, .asof, .conn, [data-unmeasured], button, input, label, select, th, dt, h1, kbd, nav, time, .blank, .vh, .filters, .crumbs, code";
  const walker = document.createTreeWalker(document.querySelector(".main"), NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const text = node.data.trim();
    if (!text || node.parentElement.closest(free)) continue;
    if (/^[-+]?\d[\d.,]*( ?[%a-zA-Z/]+)?$/.test(text) || /\b(none|nothing|all (well|served)(?! models)|healthy|within the)\b/i.test(text) || /^no [a-z]+/i.test(text)) loose.push(text.slice(0, 120));
  }
  for (const tick of document.querySelectorAll(".main svg.st-ok, .main .st-ok svg")) if (!tick.closest("[data-figure]")) loose.push(`a tick at ${tick.parentElement.textContent.trim().slice(0, 80)}`);
  return { figures, loose, heading: document.querySelector("h1")?.textContent };
});

function judgePage(path, found, source, since) {
  const wrong = found.loose.map((text) => `"${text}" is in no figure`);
  for (const { of, state, asOf, name } of found.figures) {
    if (state !== "measured" || of.join() === "browser") continue;
    if (!asOf) wrong.push(`"${name}" was measured at no time`);
    else if (source && of.includes(source) && new Date(asOf).getTime() > since + GRACE) wrong.push(`"${name}" was measured by ${of} at ${asOf}, ${Math.round((new Date(asOf).getTime() - since) / 1000)} s after ${source} was stopped`);
  }
  return [...new Set(wrong)].map((sentence) => `${path}: ${sentence}`);
}

const parts = {
  async truth(browser) {
    const tab = await openTab(browser, "");
    for (const form of [/status of (401|404|5\d\d)/, /net::ERR/]) tab.excuse(form); // of what is stopped
    await tab.signIn(told.admin);
    const wrong = [];
    const walk = async (source, since) => {
      const seen = new Set();
      for (const path of pages) {
        try {
          await tab.open(path);
          await tab.settle();
        } catch (err) {
          if (!(err instanceof Failure)) throw err;
          wrong.push(`${source ?? "all up"}: ${path}: ${err.message}`);
          continue;
        }
        const found = await readPage(tab);
        for (const { of, state } of found.figures) if (state === "measured") of.forEach((each) => seen.add(each));
        wrong.push(...judgePage(path, found, source, since).map((sentence) => `${source ?? "all up"}: ${sentence}`));
        if (source && ["/", "/models"].includes(path)) await tab.shot(`${source}-${path === "/" ? "overview" : "registry"}`);
      }
      return seen;
    };
    const seen = await walk();
    for (const source of told.sources) check(seen.has(source), `no page shows a figure of ${source} while all is up: its stop would prove nothing`);
    for (const source of told.sources) {
      // The overview stays open while the source goes: its figures of before must go, or keep their time.
      await tab.open("/");
      await tab.settle();
      const since = Date.now();
      await gate(source, "stop");
      await tab.page.waitForTimeout(25_000); // past every shared answer and two rounds of refreshing
      wrong.push(...judgePage("/ left open", await readPage(tab), source, since).map((sentence) => `${source}: ${sentence}`));
      const still = await walk(source, since);
      check([...still].some((each) => each !== source && each !== "browser"), `with ${source} stopped nothing at all is measured`);
      await gate(source, "start");
      await tab.page.waitForTimeout(8_000); // a failed source is asked again every 5 s
    }
    check(wrong.length === 0, `${wrong.length} claims:\n${wrong.join("\n")}`);
  },
};

play(parts);
