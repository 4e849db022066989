// Enters the locked section repeatedly, and reports if another process is inside.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { withLock } from "../../src/embedded/lock.js";

const [directory, rounds, then] = process.argv.slice(2) as [string, string, string];
const inside = join(directory, "inside");

for (let round = 0; round < Number(rounds); round += 1) {
  await withLock(directory, async () => {
    writeFileSync(inside, String(process.pid));
    await new Promise((resolve) => setImmediate(resolve));
    if (readFileSync(inside, "utf8") !== String(process.pid)) console.log("clash");
  });
}
if (then === "hold") {
  await withLock(directory, async () => {
    console.log("holding");
    await new Promise((resolve) => setTimeout(resolve, 600_000));
  });
}
console.log("done");
