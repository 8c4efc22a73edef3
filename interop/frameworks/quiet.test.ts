import { once } from "node:events";
import { connect } from "node:net";
import { expect, it } from "vitest";
import { watchNetwork } from "./quiet.ts";

it("notices who is looked up and who is called, this machine itself excepted", async () => {
  const network = watchNetwork();
  const lookup = (_host: string, _options: object, done: (error: Error, address: string) => void) => done(new Error("not here"), "");
  await once(connect({ host: "telemetry.example", port: 1, lookup }), "error");
  // Means this machine too, but is not how anyone would write it: nothing leaves it.
  await once(connect({ host: "0.0.0.0", port: 1 }), "error");
  await once(connect({ host: "127.0.0.1", port: 1 }), "error");
  network.stop();
  expect(network.outside).toEqual(["telemetry.example", "0.0.0.0"]);
});
