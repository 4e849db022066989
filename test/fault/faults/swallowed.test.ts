import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { WireProxy } from "../../../fault/proxy.js";
import { scene, until } from "../../flow/scene.js";

async function behindProxy(): Promise<{ proxy: WireProxy; client: pg.Client }> {
  const s = await scene();
  const proxy = await WireProxy.start(s.url);
  const client = new pg.Client(proxy.url);
  client.on("error", () => {});
  await client.connect();
  await client.query("select 1");
  onTestFinished(async () => {
    proxy.close();
    await client.end().catch(() => {});
  });
  return { proxy, client };
}

test.each(["blackHole", "halfOpen"] as const)("%s reports whether it has swallowed anything", async (way) => {
  const { proxy, client } = await behindProxy();
  proxy[way]();
  expect(proxy.swallowed()).toBe(0);
  const asked = client.query("select 1").then(
    () => "answered",
    () => "lost",
  );
  await until("something to be swallowed", () => Promise.resolve(proxy.swallowed() === 1));
  proxy.restore();
  expect(await asked).toBe("lost");
  expect(proxy.swallowed()).toBe(0);
});

test("the proxy does not count forwarded data as swallowed", async () => {
  const { proxy, client } = await behindProxy();
  await client.query("select 1");
  expect(proxy.swallowed()).toBe(0);
});

test("the proxy counts a connection opened in a black hole as swallowed", async () => {
  const { proxy } = await behindProxy();
  proxy.blackHole();
  const late = new pg.Client(proxy.url);
  late.on("error", () => {});
  const connected = late.connect().then(
    () => "connected",
    () => "lost",
  );
  await until("it to be swallowed", () => Promise.resolve(proxy.swallowed() === 1));
  proxy.restore();
  expect(await connected).toBe("lost");
});
