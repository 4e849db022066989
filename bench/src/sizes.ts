/** How much of everything. */
export interface Sizes {
  readonly enqueue: number;
  readonly drain: number;
  readonly limit10: number;
  readonly blocked: number;
  readonly unserved: number;
  readonly latency: number;
  readonly sleep50: number;
  readonly inFlight: number;
}

export const full: Sizes = {
  enqueue: 50_000,
  drain: 100_000,
  limit10: 10_000,
  blocked: 1_000_000,
  unserved: 500_000,
  latency: 300,
  sleep50: 5_000,
  inFlight: 10_000,
};

// The last two are not smaller: their targets are absolute, and they take a second.
export const quick: Sizes = {
  enqueue: 10_000,
  drain: 20_000,
  limit10: 2_000,
  blocked: 50_000,
  unserved: 50_000,
  latency: 50,
  sleep50: 5_000,
  inFlight: 10_000,
};
