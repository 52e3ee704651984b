import { readFile, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import type { Plugin } from 'vite';

// The first screen loads no more JavaScript than this, gzipped.
const INITIAL_BUDGET = 250 * 1000;
const COMPRESSIBLE = /\.(js|css|html|svg|json|txt)$/;

/** Writes .gz and .br beside each text asset, prints the initial JavaScript and fails above the budget. */
export function compressAssets(): Plugin {
  let outDir = '';
  const initial = new Set<string>();
  return {
    name: 'compress-assets',
    apply: 'build',
    configResolved(config) {
      outDir = config.build.outDir;
    },
    generateBundle(_options, bundle) {
      const visit = (file: string): void => {
        const chunk = bundle[file];
        if (initial.has(file) || chunk?.type !== 'chunk') return;
        initial.add(file);
        chunk.imports.forEach(visit);
      };
      for (const chunk of Object.values(bundle)) if (chunk.type === 'chunk' && chunk.isEntry) visit(chunk.fileName);
    },
    async closeBundle() {
      const sizes = new Map<string, number>();
      for (const entry of await readdir(outDir, { recursive: true, withFileTypes: true })) {
        const file = join(entry.parentPath, entry.name);
        if (!entry.isFile() || !COMPRESSIBLE.test(entry.name)) continue;
        const raw = await readFile(file);
        const gz = gzipSync(raw, { level: 9 });
        sizes.set(file.slice(outDir.length + 1), gz.length);
        await writeFile(`${file}.gz`, gz);
        await writeFile(
          `${file}.br`,
          brotliCompressSync(raw, {
            params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: raw.length },
          }),
        );
      }
      // The Go package embeds this directory, which must exist in a checkout that was never built.
      await writeFile(join(outDir, '.keep'), '');
      const total = [...initial].reduce((sum, file) => sum + (sizes.get(file) ?? 0), 0);
      const report = `initial JavaScript ${(total / 1000).toFixed(1)} KB gzip of ${INITIAL_BUDGET / 1000} KB allowed`;
      if (total > INITIAL_BUDGET) throw new Error(report);
      this.info(report);
    },
  };
}
