import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';
import { compressAssets } from './tools/compress';

const outDir = fileURLToPath(new URL('../../services/dashboard-bff/internal/webui/site', import.meta.url));

export default defineConfig({
  plugins: [react(), compressAssets()],
  build: {
    outDir,
    emptyOutDir: true,
    target: 'es2022',
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'], // light-dark() stays as written
    assetsInlineLimit: 0, // the CSP allows data: for images only
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 700, // the budget is on what is gzipped, see tools/compress.ts
    sourcemap: false,
  },
  server: {
    port: 5173,
    proxy: { '^/(api|ofrep)/': { target: process.env.DASHBOARD_URL ?? 'http://127.0.0.1:5199' } },
  },
  test: {
    environment: 'jsdom',
    include: ['test/**/*.test.{ts,tsx}'],
    setupFiles: ['test/setup.ts'],
    restoreMocks: true,
    testTimeout: 10_000,
  },
});
