import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { invalidateTopics, queryClient } from '../src/state/live';

describe('refetches', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.restoreAllMocks();
  });

  it('come once after a burst, and once more when the shared answers have run out', () => {
    const refetched = vi.spyOn(queryClient, 'invalidateQueries').mockResolvedValue();
    const count = (): number => refetched.mock.calls.length;
    invalidateTopics(['registry']);
    invalidateTopics(['registry']);
    vi.advanceTimersByTime(200);
    expect(count()).toBe(1);
    vi.advanceTimersByTime(2500);
    expect(count()).toBe(2);
    vi.advanceTimersByTime(10_000);
    expect(count()).toBe(2);
  });
});
