import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describeNeeding, scriptedOpenAi } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { callTool, urlOf } from "./calls.ts";
import { type ChildPlatform, startChild } from "./child.ts";
import { SOLVES } from "./fixtures/rollouts.ts";
import { environmentAttacks, type MalloryOptions, resultsOf, startMallory } from "./hostile/mallory.ts";
import { hostileRegistry } from "./hostile/registry.ts";
import { projects, publish } from "./platform.ts";

const MAX_PEAK_MB = 600;
/** Ada's work while Mallory attacks. */
const CALLS = 300;
const ROLLOUTS = 6;
/** No process waits that nobody uses: what is left at the end is counted. */
const FLAGS = { access: "on", logLevel: "warn", rolloutsAtOnce: 8, poolMax: 0 } as const;

describe("a hostile model endpoint and a hostile environment at the same time", () => {
  // Before: 4.7 GB after one answer without an end, and no answer to a health check for 17 s.
  it("take nothing from another owner, whose calls and rollouts all succeed; their own episodes are unscored", {
    timeout: 180_000,
  }, async () => {
    await using child = await startChild(FLAGS);
    await attack(child, {});
  });
});

describeNeeding("runc", "the same with sandboxes of the engine oci, streams on the platform link and a hostile registry", () => {
  it("take nothing from another owner, and leave no sandbox and no layer", { timeout: 400_000 }, async () => {
    await using registry = await hostileRegistry();
    const limits = { imageBytes: 256 * 1_024 ** 2, imageEntries: 100_000 };
    await using child = await startChild({ ...FLAGS, ...limits, engine: "oci", sandboxesReady: 0, insecureRegistries: [registry.host] });
    const layers = () => namesIn(join(child.home, "oci/store/layers"));
    await attack(
      child,
      {
        deployConfig: { taskSandboxes: { images: [`${registry.host}/*`] } },
        // Three processes at a time: 1,000 streams, of which 60 have 7 MB each. Before, all of them were kept.
        attacks: [...environmentAttacks, "streams", "streams", "streams"],
        images: registry.images,
      },
      // That of the sandboxes without an image.
      () => expect(layers()).toHaveLength(1),
    );
    expect(registry.internalConnections()).toBe(0);
    expect(readdirSync(join(child.home, "oci/store/layers")).filter((name) => name.startsWith(".part-"))).toEqual([]);
  });
});

/** Mallory attacks while Ada works. */
async function attack(child: ChildPlatform, options: Omit<MalloryOptions, "headers">, check = () => {}): Promise<void> {
  const ada = await openAda(child);
  await using mallory = await startMallory(child, { ...options, headers: await tokenOf(child, "mallory") });
  const attacking = mallory.play();
  const work = await ada.work();
  const attacked = await attacking;
  expect(work).toEqual({ calls: CALLS, rewards: Array(ROLLOUTS).fill(1) });
  expect(attacked).toHaveLength(mallory.attacks);
  expect(attacked.filter(({ outcome }) => outcome.kind === "scored").map(({ id }) => id)).toEqual([]);
  expect(attacked.filter(({ outcome }) => JSON.stringify(outcome).length > 5_000)).toEqual([]);
  if (child.peakMb() !== null) expect(child.peakMb()).toBeLessThan(MAX_PEAK_MB);
  check();
  await ada.end();
  await expectNothingLeft(child);
}

async function tokenOf(child: ChildPlatform, owner: string) {
  const admin = { authorization: `Bearer ${child.token}` };
  const { token } = (await child.demand("POST", "/token", { owner }, admin)) as { token: string };
  return { authorization: `Bearer ${token}` };
}

/** An owner who uses the platform as it is meant. */
async function openAda(child: ChildPlatform) {
  const headers = await tokenOf(child, "ada");
  const echo = await publish(child, projects.echo, { headers });
  const { id } = await child.create(echo, {}, headers);
  const call = async () => {
    const { status, text } = await callTool(urlOf(child, id), "echo", { text: "hello" }, { headers });
    return status === 200 && text?.includes("hello") === true;
  };
  const play = async () => {
    await using model = await scriptedOpenAi(SOLVES);
    const one = (at: number) => ({
      id: `ada-${at}`,
      environment: echo,
      task: { id: "greet" },
      model: { base_url: model.baseUrl, api_key: "k", name: "m" },
      retries: 0,
    });
    const response = await fetch(`${child.controlUrl}/rollouts`, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify({ rollouts: Array.from({ length: ROLLOUTS }, (_, at) => one(at)), stream: true }),
    });
    return await resultsOf(response);
  };
  return {
    work: async () => {
      const played = play();
      let calls = 0;
      for (let count = 0; count < CALLS; count++) if (await call()) calls++;
      return { calls, rewards: (await played).map(({ outcome }) => (outcome.kind === "scored" ? outcome.reward : outcome)) };
    },
    end: () => child.demand("DELETE", `/env-instance/${id}`, undefined, headers),
  };
}

/** Neither instances nor sandboxes. */
async function expectNothingLeft({ home, token, demand }: ChildPlatform): Promise<void> {
  const headers = { authorization: `Bearer ${token}` };
  const instances = async () => {
    const { items } = (await demand("GET", "/env-instance/list?status=Running", undefined, headers)) as { items: { id: string }[] };
    return items.map(({ id }) => id);
  };
  const sandboxes = () => ["sandboxes", "oci/sandboxes"].flatMap((folder) => namesIn(join(home, folder)));
  await expect.poll(async () => [...(await instances()), ...sandboxes()], { timeout: 30_000 }).toEqual([]);
}

function namesIn(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder).filter((name) => !name.startsWith(".")) : [];
}
