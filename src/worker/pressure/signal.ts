/** Whether a signal is on, and for how many samples in a row the value has contradicted that. */
export interface Signal {
  readonly on: boolean;
  readonly against: number;
}

/** When a signal turns on and off. */
interface SignalTerms {
  /** The signal turns on above this value. */
  readonly above: number;
  /** The signal turns off below this value. */
  readonly below: number;
  /** How many samples in a row turn it on. */
  readonly onAfter: number;
  readonly offAfter: number;
}

/** A signal without any samples yet. */
export const quietSignal: Signal = { on: false, against: 0 };

/**
 * The signal after one more sample. Two thresholds and a number of samples in a row keep it from flapping: a value
 * between the thresholds changes nothing. Null, nothing to measure, counts as calm.
 */
export function nextSignal(was: Signal, value: number | null, terms: SignalTerms): Signal {
  const opposes = was.on ? value === null || value < terms.below : value !== null && value > terms.above;
  const against = opposes ? was.against + 1 : 0;
  return against >= (was.on ? terms.offAfter : terms.onAfter) ? { on: !was.on, against: 0 } : { on: was.on, against };
}
