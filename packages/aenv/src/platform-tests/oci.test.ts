import { describeNeeding, scriptedOpenAi, startImageRegistry } from "@aenv/testing";
import { expect, it } from "vitest";
import { callTool, urlOf } from "./calls.ts";
import { resultsOf, SOLVES } from "./fixtures/rollouts.ts";
import { type Platform, projects, publish, startPlatform } from "./platform.ts";
import { seenLimits } from "./testing/limits.ts";

for (const runtime of ["runc", "runsc"] as const) {
  describeNeeding(runtime, `a platform with the engine oci and ${runtime}`, () => {
    it("publishes an environment, calls its tool, scores it, and runs commands in its sandbox", async () => {
      await using platform = await startPlatform({ flags: { engine: "oci", runtime } });
      const ref = await publish(platform, projects.echo);
      const { id } = await platform.create(ref);
      expect(await callTool(urlOf(platform, id), "echo", { text: "hello" })).toMatchObject({ status: 200, isError: false });
      const scored = await fetch(urlOf(platform, id, "/task/reward"), {
        method: "POST",
        body: "{}",
        headers: { "content-type": "application/json" },
      });
      expect(await scored.json()).toMatchObject({ data: { reward: 1 } });
      const script = "console.log(fs.existsSync(process.argv[1]), fs.readdirSync('/proc').filter(Number).length < 9)";
      const command = ["node", "-e", script, platform.home];
      expect(await platform.demand("POST", `/env-instance/${id}/exec`, { command, wait: true })).toMatchObject({ stdout: "false true\n" });
      await platform.demand("DELETE", `/env-instance/${id}`);
    }, 60_000);

    it("answers only the names that the environment allows, and tells the owner about others", async () => {
      await using platform = await startPlatform({ flags: { engine: "oci", runtime } });
      const { id } = await platform.create(await publish(platform, projects.echo));
      const command = ["node", "-e", "dns.lookup('blocked.example', (error) => console.log(error.code))"];
      expect(await platform.demand("POST", `/env-instance/${id}/exec`, { command, wait: true })).toMatchObject({ stdout: "ENOTFOUND\n" });
      const what = "egress: refused a connection to the name blocked.example; the environment allows it with deployConfig.egress";
      await expect
        .poll(() => platform.demand("GET", `/env-instance/${id}/events`), { timeout: 20_000 })
        .toContainEqual({ at: expect.any(String), what });
    }, 60_000);
  });
}

describeNeeding("runc", "an environment on the engine oci", () => {
  it("has the limits of its deployConfig, and is refused if the server allows less", async () => {
    await using platform = await startPlatform({ flags: { engine: "oci", runtime: "runc" } });
    const seen = await seenLimits(platform, { cpu: "500m", memory: "700Mi", ephemeralStorage: "200Mi" });
    expect(seen).toMatchObject({ memoryMb: 700, cpus: 0.5 });
    // Without what the file system needs for itself.
    expect(seen.diskMb).toBeGreaterThan(150);
    expect(seen.diskMb).toBeLessThanOrEqual(200);
    await expect(seenLimits(platform, { memory: "9Gi" }, "1.0.1")).rejects.toThrow(
      /deployConfig\.memory of .* is '9Gi', and this server allows 2048 MiB/,
    );
  }, 60_000);
});

describeNeeding("runc", "the image of an environment", () => {
  describeNeeding("docker-registry", "on the engine oci", () => {
    // Before: as a failure of its sandbox, which is worth another attempt.
    it("ends its episodes unscored by its own fault if it is refused or does not exist, and may be tried again if its registry does not answer", async () => {
      await using registry = await startImageRegistry();
      await using model = await scriptedOpenAi(SOLVES);
      const insecureRegistries = [registry.host, "127.0.0.1:1"];
      await using platform = await startPlatform({ flags: { engine: "oci", runtime: "runc", insecureRegistries } });
      const cases = [
        ["refused", "10.0.0.1:5000/team/x:1", "environment", false, "its registry 10.0.0.1:5000 has no public address"],
        ["absent", `${registry.host}/team/x:1`, "environment", false, "its registry does not have it"],
        ["offline", "127.0.0.1:1/team/x:1", "sandbox", true, "its registry could not be reached"],
      ] as const;
      for (const [name, image, cause, retryable, message] of cases) {
        await platform.demand("POST", "/env", { name, version: "1.0.0", artifacts: [{ type: "image", content: image }] });
        const outcomes = await play(platform, {
          id: name,
          environment: `${name}@1.0.0`,
          task: { id: "any" },
          model: { base_url: model.baseUrl, api_key: "k", name: "m" },
          retries: 0,
        });
        expect(outcomes).toMatchObject([{ kind: "unscored", cause, retryable, message: expect.stringContaining(message) }]);
      }
    }, 60_000);
  });
});

async function play({ controlUrl }: Platform, rollout: object) {
  const response = await fetch(`${controlUrl}/rollouts`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ rollouts: [rollout], stream: true }),
  });
  return (await resultsOf(response)).map(({ outcome }) => outcome);
}
