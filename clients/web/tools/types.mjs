// Generates src/api/gen/*.ts from the OpenAPI documents of the services that the UI calls.
// usage: node tools/types.mjs [--check]      --check fails if a committed file would change
import { readFile, writeFile } from 'node:fs/promises';
import openapiTS, { astToString } from 'openapi-typescript';

const check = process.argv.includes('--check');
let stale = 0;
for (const service of ['dashboard', 'controlplane', 'inference']) {
  const source = new URL(`../../go/${service}/openapi.yaml`, import.meta.url);
  const target = new URL(`../src/api/gen/${service}.ts`, import.meta.url);
  const ast = await openapiTS(source, { rootTypes: true, rootTypesNoSchemaPrefix: true });
  const text = `// Generated from clients/go/${service}/openapi.yaml by tools/types.mjs. DO NOT EDIT.\n${astToString(ast)}`;
  const committed = await readFile(target, 'utf8').catch(() => '');
  if (text === committed) continue;
  if (check) {
    console.error(
      `clients/web/src/api/gen/${service}.ts is not what the OpenAPI document gives; run "npm run types" in clients/web`,
    );
    stale++;
  } else {
    await writeFile(target, text);
  }
}
process.exit(stale ? 1 : 0);
