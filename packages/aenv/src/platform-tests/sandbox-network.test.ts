import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describeNeeding, startDocker, temporaryTree } from "@aenv/testing";
import { expect, it } from "vitest";
import { OUTSIDE, PORT, startTwoMachines } from "./testing/two-machines.ts";

const scenario = fileURLToPath(new URL("fixtures/reward-phase.ts", import.meta.url));
const HINT = `egress: refused a connection to ${OUTSIDE}:${PORT}; the environment allows it with deployConfig.egress`;

/** What the program in a sandbox reached, and the refused connections in the events of its instance. */
interface Seen {
  readonly before: string;
  readonly reward: string;
  readonly after: string;
  readonly refused: readonly string[];
}

/** Calls an instance before, during and after its reward, on this machine of a test. */
async function play(machine: string, flags: object, deployConfig: object, request: object = {}): Promise<Seen> {
  using project = temporaryTree({
    "config.json": { name: "dialler", version: "1.0.0", deployConfig, runtime: { command: ["node", "program.mjs"] } },
    "program.mjs": program,
  });
  const args = [`--net=/run/netns/${machine}`, process.execPath, scenario, project.path, JSON.stringify(flags), JSON.stringify(request)];
  return JSON.parse((await promisify(execFile)("nsenter", args)).stdout) as Seen;
}

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
        expect(await play(machines.machine, { engine: "oci", runtime }, deployConfig)).toEqual({
          before: "ECONNREFUSED",
          reward: "hello",
          after: "ECONNREFUSED",
          refused: [HINT],
        });
      });
    }),
  );

describeNeeding("docker", "the network of a sandbox with the engine docker", () =>
  describeNeeding("network-namespaces", "on a machine beside another one", () => {
    it("is that of the environment, of its rewards, and of a request that narrows it", { timeout: 240_000 }, async () => {
      await using machines = await startTwoMachines();
      await using daemon = await startDocker({ namespace: machines.machine });
      const [there, elsewhere] = [{ allow: [`${OUTSIDE}:${PORT}`] }, { allow: [`${OUTSIDE}:80`] }];
      const seen = (deployConfig: object, request: object = {}) =>
        play(machines.machine, { engine: "docker", dockerSocket: daemon.socket }, deployConfig, request);
      // Without connections, it has no network until it needs one.
      expect(await seen({ egress: "none", rewardEgress: there })).toEqual({
        before: "ENETUNREACH",
        reward: "hello",
        after: "ECONNREFUSED",
        refused: [HINT],
      });
      expect(await seen({ egress: there, rewardEgress: elsewhere })).toEqual({
        before: "hello",
        reward: "ECONNREFUSED",
        after: "hello",
        refused: [HINT],
      });
      expect(await seen({ egress: { allow: [...there.allow, ...elsewhere.allow] } }, { egress: elsewhere })).toMatchObject({
        before: "ECONNREFUSED",
        refused: [HINT],
      });
    });
  }),
);
