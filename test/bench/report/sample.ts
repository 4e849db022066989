import type { About, Facts, Ratios, Result, Who } from "../../../bench/src/result.js";

/** An invented bench run for the tests of reports. */
export const about: About = {
  at: "2030-01-02T03:04:05.000Z",
  command: "npm run bench -- accept",
  node: "v24.1.0",
  postgres: "15.18 (Debian 15.18-0)",
  redis: "7.0.15",
  settings: { fsync: "on", shared_buffers: "256MB" },
  cpu: "Some Processor @ 2.50GHz",
  cores: 2,
  memoryMb: 8_192,
  repetitions: 3,
  seconds: 4,
  quick: false,
  versions: { sluice: "0.1.0", "graphile-worker": "0.18.0", "pg-boss": "12.35.0" },
};

export function who(library: string, variant: string, store: Who["store"] = "postgres"): Who {
  const config = `${variant}: ${library} as its maintainers advise`;
  return { name: `${library}, ${variant}`, library, variant, config, version: "1.2.3", store };
}

export const subjects = {
  off: who("sluice", "history off"),
  on: who("sluice", "history on"),
  pureSql: who("pure-sql", "bare loop"),
  graphile: who("graphile-worker", "tuned"),
  graphileDefault: who("graphile-worker", "default"),
  graphileStrict: who("graphile-worker", "strict"),
  boss: who("pg-boss", "tuned"),
  bullRedis: who("bullmq-redis", "tuned", "redis"),
  bullPostgres: who("bullmq-postgres", "tuned"),
  dbos: who("dbos", "tuned"),
};

interface Extra {
  readonly ratios?: Ratios;
  readonly facts?: Facts;
  readonly spread?: number;
}

/** The result of one subject of a workload. */
export type Row = readonly [who: Who, value: number | string, extra?: Extra];

export function workload(
  name: string,
  about: string,
  rows: readonly Row[],
  unit: Result["unit"] = "tasks/s",
): Result[] {
  return rows.map(([subject, value, extra = {}]) => ({
    workload: name,
    about,
    subject,
    unit,
    better: unit === "tasks/s" ? ("more" as const) : ("less" as const),
    base: null,
    samples: [],
    ...(typeof value === "string" ? unable(value) : able(value, extra)),
  }));
}

function unable(cannot: string) {
  return { value: null, min: null, max: null, ratios: {}, facts: {}, cannot };
}

function able(value: number, { ratios = {}, facts = {}, spread = 0.06 }: Extra) {
  return { value, min: value * (1 - spread), max: value * (1 + spread), ratios, facts };
}

const costs = {
  nodeCpuMsPer1000: 12.4,
  databaseCpuMsPer1000: 15.1,
  walBytesPerTask: 512,
  rssMb: 140,
};
const { off, on, pureSql, graphile, graphileDefault, graphileStrict, boss, bullRedis, bullPostgres, dbos } = subjects;

export const sample: readonly Result[] = [
  ...workload("drain-1", "no-ops by one process", [
    [on, 55_200, { ratios: { bestPeer: 1.25 }, facts: costs }],
    [off, 66_800, { ratios: { bestPeer: 1.52, pureSql: 0.81 }, facts: costs }],
    [graphileDefault, 1_830],
    [graphile, 44_050, { facts: costs, spread: 0.15 }],
    [boss, 28_100],
    [bullRedis, 17_000],
    [bullPostgres, 3_100],
    [dbos, 1_520],
    [pureSql, 82_300],
  ]),
  ...workload("drain-2", "no-ops by two processes", [
    [on, 70_100],
    [off, 76_000],
    [graphile, 65_000],
    [boss, 40_000],
  ]),
  ...workload("enqueue", "one call after the other, with the best call for many tasks", [
    [on, 92_000],
    [graphile, 57_000],
    [boss, 46_000],
    [bullRedis, 27_000],
    [pureSql, 110_000],
  ]),
  ...workload(
    "order-contiguous",
    "no-ops over 100 order keys, the tasks of each key one after the other, by one process that has 1,000 permits and a good deal of patience",
    [
      [off, 31_200, { facts: { inversions: 0 } }],
      [graphile, 6_510, { facts: { inversions: 41_233 } }],
      [graphileStrict, 1_650, { facts: { inversions: 0 } }],
      [boss, 19, { facts: { inversions: 0 } }],
      [dbos, "it has no order within a key"],
    ],
  ),
  ...workload("limit-10-noop", "no-ops under a limit of 10", [
    [off, 18_000],
    [bullRedis, 12_400],
    [boss, 4_700],
    [dbos, 1_000],
    [graphile, "it has no limit over all processes"],
    [graphileDefault, "it has no limit over all processes"],
  ]),
  ...workload(
    "latency",
    "300 tasks, 20 ms apart, until the handler begins",
    [
      [off, 1.41, { ratios: { bestPostgresPeer: 0.78 }, facts: { p50Ms: 1.41, p99Ms: 4.02 } }],
      [bullRedis, 1.4, { facts: { p50Ms: 1.4, p99Ms: 3.9 } }],
      [graphile, 1.81, { facts: { p50Ms: 1.81, p99Ms: 6.44 } }],
      [boss, 3.12, { facts: { p50Ms: 3.12, p99Ms: 9.87 } }],
    ],
    "ms",
  ),
  ...workload("blocked", "no-ops beside a million tasks of a full limit", [[off, 64_000]]),
];
