// The gate editor: a matrix edited and audited without a mouse.
"use strict";

const { run, check } = require("./drive.cjs");
const fs = require("node:fs");

const PANEL = "23caa4c4cc57e91c31262bc9e830ccaecdb7884b7bf97d739c37d0615d6b2d8a";

// audited waits for the figures of what is in the editor now.
async function audited(tab, text) {
  await tab.sees("#result-state", "up to date");
  await tab.sees("#result", text);
}

run(async ({ config, open }) => {
  const tab = await open();
  await tab.page.goto(config.launch);
  await tab.sees("#result", "5 verifiers count as 1.69 independent votes");
  await audited(tab, PANEL);
  check(!tab.page.url().includes("launch"), `the address still holds the code: ${tab.page.url()}`);
  await tab.judge("audit");

  await tab.reach("#skip");
  await tab.press("Enter", "?");
  await tab.sees("#help", "Undo");
  await tab.judge("help");
  await tab.press("Escape");

  await verdicts(tab);
  await quorum(tab);
  await grow(tab);
  await source(tab);
  await exported(tab);
  await tab.page.reload();
  await audited(tab, "example-five-verifier-gate");
  await tab.done();
  await strangers(open, config);
});

// verdicts moves through the grid with the arrows, changes one verdict and takes it back.
async function verdicts(tab) {
  await tab.reach("[data-cell]");
  check(await tab.focusIs('[data-cell="0 0"]'), "the grid is entered at its first verdict");
  await tab.press("ArrowDown", "ArrowRight", "End", "Home", "r");
  check(await tab.focusIs('[data-cell="1 0"]'), "the focus stays on the verdict that was changed");
  await tab.sees('[data-cell="1 0"].wrong', "reject ×");
  await tab.sees('#result tbody tr:has-text("reviewer-a") td', "0.6667");
  await tab.press("Space");
  await tab.sees('[data-cell="1 0"].accept', "accept");
  await tab.press("Control+z", "Control+z");
  await audited(tab, PANEL);
  check(await tab.page.locator("#undo").isDisabled(), "everything is taken back");
}

async function quorum(tab) {
  await tab.reach("#quorum", "Shift+Tab");
  await tab.replace("1.5");
  await tab.press("Enter", "Tab");
  await tab.sees("#matrix-problem", "from 0 to below 1");
  await tab.judge("quorum");
  await tab.reach("#quorum", "Shift+Tab");
  await tab.replace("0.8");
  await tab.press("Tab");
  await tab.sees("#quorum-hint", "5 of 5 votes");
  await tab.reach("#quorum", "Shift+Tab");
  await tab.replace("0.5");
  await tab.press("Tab");
  await audited(tab, PANEL);
}

// grow adds a verifier and a probe, and provokes a fault that the audit explains.
async function grow(tab) {
  await tab.reach("#add-verifier");
  await tab.press("Enter");
  await tab.reach("#add-probe", "Shift+Tab");
  await tab.press("Enter");
  await audited(tab, "6 verifiers count as");
  await audited(tab, "0 of 4");
  await tab.reach('#grid input[aria-label="Id of candidate 2"]', "Shift+Tab");
  await tab.replace("c01");
  await tab.press("Tab");
  await tab.sees("#matrix-problem", "another candidate has the id c01");
  await tab.reach("#undo", "Shift+Tab");
  await tab.press("Enter");
  await tab.reach("#gate-id");
  await tab.replace("");
  await tab.press("Backspace");
  tab.excuse(/status of 400/);
  await tab.press("Control+Enter");
  await tab.sees("#result .notice.bad", "/gate_id");
  await tab.judge("refused");
  await tab.reach("#undo", "Shift+Tab");
  await tab.press("Enter", "Enter", "Enter");
  await audited(tab, PANEL);
}

async function source(tab) {
  await tab.reach("summary");
  await tab.press("Enter");
  await tab.reach("#source");
  const before = await tab.page.locator("#source").inputValue();
  await tab.replace('{"candidates": [], "verifiers": 1}');
  await tab.reach("#source-take");
  await tab.press("Enter");
  await tab.sees("#source-problem", "expected a list of objects");
  await tab.judge("source");
  await tab.reach("#source", "Shift+Tab");
  await tab.replace(before);
  await tab.reach("#source-take");
  await tab.press("Enter");
  await audited(tab, PANEL);
}

async function exported(tab) {
  await tab.reach("#export", "Shift+Tab");
  const [file] = await Promise.all([tab.page.waitForEvent("download"), tab.press("Enter")]);
  check(file.suggestedFilename() === "example-five-verifier-gate.json", `the file is called ${file.suggestedFilename()}`);
  const doc = JSON.parse(fs.readFileSync(await file.path(), "utf8"));
  check(doc.verifiers.length === 5 && doc.candidates.length === 15, "the export holds the matrix");
}

async function strangers(open, config) {
  const tab = await open();
  await tab.page.goto(config.launch);
  await tab.sees("#token-form", "needs the session's token");
  check(!(await tab.page.content()).includes("reviewer-a"), "the bare page holds the matrix");
  tab.excuse(/status of 403/);
  await tab.type("x".repeat(32));
  await tab.press("Enter");
  await tab.sees("#grid", "The matrix is empty");
  await tab.press("Control+Enter");
  await tab.sees("#token-why", "invalid_session_token");
  await tab.judge("wrong-token");
  await tab.type(config.token);
  await tab.press("Enter");
  await tab.sees("#grid", "The matrix is empty");
  await tab.sees("#result", "Figures appear here");
  await tab.judge("empty");
  await tab.done();
}
