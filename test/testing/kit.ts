import { afterEach } from "vitest";
import { testSluice, type TestOptions, type TestSluice } from "../../src/testing/index.js";

const open: TestSluice[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((t) => t.close()));
});

/** The kit on the server of this test run, closed after the test. */
export async function kit(options: TestOptions = {}): Promise<TestSluice> {
  const t = await testSluice({ url: process.env["SLUICE_TEST_URL"]!, ...options });
  open.push(t);
  return t;
}

/** The violated invariants that the database reports. */
export async function violations(t: TestSluice): Promise<string[]> {
  const { default: pg } = await import("pg");
  const client = new pg.Client(t.url);
  await client.connect();
  const { rows } = await client.query<{ what: string }>("select what from sluice.violation");
  await client.end();
  return rows.map(({ what }) => what);
}
