import { expect, test } from "vitest";
import { knex as openKnex } from "knex";
import { fromKnex } from "../../src/tx/index.js";
import { openHouse } from "../client/house.js";

test("the Knex adapter accepts repeated parameters in any order and literal question marks", async () => {
  const house = await openHouse();
  const knex = openKnex({ client: "pg", connection: house.url, pool: { min: 0, max: 1 } });
  const text = "select $2::text as b, $1::text as a, $2::text as c, '{\"k\": 1}'::jsonb ? 'k' as has";
  const rows = await knex.transaction((trx) =>
    fromKnex(trx)
      .query(text, ["one ? $2", "two ?? \\?"])
      .then((result) => result.rows as unknown[]),
  );
  expect(rows).toEqual([{ a: "one ? $2", b: "two ?? \\?", c: "two ?? \\?", has: true }]);
  await knex.destroy();
  await house.close();
});
