// Loaded before a test file, and before a program that a test starts: every later connection to the test server goes
// through PgBouncer, without any change to the tests.
import { Client } from "../../src/client/client.js";
import { Sluice, type ConnectOptions } from "../../src/index.js";
import { routed } from "./route.js";

const connect = { client: Client.connect.bind(Client), sluice: Sluice.connect.bind(Sluice) };
const way = (options?: ConnectOptions): ConnectOptions => routed(options ?? {}, process.env);
Client.connect = (options?: ConnectOptions) => connect.client(way(options));
Sluice.connect = (options?: ConnectOptions) => connect.sluice(way(options));
