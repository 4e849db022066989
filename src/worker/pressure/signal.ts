/** Whether a signal is on, and for how many samples in a row it has said the opposite. */
export interface Signal {
  readonly on: boolean;
  readonly against: number;
}

/** When a signal comes on and when it goes off. */
interface SignalTerms {
  /** Above it the signal comes on. */
  readonly above: number;
  /** Below it the signal goes off. */
  readonly below: number;
  /** After so many samples in a row. */
  readonly onAfter: number;
  readonly offAfter: number;
}

/** A signal that nothing has been seen of yet. */
export const quietSignal: Signal = { on: false, against: 0 };

/**
 * The signal after one more sample. Two thresholds and samples in a row, so that it does not flap: what
 * stays between the thresholds changes nothing. Null, nothing to measure, counts as calm.
 */
export function nextSignal(was: Signal, value: number | null, terms: SignalTerms): Signal {
  const opposes = was.on ? value === null || value < terms.below : value !== null && value > terms.above;
  const against = opposes ? was.against + 1 : 0;
  return against >= (was.on ? terms.offAfter : terms.onAfter) ? { on: !was.on, against: 0 } : { on: was.on, against };
}
