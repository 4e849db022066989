// What the producer and the workers agree on: two kinds of task under three limits.
import { limit, task, type } from "../../src/index.js";

/** A worker that is silent for so long is dead. Short, so that a recovery can be watched. */
export const LEASE_MS = 2_000;

/** The numbers as the code declares them; an operator may change them while everything runs. */
export const SLOTS = { mail: 6, tenant: 4, gateway: 16 } as const;

export interface Job {
  readonly tenant: string;
  readonly account: string;
  /** The how many-th of its account it is, from 0. */
  readonly place: number;
  /** How long it takes. */
  readonly ms: number;
}

const tenant = limit("tenant", { perKey: SLOTS.tenant });
const gateway = limit("gateway", { total: SLOTS.gateway });

/** One account's charges run one after the other, in the order in which they were enqueued. */
export const charge = task("charge", {
  input: type<Job>(),
  order: (job) => job.account,
  limits: [{ limit: tenant, key: (job) => job.tenant }, gateway],
});

/** Mails have no order, but a limit of their own. They share the gateway with the charges. */
export const mail = task("mail", {
  input: type<Job>(),
  concurrency: SLOTS.mail,
  limits: [gateway],
});

/** The limits that a run holds a slot of, as a handler writes them into its log. */
export function limitsOf(type: string, job: Job): string[] {
  return ["gateway", type === "mail" ? "mail" : `tenant/${job.tenant}`];
}

export const TENANTS = ["t1", "t2", "t3", "t4"];
const ACCOUNTS = 48;
const MAILS_SHARE = 0.4;
const MS_MIN = 5;
const MS_MAX = 50;

/** How many there are of each type. */
export type Tasks = Readonly<Record<"charge" | "mail", number>>;

export function tasksOf(count: number): Tasks {
  const mails = Math.round(count * MAILS_SHARE);
  return { charge: count - mails, mail: mails };
}

/** Jobs number `from` to `to`, spread evenly over accounts and tenants. */
export function jobs(from: number, to: number): Job[] {
  return Array.from({ length: to - from }, (_, n) => from + n).map((i) => ({
    tenant: TENANTS[i % TENANTS.length]!,
    account: `a${(i % ACCOUNTS) + 1}`,
    place: Math.floor(i / ACCOUNTS),
    ms: MS_MIN + Math.floor(Math.random() * (MS_MAX - MS_MIN + 1)),
  }));
}
