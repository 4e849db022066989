import { expect, test } from "vitest";
import { audit } from "../../../fault/audit/audit.js";
import type { Line } from "../../../fault/audit/line.js";
import { counters } from "../../../fault/scraper.js";
import { Tally } from "../../../src/metrics/tally.js";
import { dead, found, line, Tale, terminating, terms } from "./story.js";

const text = (completed: number, unconfirmed: number): string =>
  counters(
    `# TYPE sluice_worker_tasks_completed_total counter\nsluice_worker_tasks_completed_total ${completed}\n\nsluice_worker_tasks_unconfirmed_total ${unconfirmed}\nsluice_worker_tasks_refused_total 9\n`,
  );
const scraped = (at: number, completed: number, unconfirmed = 0, last = false): Line =>
  line(at, "w1", { kind: "scraped", text: text(completed, unconfirmed), last });
const last = (at: number, completed: number, unconfirmed = 0): Line => scraped(at, completed, unconfirmed, true);

// Two tasks of w1, recorded at 21 and 41, and one of somebody else.
const work = [
  ...new Tale("p/1").whole(10, 20),
  ...new Tale("p/2").whole(30, 40),
  ...new Tale("p/3").whole(30, 40, { process: "w2" }),
];

test("a worker that counts what was recorded of it is believed", () => {
  expect(found(work, scraped(15, 0), scraped(25, 1), scraped(50, 2), last(60, 2))).toEqual({});
  // A scrape may come before the reply does.
  expect(found(work, scraped(50, 1), last(60, 2))).toEqual({});
});

test("more than was recorded until then is a finding, also of one that was killed", () => {
  expect(found(work, scraped(15, 1))).toEqual({ miscounted: 1 });
  expect(found(work, scraped(25, 2), last(60, 2))).toEqual({ miscounted: 1 });
  expect(found(work, scraped(50, 3), dead(55))).toEqual({ miscounted: 1 });
  // What others did is not its own.
  expect(found(work, last(60, 3))).toEqual({ miscounted: 1 });
});

test("less than was recorded is a finding for one that ended in good order, and only for that", () => {
  expect(found(work, terminating(50), last(60, 1), dead(61))).toEqual({ miscounted: 1 });
  expect(found(work, scraped(50, 1), dead(55))).toEqual({});
  // It says that it does not know of one.
  expect(found(work, terminating(50), last(60, 1, 1), dead(61))).toEqual({});
  expect(found(work, terminating(50), last(60, 0, 1), dead(61))).toEqual({ miscounted: 1 });
});

test("a counter that goes back, or is not there, is a finding", () => {
  expect(found(work, scraped(50, 2), scraped(51, 1))).toEqual({ miscounted: 1 });
  expect(found(work, line(50, "w1", { kind: "scraped", text: "", last: false }))).toEqual({
    miscounted: 1,
  });
});

test("the report says how much was held against the log", () => {
  const { counted } = audit([...work, scraped(25, 1), last(60, 1, 1)], terms);
  expect(counted).toEqual({ scrapes: 2, workers: 1, ended: 1, completed: 1, unconfirmed: 1 });
});

test("a worker that counts a completion when it sends it, and not when it is taken, is caught", () => {
  const tally = new Tally();
  // Sent, killed with the reply under way, and recorded by whoever ran it next.
  tally.completed(1);
  const t = new Tale("p/4");
  const first = t.begun(70);
  const again = [...t.enqueued(65), first, t.ended(first, 80), dead(85)];
  const next = t.ran(1_000, 1_010, "completed", { process: "w2" });
  const lines = [...again, scraped(82, tally.completions), ...next, t.accepted(1_011)];
  expect(found(lines)).toEqual({ miscounted: 1 });
});
