import { setTimeout as sleep } from "node:timers/promises";
import { Sluice, type TaskHandler } from "../../../../src/index.js";
import type { Adapter, Consumer, Consumption, Input, Producer, Shape } from "../../adapter.js";
import { askNumber } from "../ask.js";
import { Caller, makeCallersTable } from "../callers-own.js";
import { contractOf } from "./contract.js";
import { withPermits, type Numbers } from "./numbers.js";
import { playOf, type Piece } from "./scene.js";

/** What differs between the variants. */
export interface Settings {
  readonly keepHistory: boolean;
  readonly numbers: Numbers;
  /** How often somebody asks for the metrics. */
  readonly readMetricsMs?: number;
}

const HANG_MS = 600_000;

// Not through the public door: counting cheaply what is not yet recorded needs a look at the one
// table that holds it. Peers have the same.
const RUNNING = "select count(*)::int as n from sluice.running";
const SUCCEEDED = "select count(distinct id)::int as n from sluice.done where state = 'succeeded'";

export function adapterOf(settings: Settings): Adapter {
  return {
    install,
    produce,
    consume: (url, consumption) => consume(settings, url, consumption),
    unfinished: async (url, shape) => {
      const hanging = shape.scene === undefined ? 0 : (playOf(shape.scene).hanging ?? 0);
      return Math.max(0, (await askNumber(url, RUNNING)) - hanging);
    },
    verify: (url, shape, total) => verify(settings, url, shape, total),
  };
}

async function install(url: string): Promise<void> {
  const sluice = await Sluice.connect({ url, listen: false });
  await sluice.close();
  await makeCallersTable(url);
}

async function produce(url: string, shape: Shape): Promise<Producer> {
  const sluice = await Sluice.connect({ url, migrate: false, listen: false });
  const caller = new Caller(url);
  const contract = contractOf(shape);
  return {
    enqueueMany: async (inputs) => {
      if (shape.scene === undefined) await sluice.enqueueMany(contract, inputs);
      else await playOf(shape.scene).fill(sluice, inputs, shape.scene.beside);
    },
    enqueueOne: async (input) => void (await sluice.enqueue(contract, input)),
    enqueueWith: (input) => caller.with(input.n, (tx) => sluice.enqueue(contract, input, { tx })),
    close: async () => {
      await caller.close();
      await sluice.close();
    },
  };
}

async function consume(
  { keepHistory, numbers, readMetricsMs }: Settings,
  url: string,
  { shape, permits, work, numbers: overridden }: Consumption,
): Promise<Consumer> {
  const history = keepHistory ? {} : { history: { succeededMs: 0 } };
  const sluice = await Sluice.connect({ url, migrate: false, ...history });
  const pieces: readonly Piece[] =
    shape.scene === undefined ? [{ contract: contractOf(shape), counted: true }] : playOf(shape.scene).pieces();
  const worker = sluice.worker({
    ...withPermits(numbers, permits),
    ...overridden,
    handlers: pieces.map((piece) => handlerOf(piece, work)),
  });
  let reading: NodeJS.Timeout | undefined;
  return {
    start: async () => {
      await worker.start();
      if (readMetricsMs !== undefined) reading = setInterval(() => void worker.metrics(), readMetricsMs);
    },
    claims: () => worker.status().claims,
    stop: async () => {
      clearInterval(reading);
      await worker.stop({ graceMs: 0 });
      await sluice.close();
    },
  };
}

function handlerOf(piece: Piece, work: Consumption["work"]): TaskHandler<Input, Input> {
  if (piece.counted) return piece.contract.handle(async (input) => work(input));
  return piece.contract.handle(piece.work === "hang" ? () => sleep(HANG_MS) : async () => {});
}

/** A fast worker that loses or doubles tasks is not fast. Without history there is nothing to count. */
async function verify({ keepHistory }: Settings, url: string, { scene }: Shape, total: number): Promise<void> {
  if (!keepHistory) return;
  const before = scene?.name === "finished" ? scene.beside : 0;
  const succeeded = (await askNumber(url, SUCCEEDED)) - before;
  if (succeeded !== total) throw new Error(`${succeeded} of ${total} tasks succeeded`);
}
