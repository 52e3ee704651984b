// The project's own ESLint rules: each refuses the made-up value that it is for, and nothing else.

import parser from '@typescript-eslint/parser';
import { RuleTester } from 'eslint';
import { afterAll, describe, it, vi } from 'vitest';
// @ts-expect-error: plain JavaScript, as ESLint loads it
import measured from '../tools/eslint/measured.mjs';

// The first case loads the types of the whole project.
vi.setConfig({ testTimeout: 120_000 });
Object.assign(RuleTester, { describe, it, afterAll });

const tester = new RuleTester({
  languageOptions: {
    parser,
    parserOptions: {
      ecmaFeatures: { jsx: true },
      projectService: { allowDefaultProject: ['test/*.tsx'] },
      tsconfigRootDir: process.cwd(),
    },
  },
});
const filename = `${process.cwd()}/test/lint-case.tsx`;
const query = 'declare const query: { data?: { rows: number[]; n?: number }; dataUpdatedAt: number };';
const valid = (code: string) => ({ filename, code });
const invalid = (code: string) => ({ filename, code, errors: 1 });

tester.run('no-made-up-value', measured.rules['no-made-up-value'], {
  valid: [valid('declare const chosen: { n?: number }; chosen.n ?? 0;'), valid(`${query} query.data?.n ?? undefined;`)],
  invalid: [
    invalid(`${query} query.data?.n ?? 0;`),
    invalid(`${query} query.data?.rows ?? [];`),
    invalid(`${query} const noRows: number[] = []; query.data?.rows ?? noRows;`),
    invalid(`${query} query.data?.rows.map(String) || [];`),
  ],
});

tester.run('no-bare-emptiness', measured.rules['no-bare-emptiness'], {
  valid: [
    valid('const all: number[] = []; all.length === 0 ? <Blank of={all} /> : null;'),
    valid('const all: number[] = []; all.length === 0 && <p><Show figure={all}>{() => "none"}</Show></p>;'),
    valid('const all: number[] = []; all.length > 0 && <p>{all.length}</p>;'),
  ],
  invalid: [
    invalid('const all: number[] = []; all.length === 0 && <p>none</p>;'),
    invalid('const all: number[] = []; !all.length ? <p>none</p> : null;'),
    invalid('const all: number[] = []; all?.length < 1 && <b><i>none</i></b>;'),
  ],
});

tester.run('no-bare-tick', measured.rules['no-bare-tick'], {
  valid: [valid('<Icon name="warn" />;'), valid('<State kind="ok" />;')],
  invalid: [
    invalid('<Icon name="ok" />;'),
    invalid('declare const good: boolean; <Icon name={good ? "ok" : "warn"} />;'),
  ],
});
