// The steward pages: one static page each, read by keyboard.
"use strict";

const { run, check } = require("./drive.cjs");

run(async ({ config, open }) => {
  const tab = await open();
  const answer = await tab.page.goto(config.launch);
  check(answer.status() === 200, `the page answers ${answer.status()}`);
  for (const text of config.texts) await tab.sees("body", text);
  check(await tab.page.locator("script").count() === 0, "the page has a script");
  // What scrolls must be reachable: the Tab key comes to each such place, or finds nothing that scrolls.
  const scrolling = await tab.page.locator(".scroll").count();
  for (let i = 0; i < scrolling; i++) {
    await tab.page.locator(".scroll").nth(i).evaluate((e, n) => e.setAttribute("data-scroll", n), i);
    if (await tab.page.locator(".scroll").nth(i).evaluate((e) => e.scrollWidth > e.clientWidth)) await tab.reach(`[data-scroll="${i}"]`);
  }
  await tab.judge("page");
  await tab.done();
});
