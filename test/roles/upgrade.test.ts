// Rights after an upgrade: some functions are new, others are gone from the package and still called.
import { afterAll, beforeAll, expect, test } from "vitest";
import { SCHEMA_VERSION } from "../../src/postgres/version.js";
import { openRealm, type Realm } from "./realm.js";

let realm: Realm;
beforeAll(async () => {
  realm = await openRealm("upgraded");
});
afterAll(() => realm.close());

const migrate = () => realm.connect("owner", { migrate: true });

/** A function that the package no longer has, while its predecessor may still work on the schema. */
async function retire(name: string): Promise<void> {
  await realm.sql("owner", "update sluice.compatibility set compatible_from = $1", [SCHEMA_VERSION - 1]);
  await realm.sql(
    "owner",
    `create function sluice.${name}() returns bigint language sql as 'select count(*) from sluice.task'`,
  );
  await realm.sql("owner", `alter function sluice.${name}() security definer set search_path = pg_catalog, pg_temp`);
  await realm.sql("owner", `revoke execute on function sluice.${name}() from public`);
  const [row] = await realm.sql("owner", "select rolname from pg_roles where rolname ~ $1", [
    `^${new URL(realm.url("producer")).username.replace("_login", "$")}`,
  ]);
  await realm.sql("owner", `grant execute on function sluice.${name}() to ${String(row!["rolname"])}`);
  await realm.sql("owner", `insert into sluice.installed values ('${name}', 'function', '')`);
}

test("a function that the package no longer has keeps its rights when roles.sql runs again", async () => {
  await retire("old_door");
  await migrate();
  await realm.grant();
  expect(await realm.sql("producer", "select sluice.old_door() as n")).toEqual([{ n: "0" }]);
  await expect(realm.sql("reader", "select sluice.old_door() as n")).rejects.toMatchObject({ code: "42501" });
});

test("a function that the package no longer has is not granted to PUBLIC", async () => {
  await retire("open_door");
  await realm.sql("owner", "grant execute on function sluice.open_door() to public");
  await migrate();
  await realm.grant();
  await expect(realm.sql("reader", "select sluice.open_door() as n")).rejects.toMatchObject({ code: "42501" });
});

test("a function that a migration installs is not granted to PUBLIC", async () => {
  await realm.sql("owner", "drop function sluice.ring");
  await migrate();
  const ring = `select p.proacl::text as acl, p.proowner = n.nspowner as owns from pg_proc p
    join pg_namespace n on n.oid = p.pronamespace where p.oid = 'sluice.ring'::regproc`.replace(
    "'sluice.",
    "'upgraded.",
  );
  const [row] = await realm.sql("owner", ring);
  // A grant to PUBLIC is "=X/owner" at the beginning. Without a list, PUBLIC has the right.
  expect(row).toEqual({ owns: true, acl: expect.stringMatching(/^\{[^=]/) });
});

test("functions of a schema without roles are granted to PUBLIC, including new ones", async () => {
  const open = await openRealm("unguarded");
  try {
    await open.sql("owner", "grant execute on all functions in schema unguarded to public");
    await open.sql("owner", "drop function sluice.ring");
    await open.connect("owner", { migrate: true });
    const rights = "select proacl is null as everybody from pg_proc where oid = 'unguarded.ring'::regproc";
    expect(await open.sql("owner", rights)).toEqual([{ everybody: true }]);
  } finally {
    await open.close();
  }
});
