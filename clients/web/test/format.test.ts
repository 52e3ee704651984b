import { describe, expect, it } from 'vitest';
import * as numbers from '../src/format/numbers';
import * as time from '../src/format/time';

describe('numbers', () => {
  it.each([
    [0, '0'],
    [48_212, '48,212'],
    [99_999, '99,999'],
    [104_321, '104 k'],
    [999_999, '1.0 M'],
    [2_340_000, '2.3 M'],
    [-1_234, '\u22121,234'],
  ])('counts %d as %s', (value, want) => expect(numbers.formatCount(value)).toBe(want));

  it.each([
    [0.94, '94 %'],
    [0, '0 %'],
    [0.004, '0.4 %'],
    [1.2, '120 %'],
  ])('shows the share %d as %s', (value, want) => expect(numbers.formatShare(value)).toBe(want));

  it.each([
    [412.3817, '412'],
    [7.42, '7.4'],
    [0.084, '0.08'],
    [0, '0'],
    [120_000, '120 k'],
  ])('shows the rate %d as %s', (value, want) => expect(numbers.formatRate(value)).toBe(want));

  it.each([
    [0.7612345, '0.761'],
    [1588.2, '1,588'],
    [12.345, '12.3'],
    [0.00001, '1.0 e\u22125'],
  ])('shows the score %d with three digits, %s', (value, want) => expect(numbers.formatScore(value)).toBe(want));

  it('shows z with two decimals and the real minus', () => {
    expect(numbers.formatZ(4.1799)).toBe('4.18');
    expect(numbers.formatZ(-0.5)).toBe('\u22120.50');
    expect(numbers.formatZ(-0.001)).toBe('0.00');
  });

  it('shows money with its currency and both cents', () => expect(numbers.formatMoney(11.7)).toBe('USD 11.70'));

  it('shows carbon with its uncertainty', () => {
    expect(numbers.formatCarbon(1.9, 0.3)).toBe('1.9 kg CO₂e ± 30 %');
    expect(numbers.formatCarbon(2500)).toBe('2.5 t CO₂e');
  });

  it.each([
    [578, 561, '\u22122.9 %'],
    [1512, 1588, '+5.0 %'],
    [1, 1, '0.0 %'],
    [0, 3, undefined],
  ])('shows the change from %d to %d as %s', (from, to, want) => expect(numbers.formatChange(from, to)).toBe(want));

  it('shortens hashes in the middle and commits at the end', () => {
    expect(numbers.shortenHash('8f3a000000000000c210')).toBe('8f3a…c210');
    expect(numbers.shortenHash('short')).toBe('short');
    expect(numbers.shortenCommit('4f2a9c1e77aa0b1c2d3e4f5a6b7c8d9e0f1a2b3c')).toBe('4f2a9c1e');
  });
});

describe('time', () => {
  const now = new Date('2026-11-22T14:32:04Z');
  it.each([
    ['2026-11-22T14:32:02Z', { kind: 'now' }],
    ['2026-11-22T13:34:00Z', { kind: 'past', text: '58 min' }],
    ['2026-11-23T13:34:00Z', { kind: 'future', text: '23 h' }],
    ['2026-10-31T09:00:00Z', { kind: 'date', text: '31 Oct 2026, 09:00 UTC' }],
  ])('relates %s', (at, want) => expect(time.relateTime(new Date(at), now)).toEqual(want));

  it.each([
    [340, '340 ms'],
    [8_000, '8 s'],
    [17 * 60_000 + 22_000, '17 min'],
    [2 * 60_000 + 5_000, '2 min 5 s'],
    [5 * 3_600_000 + 12 * 60_000, '5 h 12 min'],
    [23 * 3_600_000, '23 h'],
    [12 * 86_400_000, '12 d'],
  ])('shows %d ms as %s', (value, want) => expect(time.formatDuration(value)).toBe(want));

  it('takes what is no time for absent', () => {
    expect(time.parseTime('yesterday')).toBeUndefined();
    expect(time.parseTime(null)).toBeUndefined();
  });
});
