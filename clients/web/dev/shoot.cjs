// Takes pictures of pages: node dev/shoot.cjs BASE OUT path[@width[-dark]]...   needs the packages of scripts/browser.sh
const { createRequire } = require('node:module');
const { resolve } = require('node:path');
const { chromium } = createRequire(resolve(__dirname, '../../../.cache/browser/package.json'))('playwright-core');

(async () => {
  const [base, out, ...shots] = process.argv.slice(2);
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--headless', '--no-sandbox'] });
  let session;
  for (const shot of shots) {
    const [path, how = '1440'] = shot.split('@');
    const [width, theme = 'light', ...keys] = how.split('-');
    const context = await browser.newContext({
      viewport: { width: Number(width), height: Number(width) < 700 ? 844 : 900 },
      colorScheme: theme,
    });
    const page = await context.newPage();
    page.on(
      'console',
      (m) => ['error', 'warning'].includes(m.type()) && console.log(`${shot}: ${m.type()} ${m.text().slice(0, 300)}`),
    );
    page.on(
      'response',
      (r) => r.status() >= 400 && console.log(`${shot}: ${r.status()} ${r.request().method()} ${r.url()}`),
    );
    page.on('pageerror', (e) => console.log(`${shot}: ${String(e).slice(0, 400)}`));
    if (!path.startsWith('/login')) {
      const res = await page.request.post(`${base}/api/auth/login`, {
        data: { password: process.env.PASSWORD ?? 'admin' },
      });
      const { token, role, expires_at } = await res.json();
      await context.addInitScript(
        (v) => localStorage.setItem('dashboard_auth', v),
        JSON.stringify({ token, role, expires_at }),
      );
    }
    await page.goto(base + path);
    await page.waitForTimeout(1400);
    for (const key of keys) {
      if (key.startsWith('click:'))
        await page
          .getByRole('button', { name: key.slice(6) })
          .first()
          .click();
      else await page.keyboard.press(key);
      await page.waitForTimeout(500);
    }
    const name = `${out}/${(path.replace(/[^\w]+/g, '_') || '_') + '-' + how.replace(/[^\w-]+/g, '_')}.png`;
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (overflow > 0) console.log(`${shot}: ${overflow} px wider than the window`);
    await page.screenshot({ path: name, fullPage: true });
    await context.close();
  }
  await browser.close();
})();
