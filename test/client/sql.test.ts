import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { limit, task, type } from "../../src/index.js";
import { openHouse, type House } from "./house.js";

const tenant = limit("tenant", { perKey: 2 });
const region = limit("region", { perKey: 2, total: 5 });
const mail = limit("mail", { total: 5 });
const input = type<{ text: string; tenant: string; region: string }>();
const plain = task("plain", { input: type<unknown>(), priority: 3, retry: { attempts: 7 } });
const keyed = task("keyed", {
  input,
  limits: [{ limit: region, key: (i) => i.region }, mail, { limit: tenant, key: (i) => i.tenant }],
});
const ordered = task("ordered", { input, order: { key: (i) => i.text, scope: "texts" } });
const inCode = task("in-code", { input, limits: (i) => [tenant.for(i.tenant)] });
const everything = [plain, keyed, ordered, inCode];

let house: House;
beforeAll(async () => {
  house = await openHouse();
  await house.sluice.sync(everything);
});
afterAll(() => house.close());

async function enqueue(args: string, params: unknown[] = []): Promise<string> {
  const [row] = await house.sql<{ id: string }>(`select sluice.enqueue(${args}) as id`, params);
  return row!.id;
}

/** Refused with this code, and nothing was enqueued. */
async function refuses(code: string, args: string, params: unknown[] = []): Promise<void> {
  const before = await house.tasks();
  const failure = await enqueue(args, params).catch((e: unknown) => e);
  expect(failure, args).toMatchObject({ code: "SLUIC", constraint: code });
  expect(await house.tasks()).toBe(before);
}

describe("sluice.enqueue in SQL", () => {
  test("sluice.enqueue creates a task with the options of its type, and a worker runs it", async () => {
    const worker = await house.work([plain.handle((i) => i)]);
    const handle = house.sluice.task(await enqueue(`'plain', '{"a": [1, "ü"]}'`));
    expect(await handle.result({ timeoutMs: 10_000 })).toEqual({ a: [1, "ü"] });
    expect(await handle.status()).toMatchObject({ type: "plain", priority: 3, attemptsMax: 7 });
    for (const none of ["'plain'", "'plain', null", "'plain', 'null'"]) {
      const nothing = house.sluice.task(await enqueue(none));
      expect(await nothing.result({ timeoutMs: 10_000 })).toBeNull();
    }
    await worker.stop();
  });

  test("sluice.enqueue accepts priority, time, queue and idempotency key", async () => {
    const id = await enqueue(
      `'plain', '1', priority => -5, run_at => now() + interval '1 hour', queue => 'default', idempotency_key => 'k'`,
    );
    expect(await house.sluice.task(id).status()).toMatchObject({
      priority: -5,
      state: "scheduled",
      queue: "default",
    });
    expect(await enqueue(`'plain', '1', idempotency_key => 'k'`)).toBe(id);
    await refuses("idempotency_conflict", `'plain', '2', idempotency_key => 'k'`);
    const found = await house.sluice.enqueue(plain, 1, { idempotencyKey: "k" });
    expect(found).toMatchObject({ id, existed: true });
  });

  test("sluice.enqueue puts a task into the same lanes as the client", async () => {
    const given = { text: "t", tenant: "acme", region: "eu" };
    const json = JSON.stringify(given);
    const lanesOf = (id: string) =>
      house.sql("select lanes, lane_limits, lane_keys, gate from sluice.task where id = $1", [id]);
    const a = (await house.sluice.enqueue(keyed, given)).id;
    const b = await enqueue(`'keyed', $1, keys => '{"tenant": "acme", "region": "eu"}'`, [json]);
    expect(await lanesOf(b)).toEqual(await lanesOf(a));
    const c = (await house.sluice.enqueue(ordered, given)).id;
    const d = await enqueue(`'ordered', $1, order_key => 't'`, [json]);
    expect(await lanesOf(d)).toEqual(await lanesOf(c));
  });
});

describe("refusals of sluice.enqueue in SQL", () => {
  test("sluice.enqueue refuses an unknown type or queue", async () => {
    await refuses("unknown_task", "'nobody'");
    await refuses("unknown_task", "''");
    await refuses("unknown_task", "null");
    await refuses("unknown_task", "$1", ["'; drop table sluice.task; --"]);
    await refuses("unknown_queue", "'plain', '1', queue => 'elsewhere'");
  });

  test("sluice.enqueue refuses a missing key, so that no task bypasses a limit or an order", async () => {
    await refuses("key_missing", "'keyed', '1'");
    await refuses("key_missing", "'keyed', '1', keys => null");
    await refuses("key_missing", `'keyed', '1', keys => '{"tenant": "a"}'`);
    await refuses("key_missing", `'keyed', '1', keys => '{"tenant": "a", "region": null}'`);
    await refuses("key_missing", "'ordered', '1'");
    for (const empty of [`"tenant": "", "region": "a"`, `"tenant": "a", "region": ""`]) {
      await refuses("invalid_key", `'keyed', '1', keys => '{${empty}}'`);
    }
  });

  test("sluice.enqueue refuses a key of a limit that the type does not have", async () => {
    await refuses("unknown_limit", `'plain', '1', keys => '{"tenant": "a"}'`);
    const keys = `{"tenant": "a", "region": "b", "mail": "c"}`;
    await refuses("unknown_limit", `'keyed', '1', keys => '${keys}'`);
    await refuses("unknown_limit", `'plain', '1', keys => '{"__proto__": "a"}'`);
    await refuses("invalid_option", "'plain', '1', order_key => 'a'");
    for (const odd of ["[]", '["tenant"]', '"tenant"', "5"]) {
      await refuses("invalid_option", `'plain', '1', keys => '${odd}'`);
    }
  });

  test("sluice.enqueue refuses a type whose limits are decided in code", async () => {
    await refuses("limits_in_code", `'in-code', '1', keys => '{"tenant": "a"}'`);
  });

  test("sluice.enqueue refuses keys that are empty, too long or contain control characters", async () => {
    const bad = ["\u0001", "a\nb", "a\u001eb", "a\u001fb", "a\u007f", "a\u009f", "", "x".repeat(513)];
    for (const key of bad) {
      await refuses("invalid_key", "'plain', '1', idempotency_key => $1", [key]);
      if (key !== "") await refuses("invalid_key", "'ordered', '1', order_key => $1", [key]);
      const keys = JSON.stringify({ tenant: key, region: "a" });
      await refuses("invalid_key", "'keyed', '1', keys => $1", [keys]);
    }
    await enqueue("'ordered', '1', order_key => $1", ["漢".repeat(512)]);
  });

  test("sluice.enqueue refuses an input that is too large or cannot be stored", async () => {
    await refuses("input_too_large", "'plain', to_json(repeat('x', 1048575))");
    await enqueue("'plain', to_json(repeat('x', 1048574))");
    await refuses("input_not_storable", `'plain', '{"a": "\\u0000"}'`);
    await refuses("input_not_storable", `'plain', '["\\ud800"]'`);
    await refuses("input_not_storable", `'plain', '["\\udc00\\ud800"]'`);
    await refuses("input_not_storable", `'plain', '1e999999'`);
    await enqueue(`'plain', '["\\ud83d\\ude00 \\\\u0000"]'`);
  });

  test("sluice.enqueue refuses numbers and times out of range", async () => {
    for (const priority of [32_001, -32_001, 2_147_483_647]) {
      await refuses("invalid_option", `'plain', '1', priority => ${priority}`);
    }
    for (const time of ["'infinity'", "'-infinity'", "'9999-01-01'", "'0001-01-01'"]) {
      await refuses("invalid_option", `'plain', '1', run_at => ${time}`);
    }
  });
});

describe("sluice.enqueue in a trigger", () => {
  beforeAll(async () => {
    await house.sql("create table account (id int primary key, tenant text, region text)");
    await house.sql(`create function on_account() returns trigger language plpgsql as $$
      begin
        perform sluice.enqueue('keyed', json_build_object('text', 'welcome', 'tenant', new.tenant, 'region', new.region),
          keys => jsonb_build_object('tenant', new.tenant, 'region', new.region));
        return new;
      end $$`);
    await house.sql("create trigger welcome after insert on account for each row execute function on_account()");
  });

  test("a trigger enqueues a task if and only if its row commits", async () => {
    const before = await house.tasks();
    const tx = await house.begin();
    await tx.query("insert into account select n, 'acme', 'eu' from generate_series(1, 50) n");
    await tx.query("rollback");
    tx.release();
    expect(await house.tasks()).toBe(before);
    const seen: unknown[] = [];
    const worker = await house.work([keyed.handle((i) => void seen.push(i.tenant))]);
    await house.sql("insert into account select n, 't' || n % 3, 'eu' from generate_series(1, 50) n");
    await expect.poll(() => seen.filter((t) => t !== "acme").length, { timeout: 10_000 }).toBe(50);
    await worker.stop();
  });

  test("a trigger that provides no key refuses the row", async () => {
    await expect(house.sql("insert into account values (99, null, 'eu')")).rejects.toMatchObject({
      constraint: "key_missing",
    });
    expect(await house.sql("select from account where id = 99")).toEqual([]);
  });

  test("sluice.enqueue works at every isolation level", async () => {
    for (const level of ["repeatable read", "serializable"]) {
      const tx = await house.begin();
      await tx.query(`set transaction isolation level ${level}`);
      const { rows } = await tx.query<{ id: string }>("select sluice.enqueue('plain', '1') as id");
      await tx.query("commit");
      tx.release();
      expect(await house.sluice.task(rows[0]!.id).status()).toMatchObject({ state: "ready" });
    }
  });
});

test("a task scheduled for the far future does not delay a due one", async () => {
  await enqueue("'plain', '1', run_at => now() + interval '99 years'");
  const worker = await house.work([plain.handle((i) => i)]);
  const soon = await house.sluice.enqueue(plain, "due", { delayMs: 50 });
  expect(await soon.result({ timeoutMs: 10_000 })).toBe("due");
  await worker.stop();
});
