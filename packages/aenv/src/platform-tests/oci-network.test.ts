import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describeNeeding, temporaryTree } from "@aenv/testing";
import { expect, it } from "vitest";
import { OUTSIDE, PORT, startTwoMachines } from "./testing/two-machines.ts";

const scenario = fileURLToPath(new URL("fixtures/reward-phase.ts", import.meta.url));

/** Answers every request with what a connection to the other machine leads to. */
const program = `
  import { createServer } from "node:http";
  import { connect } from "node:net";
  const dial = () => new Promise((resolve) => {
    const socket = connect(${PORT}, "${OUTSIDE}");
    socket.once("data", (data) => (resolve(String(data)), socket.destroy())).once("error", ({ code }) => resolve(code));
  });
  createServer(async (request, response) => response.end(request.method === "POST" ? await dial() : "")).listen(process.env.PORT, process.env.HOST);
`;

for (const runtime of ["runc", "runsc"] as const)
  describeNeeding(runtime, `the network of a sandbox with the engine oci and ${runtime}`, () =>
    describeNeeding("network-namespaces", "on a machine beside another one", () => {
      it("reaches while its reward is computed what it reaches neither before nor after", { timeout: 120_000 }, async () => {
        await using machines = await startTwoMachines();
        const deployConfig = { egress: "none", rewardEgress: { allow: [`${OUTSIDE}:${PORT}`] } };
        using project = temporaryTree({
          "config.json": { name: "dialler", version: "1.0.0", deployConfig, runtime: { command: ["node", "program.mjs"] } },
          "program.mjs": program,
        });
        const args = [`--net=/run/netns/${machines.machine}`, process.execPath, scenario, project.path, runtime];
        const { stdout } = await promisify(execFile)("nsenter", args);
        expect(JSON.parse(stdout)).toEqual({ before: "ECONNREFUSED", reward: "hello", after: "ECONNREFUSED" });
      });
    }),
  );
