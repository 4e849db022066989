import pg from "pg";
import type { Cast } from "../cast.js";
import type { Drain } from "../measure/drain.js";
import type { Workload } from "../workload.js";
import type { SceneName } from "../library/sluice/scene.js";
import { compared, UNLIMITED, unlimited } from "./unlimited.js";

/** What stands beside the tasks that are drained. */
interface Depth {
  readonly name: SceneName;
  readonly subject: string;
  readonly about: string;
  readonly beside: number;
}

const QUICK_SHARE = 20;
// Long enough for what a snapshot keeps alive to get in the way.
const SNAPSHOT_TIMES = 4;

const depths: readonly Depth[] = [
  {
    name: "blocked",
    subject: "a million blocked beside it",
    about: "no-ops beside a million tasks that wait at a limit of 1, whose slot a hanging task holds",
    beside: 1_000_000,
  },
  {
    name: "scheduled",
    subject: "a million scheduled beside it",
    about: "no-ops beside a million tasks that are due tomorrow",
    beside: 1_000_000,
  },
  {
    name: "finished",
    subject: "three million finished beside it",
    about: "no-ops beside the history of three million tasks",
    beside: 3_000_000,
  },
  {
    name: "unserved",
    subject: "half a million unserved beside it",
    about: "no-ops beside half a million ready tasks of a type without a worker",
    beside: 500_000,
  },
];

/** A deep backlog must not slow down what can run: Sluice against itself. */
export function deep(cast: Cast, quick: boolean): Workload[] {
  return [
    ...depths.map(({ name, subject, about, beside }) =>
      workload(cast, name, about, subject, {
        shape: { scene: { name, beside: quick ? beside / QUICK_SHARE : beside } },
      }),
    ),
    workload(
      cast,
      "snapshot",
      "no-ops while another session holds a snapshot from before the drain",
      "a snapshot is held",
      { shape: {}, beside: holdSnapshot },
      SNAPSHOT_TIMES,
    ),
  ];
}

function workload(cast: Cast, name: string, about: string, subject: string, drain: Drain, times = 1): Workload {
  return {
    name,
    about,
    unit: "tasks/s",
    better: "more",
    sizing: { by: "seconds", alike: true, times },
    base: { subject: UNLIMITED },
    subjects: [unlimited(cast), compared(cast, subject, drain)],
  };
}

/** A transaction whose first statement has been run: what was alive then stays. */
async function holdSnapshot(url: string): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query("begin isolation level repeatable read");
  await client.query("select count(*) from pg_class");
  return () => client.end();
}
