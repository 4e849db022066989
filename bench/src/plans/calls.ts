import type { Scenario } from "./scenario.js";
import type { Ask, PlanSession } from "./session.js";

/** A call of the worker that is looked at. */
export interface Call {
  readonly name: string;
  /** Brings the transaction to where the call is made. */
  prepare(session: PlanSession): Promise<Ask>;
}

/** As the worker's default. */
export const BATCH = 50;

/** The calls that a worker makes in a scenario. */
export function callsOf({ limited }: Scenario): readonly Call[] {
  return limited.length === 0 ? [claim, step, settle] : [claim, step, settle, full(limited)];
}

const claim: Call = {
  name: `claim ${BATCH}`,
  prepare: async (session) => ({ streams: session.streams(), claim: BATCH }),
};

const step: Call = {
  name: `settle the claimed tasks and claim ${BATCH}`,
  async prepare(session) {
    const streams = session.streams();
    return { streams, claim: BATCH, settle: await session.step({ streams, claim: BATCH }) };
  },
};

const settle: Call = {
  name: "settle the claimed tasks",
  async prepare(session) {
    const streams = session.streams();
    return { streams, claim: 0, settle: await session.step({ streams, claim: BATCH }) };
  },
};

/** The limited tasks must not be walked past. */
function full(limited: readonly string[]): Call {
  return {
    name: `claim ${BATCH} while every slot is taken`,
    async prepare(session) {
      await session.exhaust(session.streams(limited));
      return { streams: session.streams(), claim: BATCH };
    },
  };
}
