// What workflows cost beside plain tasks: through one worker, as a user would run them.
import { startEmbedded } from "../../src/embedded/index.js";
import { Sluice, task, type, workflow } from "../../src/index.js";
import type { Figure, Measured } from "./figure.js";

const ROUNDS = 3;
const ITEMS = 10_000;
const WINDOW = 100;
const RUNS = 1_000;
const NODES = 5;
const STARTS_AT_ONCE = 7;
const SIBLINGS = [1_000, 10_000, 100_000] as const;

const limited = task("limited", { input: type<number>(), concurrency: WINDOW });
const plain = task("plain", { input: type<number>() });
const item = task("item", { input: type<number>() });
const link = task("link", { input: type<number>(), output: type<number>() });
const fanOut = workflow("fan-out", { input: type<{ list: number[] }>() }, (w, input) => {
  w.each("items", item, input.list, (n) => n, { window: WINDOW });
});
const chain = workflow("chain", { input: type<number>() }, (w, input) => {
  let before = w.task("node 1", link, input);
  for (let n = 2; n <= NODES; n++) before = w.task(`node ${n}`, link, before);
});

/** A worker of its own database; what is measured is told in tasks a second. */
class Stage {
  readonly #sluice: Sluice;
  #ended = 0;
  #wake: (() => void) | null = null;

  constructor(sluice: Sluice) {
    this.#sluice = sluice;
  }

  /** Makes what is to be done, then lets a worker do it; `made` is whether making counts. */
  async rate(tasks: number, make: (sluice: Sluice) => Promise<unknown>, made: boolean): Promise<number> {
    this.#ended = 0;
    const begun = performance.now();
    await make(this.#sluice);
    const from = made ? begun : performance.now();
    const ended = (n?: number): number => {
      if (++this.#ended >= tasks) this.#wake?.();
      return n ?? 0;
    };
    const handlers = [limited, plain, item].map((t) => t.handle(() => void ended()));
    const worker = this.#sluice.worker({ handlers: [...handlers, link.handle(ended)] });
    const over = new Promise<void>((resolve) => (this.#wake = resolve));
    await worker.start();
    await over;
    const seconds = (performance.now() - from) / 1_000;
    await worker.stop();
    return tasks / seconds;
  }
}

async function measured<T>(work: (stage: Stage) => Promise<T>): Promise<T> {
  const server = await startEmbedded({ settings: { shared_buffers: "256MB" } });
  const sluice = await Sluice.connect({ url: server.url });
  try {
    return await work(new Stage(sluice));
  } finally {
    await sluice.close();
    await server.stop();
  }
}

const numbers = (n: number): number[] => Array.from({ length: n }, (_, i) => i);
const median = (of: readonly number[]): number => of.toSorted((a, b) => a - b)[of.length >> 1]!;
const perSecond = (rate: number): string => `${Math.round(rate).toLocaleString("en")}/s`;

/** Both in turn, so that a slow minute of the machine hits both. */
async function compared(
  tell: (line: string) => void,
  sides: Readonly<Record<"ours" | "plain", () => Promise<number>>>,
): Promise<{ ratio: number; words: string }> {
  const seen = { ours: [] as number[], plain: [] as number[] };
  for (let round = 0; round < ROUNDS; round++)
    for (const side of ["plain", "ours"] as const) {
      seen[side].push(await sides[side]());
      tell(`round ${round + 1}, ${side}: ${perSecond(seen[side].at(-1)!)}`);
    }
  const [ours, beside] = [median(seen.ours), median(seen.plain)];
  const ratio = ours / beside;
  return { ratio, words: `${ratio.toFixed(2)}x: ${perSecond(ours)} beside ${perSecond(beside)}` };
}

function startFanOut(items: number): (sluice: Sluice) => Promise<unknown> {
  return (sluice) => sluice.start(fanOut, { list: numbers(items) });
}

async function startChains(sluice: Sluice): Promise<void> {
  const left = numbers(RUNS);
  const starter = async (): Promise<void> => {
    for (let n = left.pop(); n !== undefined; n = left.pop()) await sluice.start(chain, n);
  };
  await Promise.all(Array.from({ length: STARTS_AT_ONCE }, starter));
}

function figure(
  name: string,
  target: string,
  measure: (stage: Stage, tell: (line: string) => void) => Promise<Omit<Measured, "command">>,
): Figure {
  const command = `npm run figures -- ${name}`;
  return {
    name,
    target,
    measure: async (tell) => ({
      ...(await measured((stage) => measure(stage, tell))),
      command,
    }),
  };
}

export const flowFigures: readonly Figure[] = [
  figure(
    "fan-out",
    `a fan-out of ${ITEMS} items, window ${WINDOW}, made and run: at least 0.6x as many plain tasks with a limit of ${WINDOW}`,
    async (stage, tell) => {
      const { ratio, words } = await compared(tell, {
        plain: () => stage.rate(ITEMS, (s) => s.enqueueMany(limited, numbers(ITEMS)), true),
        ours: () => stage.rate(ITEMS, startFanOut(ITEMS), true),
      });
      return { ok: ratio >= 0.6, seen: words };
    },
  ),
  figure(
    "chains",
    `${RUNS} workflows of ${NODES} nodes, run: at least 0.4x as many plain tasks`,
    async (stage, tell) => {
      const tasks = RUNS * NODES;
      const { ratio, words } = await compared(tell, {
        plain: () => stage.rate(tasks, (s) => s.enqueueMany(plain, numbers(tasks)), false),
        ours: () => stage.rate(tasks, startChains, false),
      });
      return { ok: ratio >= 0.4, seen: words };
    },
  ),
  figure("siblings", "an item costs no more among 100,000 than among 1,000 (at most 1.25x)", async (stage, tell) => {
    const rates: number[] = [];
    for (const items of SIBLINGS) {
      rates.push(await stage.rate(items, startFanOut(items), true));
      tell(`${items} items: ${perSecond(rates.at(-1)!)}`);
    }
    const words = SIBLINGS.map((n, i) => `${n}: ${perSecond(rates[i]!)}`).join(", ");
    return { ok: rates[0]! / rates.at(-1)! <= 1.25, seen: words };
  }),
];
