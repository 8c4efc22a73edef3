import { describe, expect, it } from "vitest";
import { healthPathOf, isReadyStatus, tellAddress } from "./listening.ts";

const address = { host: "127.0.0.1", port: 9000 };

describe("a program that listens on a port", () => {
  it("is told the port and the address in its command and its variables", () => {
    const spec = { command: ["serve", "--bind={host}:{port}", "{port}"], variables: { A: "1", PORT: "1" } };
    expect(tellAddress(spec, address)).toEqual({
      command: ["serve", "--bind=127.0.0.1:9000", "9000"],
      variables: { A: "1", PORT: "9000", HOST: "127.0.0.1" },
    });
  });

  it("keeps a HOST of the environment", () => {
    expect(tellAddress({ command: ["serve"], variables: { HOST: "db" } }, address).variables).toEqual({ HOST: "db", PORT: "9000" });
  });

  it("is not changed if it is that of an image", () => {
    expect(tellAddress({ command: [], variables: { A: "1" } }, address)).toEqual({ command: [], variables: { A: "1" } });
  });

  it("is ready when the path that it names succeeds, or without one when it answers at all", () => {
    const named = { kind: "port", port: 1, healthPath: "/ready" } as const;
    const unnamed = { ...named, healthPath: null };
    expect([named, unnamed].map(healthPathOf)).toEqual(["/ready", "/health"]);
    expect([200, 302, 404, 503].map((status) => isReadyStatus("/ready", status))).toEqual([true, true, false, false]);
    expect([200, 302, 404, 503].map((status) => isReadyStatus(null, status))).toEqual([true, true, true, false]);
  });
});
