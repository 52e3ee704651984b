// Serves the fixtures and the built UI with the response headers of the real service. For development only.
// usage: node dev/server.mjs [port]      password "admin" or "viewer"; "npm run dev" proxies /api here

import { createReadStream, existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { answer } from './fixtures.mjs';

const dist = fileURLToPath(new URL('../../../services/dashboard-bff/internal/webui/site/', import.meta.url));
const types = {
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.html': 'text/html; charset=utf-8',
  '.svg': 'image/svg+xml',
};
const port = Number(process.argv[2] ?? 5199);
const csp =
  "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

const json = (res, status, body, type = 'application/json') => {
  res.writeHead(status, { 'Content-Type': type, 'X-Request-ID': '0193-7c1e-a2f4' });
  res.end(JSON.stringify(body));
};
const problem = (res, status, code, detail, more = {}) =>
  json(
    res,
    status,
    {
      type: 'about:blank',
      title: code.replaceAll('_', ' '),
      status,
      detail,
      code,
      request_id: '0193-7c1e-a2f4',
      ...more,
    },
    'application/problem+json',
  );

createServer(async (req, res) => {
  const url = new URL(req.url, 'http://x');
  const path = url.pathname;
  res.setHeader('Content-Security-Policy', csp);
  if (!path.startsWith('/api/')) {
    const file = normalize(join(dist, path));
    const found = file.startsWith(dist) && extname(file) && existsSync(file) ? file : join(dist, 'index.html');
    res.writeHead(200, { 'Content-Type': types[extname(found)] ?? 'application/octet-stream' });
    createReadStream(found).pipe(res);
    return;
  }
  let text = '';
  for await (const chunk of req) text += chunk;
  const body = text ? JSON.parse(text) : undefined;
  if (path === '/api/auth/sso/providers') return json(res, 200, { providers: [], local_login: true });
  if (path === '/api/auth/login') {
    const role = { admin: 'admin', viewer: 'viewer' }[body.password];
    if (!role) return problem(res, 401, 'invalid_password', 'The password is wrong.');
    return json(res, 200, {
      token: role,
      role,
      expires_at: new Date(Date.now() + 36e5).toISOString(),
      tenant: 'hpc-centre',
    });
  }
  const role = /^Bearer (admin|viewer)$/.exec(req.headers.authorization ?? '')?.[1];
  if (!role) return problem(res, 401, 'unauthenticated', 'Sign in first.');
  if (path === '/api/auth/logout') return res.writeHead(204).end();
  if (path === '/api/v1/stream') {
    res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' });
    res.write('retry: 3000\nevent: hello\ndata: {"channels":["*"],"resumed":false,"gap":false}\n\n');
    let id = 4711;
    const timer = setInterval(() => {
      const time = new Date().toISOString();
      res.write(
        `id: ${++id}\nevent: job.started\ndata: ${JSON.stringify({ model: 'MCBound', run_id: String(id), _event: { id: `e${id}`, time, actor: 'idp-a:1001' }, _dropped: 0 })}\n\n`,
      );
    }, 15_000);
    req.on('close', () => clearInterval(timer));
    return;
  }
  if (path.startsWith('/api/proxy/serving/drift/input')) return problem(res, 404, 'not_found', 'No such route.');
  const found = answer(req.method, path, url.searchParams, body, role);
  if (found === undefined) return problem(res, 404, 'not_found', `There is nothing at ${path}.`);
  json(res, 200, found);
}).listen(port, '127.0.0.1', () => console.log(`http://127.0.0.1:${port}`));
