// Signs in at a real identity provider in Chromium, as members of an organisation would: by the button on the login page
// and the provider's own forms, and once more, at its higher level, for what asks for that.
"use strict";

const crypto = require("node:crypto");
const { told, openTab, fileNotice, play, check, Failure, SOON } = require("./tabs.cjs");

// oneTimeCode is what the authenticator app of the person shows now (RFC 6238).
function oneTimeCode(user) {
  const step = Buffer.alloc(8);
  step.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000)));
  const mac = crypto.createHmac("sha1", told.otp_secrets[user]).update(step).digest();
  return String((mac.readUInt32BE(mac[19] & 0x0f) & 0x7fffffff) % 1_000_000).padStart(6, "0");
}

// atProvider fills in the forms that the provider shows, which must be these: password, code.
async function atProvider({ page }, user, forms) {
  for (const form of forms) {
    const field = page.locator(form === "code" ? "#otp" : "#password");
    await field.waitFor({ timeout: SOON }).catch(async () => {
      throw new Failure(`the provider does not ask for the ${form}; ${page.url()} shows: ${(await page.locator("body").innerText()).slice(0, 500)}`);
    });
    check(new URL(page.url()).origin === told.provider, `the ${form} is asked for at ${page.url()}`);
    const name = page.locator("#username");
    if (form === "password" && await name.isVisible() && await name.isEditable()) await name.fill(user);
    await field.fill(form === "code" ? oneTimeCode(user) : `password-of-${user}`);
    await page.locator("#kc-login").click();
  }
}

async function open(browser, name) {
  const tab = await openTab(browser, name);
  tab.excuse(/status of 401/); // of a first visit: only the server knows whether there is a session
  tab.excuse(new RegExp(`a request went out to ${told.provider}$`));
  // What the provider's pages say of themselves is its operator's business.
  const complain = tab.complain.bind(tab);
  tab.complain = (sentence) => { if (!tab.page.url().startsWith(told.provider)) complain(sentence); };
  return tab;
}

const pressSSO = async (tab) => { await (await tab.sees("main.login .sso a", `Continue with ${told.provider_name}`)).click(); };

const sessionOf = async (tab) => (await tab.page.context().cookies(told.url)).find((c) => c.name.endsWith("platform_session"));

async function signIn(browser, user, path) {
  const tab = await open(browser, user);
  await tab.open(path);
  await pressSSO(tab);
  await atProvider(tab, user, ["password"]);
  await tab.ready();
  return tab;
}

// stepUp goes from a refused act through the provider and back, to the question that repeats the act, and gives what
// the page kept in the browser on the way.
async function stepUp(tab, user) {
  await tab.sees("[role=alertdialog]", "Confirm it is you");
  await tab.judge("step-up");
  const here = tab.page.url();
  await tab.page.getByRole("link", { name: "Continue with SSO" }).click();
  await atProvider(tab, user, ["password", "code"]);
  await tab.sees("[role=alertdialog]", "You are back");
  check(tab.page.url() === here, `the step-up leads to ${tab.page.url()}, not back to ${here}`);
  await tab.judge("returned");
  const kept = tab.stored.findLast(([key]) => key === "platform.pending_act");
  check(kept, `nothing was put aside for the way back; stored were ${tab.stored.map(([key]) => key)}`);
  return kept[1];
}

const identity = (tab) => tab.page.evaluate(async () => (await fetch("/api/auth/me")).json());

const approval = async (id) => (await fetch(`${told.control_plane}/approvals/${id}`, { headers: { authorization: `Bearer ${told.ci_token}` } })).json();

const parts = {
  async login(browser) {
    const tab = await open(browser, "");
    await tab.open("/runs?state=failed");
    await tab.sees("main.login .sso a", `Continue with ${told.provider_name}`);
    await tab.judge("form");
    const asking = tab.page.waitForRequest((r) => r.url().startsWith(`${told.provider}/`) && r.url().includes("response_type="));
    await pressSSO(tab);
    const asked = new URL((await asking).url()).searchParams;
    check(asked.get("response_type") === "code" && asked.get("code_challenge_method") === "S256" && ["code_challenge", "nonce", "state"].every((name) => asked.get(name)?.length >= 43), `the provider is asked with ${asked}`);
    await atProvider(tab, "bob", ["password"]);
    await tab.at("/runs", "Runs");
    check(tab.page.url() === `${told.url}/runs?state=failed`, `signing in leads to ${tab.page.url()}, not to the page that was asked for`);
    await tab.sees(".side .me", "bob");
    await tab.settle();
    await tab.judge("signed-in");
    const session = await sessionOf(tab);
    check(session?.httpOnly && session.sameSite === "Strict" && session.path === "/", `the session's cookie is ${JSON.stringify(session)}`);
    check(await tab.page.evaluate(() => localStorage.getItem("dashboard_auth")) === null, "a single sign-on stores a credential");
    await tab.page.reload();
    await tab.at("/runs", "Runs");
    await tab.settle();
    await tab.done();

    await tab.page.getByRole("button", { name: "Account" }).click();
    const ending = tab.page.waitForRequest((r) => r.url().startsWith(`${told.provider}/`) && r.url().includes("post_logout_redirect_uri="));
    await tab.page.getByRole("menuitem", { name: "Sign out" }).click();
    const end = new URL((await ending).url()).searchParams;
    check(end.get("id_token_hint") && end.get("post_logout_redirect_uri") === `${told.url}/`, `the provider's session is ended with ${end}`);
    await tab.sees("main.login .sso a"); // by way of the provider
    check(new URL(tab.page.url()).pathname === "/login" && !tab.page.url().includes("sso_error"), `signing out leads to ${tab.page.url()}`);
    check(!(await sessionOf(tab)), "the session's cookie is still there after signing out");
    const after = await fetch(`${told.url}/api/auth/me`, { headers: { cookie: `${session.name}=${session.value}` } });
    check(after.status === 401, `the cookie is answered ${after.status} after signing out, want 401`);
    // The session at the provider is over too: it does not sign the next person in as the one before.
    await pressSSO(tab);
    await atProvider(tab, "carol", ["password"]);
    await tab.ready();
    await tab.sees(".side .me", "carol");
  },

  async denied(browser) {
    const tab = await open(browser, "");
    await tab.open("/");
    await pressSSO(tab);
    await atProvider(tab, "nobody", ["password"]);
    await tab.sees("main.login [role=alert]", "no rule gives you a role");
    await tab.page.waitForURL((url) => url.pathname === "/login" && !url.search.includes("sso_error"), { timeout: SOON });
    await tab.judge("denied");
    check(!(await sessionOf(tab)), "who has no role has a session");
  },

  async approve(browser) {
    const id = await fileNotice();
    const tab = await signIn(browser, "erin", "/approvals");
    await tab.page.locator(".inbox a", { hasText: told.model }).first().click();
    await tab.sees(".detail h2", told.model);
    const before = await sessionOf(tab);
    check((await identity(tab)).acr === "silver", "the first sign-in is not at the lower level");
    await (await tab.sees(".decide .primary")).click();
    await tab.sees("[role=alertdialog]");
    tab.excuse(/status of 401/); // of the refused approval
    await tab.page.locator("[role=alertdialog] .primary").click();
    await stepUp(tab, "erin");
    check((await approval(id)).status === "pending", "the approval was decided before the person confirmed it again");
    const here = tab.page.url();
    await tab.page.locator("[role=alertdialog] .primary").click();
    await tab.gone("[role=alertdialog]");
    await tab.sees(".detail h2", told.model);
    check(tab.page.url() === here && new URL(here).pathname === "/approvals", `the approval ends at ${tab.page.url()}, not at ${here}`);
    const me = await identity(tab);
    const decided = await approval(id);
    check(["approving", "approved"].includes(decided.status) && decided.resolved_by === me.sub, `the approval is ${decided.status} by ${decided.resolved_by}, want approved by ${me.sub}`);
    check(me.acr === "gold" && me.auth_method === "sso", `after the step-up the person is ${JSON.stringify(me)}`);
    check((await sessionOf(tab)).value !== before.value, "the session's id is the same after the step-up");
    const stale = await fetch(`${told.url}/api/auth/me`, { headers: { cookie: `${before.name}=${before.value}` } });
    check(stale.status === 401, `the cookie from before the step-up is answered ${stale.status}, want 401`);
    await tab.settle();
    await tab.judge("approved");
  },

  async secret(browser) {
    const tab = await signIn(browser, "frank", "/config");
    tab.secrets["the typed secret"] = told.typed;
    await tab.page.getByLabel("forge_token", { exact: true }).fill(told.typed);
    await tab.page.locator(".savebar .primary").click();
    await tab.sees("[role=alertdialog]", "forge_token");
    await tab.page.locator("[role=alertdialog] .primary").click();
    const kept = await stepUp(tab, "frank");
    check(!kept.includes(told.typed), `the typed secret is put aside in the browser: ${kept}`);
    check(await tab.page.locator("[role=alertdialog] .primary").isDisabled(), "the act can be confirmed without its secret");
    await tab.page.locator("[role=alertdialog] input[type=password]").fill(told.typed);
    await tab.page.locator("[role=alertdialog] .primary").click();
    await tab.gone("[role=alertdialog]");
    await tab.settle();
    const stored = await tab.page.evaluate(async () => (await fetch("/api/config")).json());
    check(stored.forge_token === "***", `the configuration has forge_token ${stored.forge_token}, want ***`);
    await tab.judge("stored");
  },
};

play(parts);
