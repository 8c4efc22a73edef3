import { connect } from "node:net";
import type { Check } from "./check.ts";
import { Violation } from "./violation.ts";
import type { Wire } from "./wire.ts";

const DEEP = 20_000;

/** Bodies that no client sends. Each must be answered, with an error of the request. */
const bodies: readonly (readonly [string, string])[] = [
  ["no JSON", "{"],
  ["a list", "[]"],
  ["null", "null"],
  ["a text", '"text"'],
  ["deep JSON", `${'{"a":'.repeat(DEEP)}1${"}".repeat(DEEP)}`],
  ["a field of another type", '{"task": 7, "seed": "seven"}'],
];

export const hostileChecks: readonly Check[] = [
  {
    name: "answers paths and methods that it does not have with 404 or 405",
    run: async ({ wire }) => {
      for (const [method, path] of [
        ["GET", "/aenv-no-such-path"],
        ["GET", "/episode/aenv-no-such-part"],
        ["DELETE", "/task/reset"],
      ] as const) {
        const { status } = await wire.send(method, path);
        if (status !== 404 && status !== 405) throw new Violation(`${method} ${path} must be answered with 404 or 405; it was ${status}`);
      }
      return undefined;
    },
  },
  {
    name: "refuses bodies that are no requests, and goes on",
    run: async (subject) => {
      const { wire, abilities } = subject;
      for (const [what, body] of bodies) {
        const mcp = await wire.send("POST", "/mcp", body, { accept: "application/json, text/event-stream" });
        if (mcp.status >= 500)
          throw new Violation(`POST /mcp with ${what} must be refused with a JSON-RPC error or a status 400; it was ${mcp.status}`);
        if (abilities === null) continue;
        const reset = await wire.send("POST", "/task/reset", body);
        if (reset.status < 400 || reset.status >= 500)
          throw new Violation(`POST /task/reset with ${what} must be refused with 400; it was ${reset.status}`);
      }
      if (abilities !== null) await wire.refused("POST", "/task/reset", "{", [400, 422], ["request.invalid"]);
      await assertAnswers(subject);
      return undefined;
    },
  },
  {
    name: "goes on after requests that are broken off",
    run: async (subject) => {
      await Promise.all(
        [
          "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{",
          "GET /task/list HTTP/1.1\r\nhost: local",
          "\0\0\0\r\n\r\n",
        ].map((text) => breakOff(subject.wire, text)),
      );
      await assertAnswers(subject);
      return undefined;
    },
  },
  {
    name: "answers concurrent requests",
    run: async (subject) => {
      await Promise.all(Array.from({ length: 16 }, () => subject.wire.rpc("tools/list")));
      return undefined;
    },
  },
];

async function assertAnswers({ wire, health }: { readonly wire: Wire; readonly health: string }): Promise<void> {
  const { status } = await wire.send("GET", health);
  if (status >= 500) throw new Violation(`GET ${health} was answered with ${status} afterwards`);
  await wire.rpc("tools/list");
}

function breakOff({ origin: { hostname, port, protocol } }: Wire, text: string): Promise<void> {
  // A connection with TLS ends before its handshake, which tests as much.
  const at = port === "" ? (protocol === "https:" ? 443 : 80) : Number(port);
  return new Promise((resolve) => {
    const socket = connect({ host: hostname.replace(/^\[|\]$/g, ""), port: at }, () => socket.write(text, () => socket.destroy()));
    socket.on("error", () => {}).on("close", () => resolve());
  });
}
