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

// Two tasks of w1, recorded at 21 and 41, and one of another worker.
const work = [
  ...new Tale("p/1").whole(10, 20),
  ...new Tale("p/2").whole(30, 40),
  ...new Tale("p/3").whole(30, 40, { process: "w2" }),
];

test("the audit accepts a worker whose counters match the log", () => {
  expect(found(work, scraped(15, 0), scraped(25, 1), scraped(50, 2), last(60, 2))).toEqual({});
  // A scrape may come before the reply does.
  expect(found(work, scraped(50, 1), last(60, 2))).toEqual({});
});

test("the audit finds a counter above the recorded completions, also of a killed worker", () => {
  expect(found(work, scraped(15, 1))).toEqual({ miscounted: 1 });
  expect(found(work, scraped(25, 2), last(60, 2))).toEqual({ miscounted: 1 });
  expect(found(work, scraped(50, 3), dead(55))).toEqual({ miscounted: 1 });
  // Tasks of other workers do not count.
  expect(found(work, last(60, 3))).toEqual({ miscounted: 1 });
});

test("the audit finds a final counter below the recorded completions, but only after an orderly shutdown", () => {
  expect(found(work, terminating(50), last(60, 1), dead(61))).toEqual({ miscounted: 1 });
  expect(found(work, scraped(50, 1), dead(55))).toEqual({});
  // It says that it does not know of one.
  expect(found(work, terminating(50), last(60, 1, 1), dead(61))).toEqual({});
  expect(found(work, terminating(50), last(60, 0, 1), dead(61))).toEqual({ miscounted: 1 });
});

test("the audit finds a counter that decreases or is missing", () => {
  expect(found(work, scraped(50, 2), scraped(51, 1))).toEqual({ miscounted: 1 });
  expect(found(work, line(50, "w1", { kind: "scraped", text: "", last: false }))).toEqual({
    miscounted: 1,
  });
});

test("the audit reports how many counters it compared with the log", () => {
  const { counted } = audit([...work, scraped(25, 1), last(60, 1, 1)], terms);
  expect(counted).toEqual({ scrapes: 2, workers: 1, ended: 1, completed: 1, unconfirmed: 1 });
});

test("the audit finds a worker that counts a completion when it sends it", () => {
  const tally = new Tally();
  // Sent, killed before the reply, and recorded by the next worker that ran it.
  tally.completed(1);
  const t = new Tale("p/4");
  const first = t.begun(70);
  const again = [...t.enqueued(65), first, t.ended(first, 80), dead(85)];
  const next = t.ran(1_000, 1_010, "completed", { process: "w2" });
  const lines = [...again, scraped(82, tally.completions), ...next, t.accepted(1_011)];
  expect(found(lines)).toEqual({ miscounted: 1 });
});
