import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render } from '@testing-library/react';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { chosen } from '../src/state/figure';
import { ComparePanel } from '../src/screens/model/compare';
import { queryClient } from '../src/state/live';

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

describe('ComparePanel', () => {
  const version = { version: 1, run_id: 'r', created_at: '2026-11-23T08:00:00Z', aliases: [] };
  it.each([
    [[], 'No version is registered'],
    [[version], 'Only one version exists'],
  ])('says of the versions %j: %s', (value, sentence) => {
    vi.stubGlobal('fetch', () => new Promise<Response>(() => undefined));
    const { container } = render(
      <QueryClientProvider client={queryClient}>
        <ComparePanel model="M" versions={chosen(value) as never} onChange={() => undefined} />
      </QueryClientProvider>,
    );
    expect(container.textContent).toContain(sentence);
  });
});
