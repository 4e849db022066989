import type { ServerConnections } from "../config/connections.js";
import type { Connection } from "./connection.js";
import { statement } from "./statement.js";

const connectionsStatement = statement<{
  server_max: number;
  reserved: number;
  in_use: number;
  workers: number;
  registered: number;
}>({
  name: "connections",
  text: "select server_max, reserved, in_use, workers, registered from sluice.connections()",
  params: [],
  columns: ["server_max", "reserved", "in_use", "workers", "registered"],
});

/** How many connections the server allows, how many are open, and how many live workers may open. */
export async function serverConnections(connection: Connection): Promise<ServerConnections> {
  const [row] = await connection.run(connectionsStatement, []);
  const { server_max: max, reserved, in_use: inUse, workers, registered } = row!;
  return { max, reserved, inUse, workers, registered };
}
