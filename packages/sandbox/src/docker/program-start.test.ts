import { generateKeyPairSync } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { SandboxSpec } from "../engine/engine.ts";
import { parseConfig } from "../images/layout.ts";
import { callerDigest } from "./caller-key.ts";
import { checksCallers, programOf } from "./program-start.ts";

const key = generateKeyPairSync("ed25519").privateKey;
const SERVER = "/opt/aenv/bundle/main.js";
const Labels = { "aenv.checks-callers": SERVER };
const Cmd = ["node", SERVER, "--port", "9000"];

const image = (config: object) => ({ id: "sha256:1", config: parseConfig({ Cmd, Labels, ...config }) });
const spec = (more: Partial<SandboxSpec> = {}): SandboxSpec => ({
  id: "one",
  command: [],
  listening: { kind: "port", port: 9000, healthPath: null },
  variables: { NAME: "value" },
  labels: {},
  startTimeoutMs: 1_000,
  ...more,
});

describe("the program of an image", () => {
  it("gets the digest of the caller's key if the label names its server, also instead of another value", () => {
    const expected = { NAME: "value", AENV_OWN_CONNECTIONS: `key:${callerDigest(key, "one")}` };
    for (const [own, of] of [
      [spec(), image({})],
      [spec(), image({ Env: ["AENV_OWN_CONNECTIONS=allow"] })],
      [spec({ variables: { NAME: "value", AENV_OWN_CONNECTIONS: "allow" } }), image({})],
    ] as const) {
      expect(checksCallers(own, of)).toBe(true);
      expect(programOf(own, of, key)).toMatchObject({ command: Cmd, variables: expected });
    }
  });

  it.each<[string, Partial<SandboxSpec>, object]>([
    ["has no label", {}, { Labels: {} }],
    ["was made from one with the label, and runs another program", {}, { Cmd: ["/serve"] }],
    ["runs a command of the environment", { command: ["/serve"] }, {}],
    ["is a service of another sandbox", { program: {}, listening: { kind: "none" } }, {}],
  ])("is started as it is if it %s", (_, more, config) => {
    expect(checksCallers(spec(more), image(config))).toBe(false);
    expect(programOf(spec(more), image(config), key)?.variables).not.toHaveProperty("AENV_OWN_CONNECTIONS");
  });

  it("is not started if the sandbox only runs commands", () => {
    const own = spec({ listening: { kind: "none" } });
    expect([checksCallers(own, image({})), programOf(own, image({}), key)]).toEqual([false, null]);
  });
});
