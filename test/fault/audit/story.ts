// Logs written by hand, in few words.
import { audit } from "../../../fault/audit/audit.js";
import type { Claims, Ended, Line, Terms } from "../../../fault/audit/line.js";
import { VIOLATIONS, type Report } from "../../../fault/audit/report.js";

export const terms: Terms = { leaseMs: 1000, recoverMs: 2000, limits: { pool: 2, "tenant/*": 1 } };

interface Where {
  readonly process?: string;
  readonly attempt?: number;
}

type Body<T> = T extends unknown ? Omit<T, "at" | "process"> : never;

export function line(at: number, process: string, body: Body<Line>): Line {
  return { at, process, ...body };
}

/** A task and what its producer, its handlers and the database say about it. */
export class Tale {
  readonly claims: Claims;
  readonly task: string;
  #runs = 0;

  constructor(tag: string, claims: Partial<Claims> = {}) {
    this.task = `#${tag}`;
    this.claims = {
      tag,
      type: "mail",
      orderKey: null,
      place: null,
      limits: [],
      runAt: null,
      attempts: 1,
      ...claims,
    };
  }

  offered(at: number): Line {
    return line(at, "producer", { kind: "offered", ...this.claims });
  }

  acknowledged(at: number): Line {
    return line(at, "producer", { kind: "acknowledged", tag: this.claims.tag, task: this.task });
  }

  withdrawn(at: number): Line {
    return line(at, "producer", { kind: "withdrawn", tag: this.claims.tag });
  }

  enqueued(at: number): Line[] {
    return [this.offered(at), this.acknowledged(at + 1)];
  }

  /** A run that has not ended. */
  begun(at: number, { process = "w1", attempt = 1 }: Where = {}): Line {
    const { task, claims } = this;
    const claim = String(++this.#runs);
    return line(at, process, { kind: "start", task, claim, attempt, ...claims });
  }

  /** `how`: an ending (of a snooze, for no time), or the reason for which it left. */
  ran(from: number, to: number, how: string = "completed", where: Where = {}): Line[] {
    const start = this.begun(from, where);
    return [start, this.ended(start, to, how)];
  }

  ended(start: Line, at: number, how = "completed"): Line {
    const { claim } = start as { claim: string };
    return line(at, start.process, { kind: "end", task: this.task, claim, ...endedAs(how) });
  }

  /** A success is that of the latest run, unless another is named. */
  accepted(
    at: number,
    state: "succeeded" | "failed" | "cancelled" = "succeeded",
    { code = null, of }: { readonly code?: string | null; readonly of?: Line } = {},
  ): Line {
    const [{ task }, run] = [this, of as { claim: string } | undefined];
    const claim = state === "succeeded" ? (run?.claim ?? String(this.#runs)) : null;
    return line(at, "queue", { kind: "accepted", task, state, attempt: 1, claim, code });
  }

  cancelling(at: number): Line {
    return line(at, "operator", { kind: "cancelling", task: this.task });
  }

  retrying(at: number): Line {
    return line(at, "operator", { kind: "retrying", task: this.task });
  }

  notRetried(at: number): Line {
    return line(at, "operator", { kind: "notRetried", task: this.task });
  }

  /** From the offer to the outcome, all well. */
  whole(from: number, to: number, where: Where = {}): Line[] {
    return [...this.enqueued(from - 5), ...this.ran(from, to, "completed", where), this.accepted(to + 1)];
  }
}

function endedAs(how: string): Ended {
  if (how === "snoozed") return { how, reason: null, snoozeMs: 0 };
  if (how === "completed" || how === "thrown" || how === "cancelled") return { how, reason: null };
  return { how: "left", reason: how };
}

export const dead = (at: number, process = "w1"): Line => line(at, process, { kind: "dead" });
export const serves = (at: number, process: string, ...types: string[]): Line =>
  line(at, process, { kind: "serves", types });
export const terminating = (at: number, process = "w1"): Line => line(at, process, { kind: "terminating" });

export function disturbance(from: number, to: number, process = "w1", what = "freeze"): Line[] {
  return [line(from, process, { kind: "disturbed", what }), line(to, process, { kind: "restored", what })];
}

export function change(from: number, to: number, limit: string, slots: number | null): Line[] {
  return [
    line(from, "operator", { kind: "changing", limit, slots }),
    line(to, "operator", { kind: "changed", limit, slots }),
  ];
}

export function pause(from: number, to: number, ...types: string[]): Line[] {
  return [
    line(from - 1, "operator", { kind: "pausing", types }),
    line(from, "operator", { kind: "paused", types }),
    line(to, "operator", { kind: "resuming", types }),
    line(to + 1, "operator", { kind: "resumed", types }),
  ];
}

export type Found = Partial<Record<(typeof VIOLATIONS)[number], number>>;

/** What was found, without the zeros. */
export function foundIn(report: Report): Found {
  const kinds = VIOLATIONS.filter((kind) => report.findings[kind].count > 0);
  return Object.fromEntries(kinds.map((kind) => [kind, report.findings[kind].count]));
}

export function found(...lines: (Line | readonly Line[])[]): Found {
  return foundIn(audit(lines.flat(), terms));
}
