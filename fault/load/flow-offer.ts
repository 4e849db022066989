// Starts flows until they are acknowledged, whatever becomes of the replies on the way.
import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "../../src/client.js";
import type { Queryable } from "../../src/index.js";
import type { LogWriter } from "../log.js";
import type { Random } from "../random.js";
import type { Unstamped } from "../stage.js";
import { workflowOf, type FlowName } from "./flows.js";
import { parentOf, planFlow, type FlowPlan } from "./flow-plan.js";
import { claimsOf } from "./handler.js";
import { inTransaction, LATE_MS_MAX, untilAcknowledged } from "./offer.js";
import { parts } from "./parts.js";

/** How many of a producer's tasks are parts of flows. */
const SHARE = 0.2;
/** So many parts come at once: a short run sees flows too. */
const FIRST = 100;
const TRANSACTION_SHARE = 0.2;

/** What a flow claims, for the log: itself, and each of its parts. */
export function offerOf(plan: FlowPlan): Unstamped[] {
  const parent = plan.name === "map" ? parentOf(plan).work : null;
  const works = parent === null ? plan.works : [parent, ...plan.works];
  const flow = { kind: "flowOffered", flow: plan.tag, parent: parent?.tag ?? null } as const;
  return [{ ...flow, nodes: plan.nodes }, ...works.map((work) => ({ kind: "offered", ...claimsOf(work) }) as const)];
}

/** The transaction was rolled back. */
export function withdrawalOf(plan: FlowPlan): Unstamped[] {
  const tags = [...plan.works.map(({ tag }) => tag), ...(plan.name === "map" ? [plan.tag] : [])];
  return [{ kind: "flowWithdrawn", flow: plan.tag }, ...tags.map((tag) => ({ kind: "withdrawn", tag }) as const)];
}

/** Starts it, or enqueues the task that makes it. Returns the task's id. */
export async function startFlow(
  client: Pick<Client, "start" | "enqueue">,
  plan: FlowPlan,
  tx?: Queryable,
): Promise<string | null> {
  const options = { idempotencyKey: plan.tag, ...(tx === undefined ? {} : { tx }) };
  if (plan.name === "map") return (await client.enqueue(parts.parent, parentOf(plan), options)).id;
  await client.start(workflowOf(plan.name), plan.input, options);
  return null;
}

export class FlowOffers {
  readonly #client: Client;
  readonly #log: LogWriter;
  readonly #o: { readonly url: string; readonly producer: string; readonly alone: boolean };
  readonly #random: Random;
  readonly #names: readonly FlowName[];
  #parts = 0;
  #made = 0;

  constructor(
    client: Client,
    log: LogWriter,
    random: Random,
    names: readonly FlowName[],
    o: { readonly url: string; readonly producer: string; readonly alone: boolean },
  ) {
    this.#client = client;
    this.#log = log;
    this.#random = random;
    this.#names = names;
    this.#o = o;
  }

  /** The next one, if it is the turn of a flow after so many tasks. */
  next(tasks: number): FlowPlan | null {
    const turn = this.#o.alone || this.#parts <= Math.max(FIRST, tasks * SHARE);
    if (this.#names.length === 0 || !turn) return null;
    const name = this.#names[this.#made % this.#names.length]!;
    const plan = planFlow(name, `${this.#o.producer}/f${++this.#made}`, this.#random);
    this.#parts += plan.works.length;
    return plan;
  }

  /** Resolves with how many parts were acknowledged. */
  async make(plan: FlowPlan): Promise<number> {
    await this.#log.write(offerOf(plan));
    const chance = this.#random.next();
    if (chance < TRANSACTION_SHARE / 2) return this.#withdraw(plan);
    if (chance < TRANSACTION_SHARE) await this.#in(plan, "commit").catch(() => {});
    const task = await untilAcknowledged(() => startFlow(this.#client, plan));
    await this.#log.write([
      { kind: "flowAcknowledged", flow: plan.tag },
      ...(task === null ? [] : [{ kind: "acknowledged", tag: plan.tag, task } as const]),
    ]);
    return plan.works.length;
  }

  async #withdraw(plan: FlowPlan): Promise<number> {
    await this.#in(plan, "rollback").catch(() => {});
    await this.#log.write(withdrawalOf(plan));
    return 0;
  }

  #in(plan: FlowPlan, end: "commit" | "rollback"): Promise<void> {
    return inTransaction(this.#o.url, end, async (tx) => {
      await startFlow(this.#client, plan, tx);
      await delay(Math.random() * LATE_MS_MAX);
    });
  }
}
