import { once } from "node:events";
import { connect } from "node:net";
import { expect, it } from "vitest";
import { watchNetwork } from "./quiet.ts";

it("records DNS lookups and connections to other machines", async () => {
  const network = watchNetwork();
  const lookup = (_host: string, _options: object, done: (error: Error, address: string) => void) => done(new Error("not here"), "");
  await once(connect({ host: "telemetry.example", port: 1, lookup }), "error");
  // Also this machine, but not in the usual form: it counts as another one, and no packet leaves.
  await once(connect({ host: "0.0.0.0", port: 1 }), "error");
  await once(connect({ host: "127.0.0.1", port: 1 }), "error");
  network.stop();
  expect(network.outside).toEqual(["telemetry.example", "0.0.0.0"]);
});
