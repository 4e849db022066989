import { setTimeout as sleep } from "node:timers/promises";
import type { Consumption, Input } from "../adapter.js";
import { nowMs } from "../numbers.js";
import type { Counter } from "./counter.js";
import type { Work } from "./messages.js";
import type { Watch } from "./watch.js";

/** What is done for each task. Synchronous where nothing has to be waited for. */
export function handlerOf(work: Work, counter: Counter, watch: Watch | null): Consumption["work"] {
  if (work === "latency") return (input) => timed(input, counter);
  if (work === "nothing") return watch === null ? counted(counter) : watched(counter, watch);
  return (input) => slept(work.sleepMs, input, counter, watch);
}

function counted(counter: Counter): Consumption["work"] {
  return () => {
    counter.begin();
    counter.end();
  };
}

function watched(counter: Counter, watch: Watch): Consumption["work"] {
  return (input) => {
    const at = watch.begin(input, nowMs());
    counter.begin();
    counter.end();
    watch.end(at, nowMs());
  };
}

function timed({ atMs }: Input, counter: Counter): void {
  counter.latency(nowMs() - atMs!);
  counter.begin();
  counter.end();
}

async function slept(sleepMs: number, input: Input, counter: Counter, watch: Watch | null): Promise<void> {
  const beganMs = nowMs();
  const at = watch?.begin(input, beganMs) ?? 0;
  counter.begin();
  await sleep(sleepMs);
  const endedMs = nowMs();
  counter.took(endedMs - beganMs);
  watch?.end(at, endedMs);
  counter.end();
}
