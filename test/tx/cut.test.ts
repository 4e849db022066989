import { describe, expect, test } from "vitest";
import { task } from "../../src/index.js";
import { fromPostgresJs } from "../../src/tx/index.js";
import { codeOf, openHouse } from "../client/house.js";
import { cutContract } from "./cut.js";
import { libraries } from "./libraries.js";

// postgres.js 3.4.9 does not survive this: its rollback on the dead connection throws where nothing
// can catch it, and its end() never returns.
const others = Object.entries(libraries).filter(([name]) => !/postgres.js/.test(name));

describe.each(others)("when the connection is cut, a transaction of %s", (_, open) => cutContract(open));

test("a postgres.js error about a closed connection is reported as database_unavailable", async () => {
  const house = await openHouse();
  const closed = Object.assign(new Error("write CONNECTION_CLOSED"), { code: "CONNECTION_CLOSED" });
  const tx = fromPostgresJs({ unsafe: () => Promise.reject(closed), savepoint: () => {} });
  const attempt = () => house.sluice.enqueue(task("note"), undefined, { tx });
  expect(await codeOf(attempt)).toBe("database_unavailable");
  await house.close();
});
