// Runs axe on pages in both themes: node dev/axe.cjs BASE path...   needs the packages of scripts/browser.sh
const { createRequire } = require('node:module');
const { resolve } = require('node:path');
const from = createRequire(resolve(__dirname, '../../../.cache/browser/package.json'));
const { chromium } = from('playwright-core');

(async () => {
  const [base, ...paths] = process.argv.slice(2);
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--headless', '--no-sandbox'] });
  let session;
  let findings = 0;
  for (const path of paths)
    for (const colorScheme of ['light', 'dark']) {
      const context = await browser.newContext({
        viewport: { width: 1280, height: 900 },
        colorScheme,
        bypassCSP: true,
      });
      const page = await context.newPage();
      session ??= await (
        await page.request.post(`${base}/api/auth/login`, { data: { password: process.env.PASSWORD ?? 'admin' } })
      ).json();
      if (path !== '/login')
        await context.addInitScript((v) => localStorage.setItem('dashboard_auth', v), JSON.stringify(session));
      await page.goto(base + path);
      await page.waitForTimeout(1200);
      await page.addScriptTag({ path: from.resolve('axe-core/axe.min.js') });
      const { violations } = await page.evaluate(() =>
        axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }),
      );
      for (const v of violations) {
        findings++;
        console.log(`${path} ${colorScheme}: ${v.id} ${v.help}`);
        for (const n of v.nodes.slice(0, 3))
          console.log(
            `    ${n.target.join(' ')}   ${n.html.slice(0, 140)} ${n.failureSummary?.split('\n')[1]?.slice(0, 160) ?? ''}`,
          );
      }
      await context.close();
    }
  await browser.close();
  console.log(`${findings} findings`);
  process.exit(findings ? 1 : 0);
})();
