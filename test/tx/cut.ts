import { afterAll, beforeAll, expect, test } from "vitest";
import { task, type } from "../../src/index.js";
import { codeOf, openHouse, type House } from "../client/house.js";
import type { Library } from "./library.js";

const note = task("note", { input: type<string>() });

/** Tests of a connection that is cut during a statement of Sluice. */
export function cutContract(open: (url: string) => Library | Promise<Library>): void {
  let house: House;
  let library: Library;

  beforeAll(async () => {
    house = await openHouse();
    library = await open(house.url);
  });
  afterAll(async () => {
    await library.close();
    await house.close();
  });

  test("reports database_unavailable and leaves nothing behind", async () => {
    let seen: unknown;
    const attempt = library.transaction(async ({ tx }) => {
      await house.sluice.enqueue(note, "before the cut", { tx });
      const cut = { query: () => tx.query("select pg_terminate_backend(pg_backend_pid())") };
      seen = await codeOf(() => house.sluice.enqueue(note, "cut", { tx: cut }));
      throw new Error("cut");
    });
    await expect(attempt).rejects.toThrow();
    expect(seen).toBe("database_unavailable");
    expect(await house.tasks()).toBe(0);
  });
}
