import { setTimeout as sleep } from "node:timers/promises";
import { limit, type Sluice } from "../../../../src/index.js";
import type { Input, Scene } from "../../adapter.js";
import { contract, TYPE, type Contract } from "./contract.js";
import { TUNED } from "./numbers.js";

/** A type as a worker serves it. Only counted ones are timed. */
export interface Piece {
  readonly contract: Contract;
  readonly counted: boolean;
  /** What one that is not counted does. */
  readonly work?: "nothing" | "hang";
}

/** What a worker serves and what there is beside the tasks that are counted. */
interface Play {
  pieces(): readonly Piece[];
  /** Enqueues so many counted tasks, and what stands beside them. */
  fill(sluice: Sluice, inputs: readonly Input[], beside: number): Promise<void>;
  /** Tasks that hang for ever. */
  readonly hanging?: number;
}

const TYPES = 100;
// Tasks of one type that stand together in the backlog.
const RUN_LENGTH = 50;
/** A round of all types: a backlog is a multiple of it, and one in a hundred is of the first type. */
export const TYPES_ROUND = TYPES * RUN_LENGTH;
// More slots than permits in any of these processes: it is counted, and never full.
const NEVER_BINDS = 1_000_000;
const DAY_MS = 24 * 3_600_000;

const plain = contract(TYPE);
const nobodys = contract("nobodys");
const stuck = contract("stuck", { limits: [limit("full", { total: 1 })] });
const own = contract(TYPE, { concurrency: NEVER_BINDS });
/** The slots of each total in `total-12`. */
export const TOTAL = 12;
const twoTotals = contract(TYPE, {
  limits: [limit("first-total", { total: TOTAL }), limit("second-total", { total: TOTAL })],
});

export const scenes = {
  /** A type's own concurrency, which has no word among shapes. */
  "own-limit": {
    pieces: () => [{ contract: own, counted: true }],
    fill: async (sluice, inputs) => void (await sluice.enqueueMany(own, inputs)),
  },
  /** Every task needs a slot of two totals, which have a word each among shapes only for one. */
  "two-totals": {
    pieces: () => [{ contract: twoTotals, counted: true }],
    fill: async (sluice, inputs) => void (await sluice.enqueueMany(twoTotals, inputs)),
  },
  /** A million tasks of a limit of 1, whose slot a hanging task holds; this worker serves both. */
  blocked: {
    pieces: () => [counted(plain), { contract: stuck, counted: false, work: "hang" }],
    fill: (sluice, inputs, beside) => besides(sluice, stuck, inputs, beside),
    hanging: 1,
  },
  /** Older than ours, and of a type that nobody serves: a rolling deploy. */
  unserved: {
    pieces: () => [counted(plain)],
    fill: (sluice, inputs, beside) => besides(sluice, nobodys, inputs, beside),
  },
  scheduled: {
    pieces: () => [counted(plain)],
    async fill(sluice, inputs, beside) {
      await sluice.enqueueMany(plain, some(beside), { delayMs: DAY_MS });
      await sluice.enqueueMany(plain, inputs);
    },
  },
  /** Made through the public door: enqueued and drained, so that they look as they would. */
  finished: {
    pieces: () => [counted(plain)],
    async fill(sluice, inputs, beside) {
      await finish(sluice, beside);
      await sluice.enqueueMany(plain, inputs);
    },
  },
  types: typesWith({}),
  "types-one-limited": typesWith({ concurrency: 10 }),
} satisfies Record<string, Play>;

export type SceneName = keyof typeof scenes;

export function playOf({ name }: Scene): Play {
  const play = (scenes as Record<string, Play>)[name];
  if (play === undefined) throw new Error(`no scene ${name}`);
  return play;
}

function counted(of: Contract): Piece {
  return { contract: of, counted: true };
}

async function besides(sluice: Sluice, other: Contract, inputs: readonly Input[], beside: number): Promise<void> {
  await sluice.enqueueMany(other, some(beside));
  await sluice.enqueueMany(plain, inputs);
}

function* some(count: number): Generator<Input> {
  for (let n = 0; n < count; n++) yield { n };
}

/** Runs so many no-ops, and keeps their history. */
async function finish(sluice: Sluice, count: number): Promise<void> {
  await sluice.enqueueMany(plain, some(count));
  const worker = sluice.worker({ ...TUNED, handlers: [plain.handle(async () => {})] });
  await worker.start();
  while (worker.status().completed < count) await sleep(100);
  await worker.stop();
}

/** 100 types in turns. The first one has the options; the other 99 are what is timed. */
function typesWith(options: { concurrency?: number }): Play {
  const contracts = Array.from({ length: TYPES }, (_, i) => contract(`type-${i}`, i === 0 ? options : {}));
  return {
    pieces: () => contracts.map((one, i) => ({ contract: one, counted: i > 0, work: "nothing" as const })),
    async fill(sluice, inputs) {
      for (let at = 0; at < inputs.length; at += RUN_LENGTH) {
        const one = contracts[(at / RUN_LENGTH) % TYPES]!;
        await sluice.enqueueMany(one, inputs.slice(at, at + RUN_LENGTH));
      }
    },
  };
}
