import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type DockerDaemon, describeNeeding, startDocker, temporaryTree } from "@aenv/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Machines } from "../oci/network/testing/machines.ts";
import { openRules } from "./open-rules.ts";

const program = fileURLToPath(new URL("testing/dial-from-sandbox.ts", import.meta.url));
const PORT = 8443;

it("the rules let names be asked of the machine's name servers, and are complete without any", () => {
  expect(openRules("aeo1", ["10.0.0.2"])).toContain("ip daddr { 10.0.0.2 } meta l4proto { tcp, udp } th dport 53 accept");
  expect(openRules("aeo1", [])).not.toContain("dport 53");
});

describeNeeding("docker", "a hostile program in a sandbox of the docker engine with open egress", () => {
  describeNeeding("network-namespaces", "on a machine with neighbours", () => {
    let machines: Machines;
    let docker: DockerDaemon;
    let port: number;

    beforeAll(async () => {
      machines = new Machines();
      const [server, outside] = [machines.start(machines.machine), machines.start(machines.outside)];
      await outside.call("listen", "0.0.0.0", PORT, "outside");
      port = await server.call<number>("listen", "0.0.0.0", 0, "machine");
      docker = await startDocker({ namespace: machines.machine });
    }, 120_000);
    afterAll(async () => {
      await docker?.[Symbol.asyncDispose]();
      await machines?.remove();
    }, 60_000);

    async function dial(rules: "with" | "without", targets: readonly string[]) {
      using home = temporaryTree();
      const enter = [`--net=/run/netns/${machines.machine}`, process.execPath, program];
      const { stdout } = await promisify(execFile)("nsenter", [...enter, home.path, docker.socket, rules, ...targets]);
      return JSON.parse(stdout) as { seen: string[]; lines: string[]; hasRules: boolean };
    }

    it("reaches public addresses, and neither metadata services, private networks nor the machine", { timeout: 120_000 }, async () => {
      const forbidden = [
        `169.254.169.254:${PORT}`,
        `100.100.100.200:${PORT}`,
        `10.1.0.5:${PORT}`,
        `${Machines.own}:${port}`,
        `GATEWAY:${port}`,
      ];
      const all = [`9.9.9.9:${PORT}`, ...forbidden];
      expect(await dial("with", all)).toEqual({
        seen: ["got outside", ...forbidden.map(() => "refused")],
        lines: [],
        hasRules: false,
      });
      // Without the rules, all of them answer.
      expect((await dial("without", all)).seen).toEqual(
        ["outside", "outside", "outside", "outside", "machine", "machine"].map((who) => `got ${who}`),
      );
    });
  });
});
