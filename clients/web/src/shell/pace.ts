/** Lets a burst of calls go at once and then one per interval, in milliseconds. */
export class Pace {
  readonly #burst: number;
  readonly #every: number;
  #left: number;
  #at = 0;

  constructor({ burst, every }: { burst: number; every: number }) {
    this.#burst = this.#left = burst;
    this.#every = every;
  }

  /** Returns how long the next call has to wait; 0 if it may go. */
  wait(now: number): number {
    const left = this.#refilled(now);
    return left >= 1 ? 0 : (1 - left) * this.#every;
  }

  /** Counts a call. */
  take(now: number): void {
    this.#left = Math.max(0, this.#refilled(now) - 1);
    this.#at = now;
  }

  #refilled(now: number): number {
    return Math.min(this.#burst, this.#left + (now - this.#at) / this.#every);
  }
}
