// The clock of the database, which a fault may set. The engine reads the time from one function alone, so that is where
// it jumps: between one statement and the next, for all processes at once, as when the machine's clock is set. The server's
// own timers and the audit's clock go on as before.
import type pg from "pg";
import { insist } from "./faults/administrator.js";
import type { Log } from "./stage.js";

// In a table, because a replaced function would come back with the fault that replaces all of them by themselves.
const CREATE = `
  create table audit.clock (ahead_ms bigint not null);
  insert into audit.clock values (0);
  create or replace function sluice.clock() returns timestamptz language sql volatile as
    $$ select clock_timestamp() + (select ahead_ms from audit.clock) * interval '1 millisecond' $$;`;

// Before the new time counts: tasks in hand under leases that it ends, and leases that it makes longer than they may be.
const SET = `with time as (select clock_timestamp() + $1 * interval '1 millisecond' as at), leases as materialized (
    select w.expires_at <= time.at as ended, w.expires_at > time.at + w.lease_ms * interval '1 millisecond' as beyond,
      (select count(*) from sluice.running r where r.worker = w.id) as tasks
    from sluice.worker w, time where w.expires_at > sluice.clock()
  ), moved as (update audit.clock set ahead_ms = $1)
  select coalesce(sum(tasks) filter (where ended), 0)::int as "tasksLost",
    (count(*) filter (where beyond))::int as "leasesBeyond"
  from leases`;

/** What a jump met. */
export interface Jumped {
  readonly tasksLost: number;
  readonly leasesBeyond: number;
}

export class MovedClock {
  readonly #sql: pg.Pool;
  readonly #log: Log;
  #aheadMs = 0;
  #highestMs = 0;
  /** Hears how far the database's clock is ahead of the machine's. */
  onMove: (aheadMs: number) => void = () => {};

  constructor(sql: pg.Pool, log: Log) {
    this.#sql = sql;
    this.#log = log;
  }

  /** Before anybody works. Without it the clock cannot be set. */
  async create(): Promise<void> {
    await this.#sql.query(CREATE);
  }

  /** Sets it forward, or back, by so much. */
  async jump(byMs: number): Promise<Jumped> {
    const toMs = this.#aheadMs + byMs;
    await this.#log.write([{ kind: "clockMoving", byMs }]);
    const jumped = await insist(async () => {
      const { rows } = await this.#sql.query<Jumped>(SET, [toMs]);
      return rows[0]!;
    });
    await this.#log.write([{ kind: "clockMoved", byMs }]);
    this.#aheadMs = toMs;
    this.#highestMs = Math.max(this.#highestMs, toMs);
    this.onMove(toMs);
    return jumped;
  }

  /** As far ahead as it ever was: what was put off then need not wait for minutes. */
  async catchUp(): Promise<void> {
    if (this.#aheadMs >= this.#highestMs) return;
    const about = { process: "*", what: "clock-forward" };
    await this.#log.write([{ kind: "disturbed", ...about }]);
    await this.jump(this.#highestMs - this.#aheadMs);
    await this.#log.write([{ kind: "restored", ...about }]);
  }
}
