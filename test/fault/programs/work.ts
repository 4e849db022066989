import { fixed, limit, task, type, type TaskContract } from "../../../src/index.js";
import type { AuditEntry } from "../../support/audit.js";

/** The input of a task of these tests. */
export interface Work {
  /** How long it takes. */
  readonly ms: number;
  readonly order?: string;
  /** The key of every limit per key. */
  readonly key?: string;
  /**
   * hang: ends only when its signal is aborted. die: kills its process once that has so many tasks
   * in hand, or soon if it has not. meet: begins its ms when so many of its type have started anywhere,
   * so that they all run at one moment, on however slow a machine.
   */
  readonly do?: "hang" | "die" | "meet";
  readonly beside?: number;
  readonly padding?: string;
}

/** A type of task in words that can be sent to another process. */
export interface WorkType {
  readonly name: string;
  readonly concurrency?: number;
  readonly limits?: readonly {
    readonly name: string;
    readonly total?: number;
    readonly perKey?: number;
  }[];
  readonly attempts?: number;
}

/** What a worker process is started with. */
export interface WorkerConfig {
  readonly name: string;
  readonly url: string;
  readonly auditUrl: string;
  readonly types: readonly WorkType[];
  readonly worker?: Readonly<Record<string, number>>;
  readonly listen?: boolean;
  /** Its handlers never end, so its tasks stay in flight. */
  readonly holds?: boolean;
  readonly history?: { readonly succeededMs: number };
}

export type WorkContract = TaskContract<Work, Work, { readonly by: string }>;

/** The contract, the same for producers and workers. */
export function contractOf({ name, concurrency, limits = [], attempts = 5 }: WorkType): WorkContract {
  const uses = limits.map(({ name, total, perKey }) =>
    perKey === undefined
      ? limit(name, { total: total ?? null })
      : limit(name, total === undefined ? { perKey } : { perKey, total }).for((w: Work) => w.key ?? ""),
  );
  return task(name, {
    input: type<Work>(),
    output: type<{ by: string }>(),
    order: (work) => work.order,
    limits: uses,
    retry: { attempts, backoff: fixed(10) },
    ...(concurrency === undefined ? {} : { concurrency }),
  });
}

/** What the audit records about an execution. A type's own limit has the name of the type. */
export function entryOf(
  about: WorkType,
  work: Work,
  run: { readonly id: string; readonly attempt: number; readonly claim: string },
): AuditEntry {
  const totals = (about.limits ?? []).filter((l) => l.total !== undefined).map((l) => l.name);
  const keyed = (about.limits ?? []).filter((l) => l.perKey !== undefined);
  return {
    task: run.id,
    attempt: run.attempt,
    claim: run.claim,
    type: about.name,
    orderKey: work.order ?? null,
    limitKeys: [
      ...(about.concurrency === undefined ? [] : [about.name]),
      ...totals,
      ...keyed.map((l) => `${l.name}:${work.key}`),
    ],
  };
}
