// The tasks that the jobs of the pg-boss queues in migrate-pg-boss.test.ts become.
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { task } from "../../../src/client.js";

export const bill = task("bill", { input: z.object({ n: z.number() }) });

export const ship = task("ship", {
  input: z.object({ n: z.number(), customer: z.string() }),
  order: ({ customer }) => customer,
});

interface Job {
  readonly data: unknown;
  readonly singletonKey: string | null;
}

/** The key of an ordered job is not part of its data. */
export const shipInput = ({ data, singletonKey }: Job): unknown => ({
  ...(data as { n: number }),
  customer: singletonKey,
});

/** Long enough for both queues to have work at the same time. */
export const work = (): Promise<void> => sleep(2);
