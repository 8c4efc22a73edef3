import type { EnvironmentConfig, InstanceModel } from "@aenv/contract";
import { describe, expect, it } from "vitest";
import { HeldModels } from "./held-models.ts";
import { InstanceModelEndpoints } from "./instance-models.ts";
import { requestedModels } from "./stored-model.ts";

const policy = { urlProblem: () => null };
const config: EnvironmentConfig = {
  name: "shop",
  version: "1.0.0",
  deployConfig: { models: { main: { baseUrl: "http://m/v1", name: "wise", secret: "model-key" } } },
};
const given: InstanceModel = {
  base_url: "http://own/v1",
  api_key: "sesame",
  name: "own",
  api: "chat",
  tokens: "trainer",
  sampling: {},
  allow_truncated_sampling: false,
  extra_body: {},
  headers: {},
};
const rowOf = (owner: string, models: Record<string, InstanceModel> = {}) =>
  requestedModels({ owner: "ada", config }, { models }, owner, policy) ?? expect.unreachable();

describe("the endpoint of an instance's model", () => {
  const held = new HeldModels();
  const secret = async (owner: string, name: string) => `${name} of ${owner}`;
  const endpoints = new InstanceModelEndpoints({ policy, held, secret });

  it("has the publisher's secret for the publisher's own instances, and not for those of others", async () => {
    expect(await endpoints.find({ owner: "ada", models: rowOf("ada").stored }, "main")).toMatchObject({ apiKey: "model-key of ada" });
    await expect(endpoints.find({ owner: "bob", models: rowOf("bob").stored }, "main")).rejects.toMatchObject({
      code: "model.failed",
      message: expect.stringContaining("give your own endpoint in 'models' of the request"),
    });
  });

  it("has the owner's secret that a request names", async () => {
    const { stored } = rowOf("bob", { main: { ...given, api_key: "none", secret: "mine" } });
    expect(await endpoints.find({ owner: "bob", models: stored }, "main")).toMatchObject({ name: "own", apiKey: "mine of bob" });
  });

  it("has the key of the request while an instance or a fork of it lives", async () => {
    const { stored, held: keys, heldId } = rowOf("bob", { main: given });
    expect(JSON.stringify(stored)).not.toContain("sesame");
    held.put(heldId, keys, "parent");
    held.note({ id: "fork", heldModels: heldId }, true);
    held.note({ id: "parent", heldModels: heldId }, false);
    const row = { owner: "bob", models: stored, heldModels: heldId };
    expect(await endpoints.find(row, "main")).toMatchObject({ apiKey: "sesame" });
    held.note({ id: "fork", heldModels: heldId }, false);
    await expect(endpoints.find(row, "main")).rejects.toThrow("name a secret in models.main.secret");
  });
});
